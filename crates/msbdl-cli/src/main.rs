//! Runs the command `msbdl`: arguments, reading, the library, printing.

mod args;
mod choices;
mod demo;
mod encode;
mod fail;
mod fit;
mod help;
mod info;
mod input;
mod labels;
mod predict;
mod progress;
mod read;
mod recovery;
mod score;
mod settings;
mod show;
mod synth;
mod truth;
mod usage;
mod write;

use std::process::ExitCode;

use args::{Cli, Command};
use clap::Parser;

fn main() -> ExitCode {
    let done = match Cli::try_parse() {
        Ok(cli) => run(&cli.command),
        Err(error) => usage::answer(&error),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fail) => {
            eprintln!("{}", fail.line());
            ExitCode::from(fail.code())
        }
    }
}

fn run(command: &Command) -> fail::Result<()> {
    match command {
        Command::Demo(args) => demo::run(args),
        Command::Fit(args) => fit::run(args),
        Command::Encode(args) => encode::run(args),
        Command::Predict(args) => predict::run(args),
        Command::Score(args) => score::run(args),
        Command::Info(args) => info::run(args),
        Command::Synth(args) => synth::run(args),
        Command::Recovery(args) => recovery::run(args),
    }
}
