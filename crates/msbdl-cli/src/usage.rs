//! Answers what the argument parser did not take: help to stdout, mistakes in one line.

use clap::error::{Error, ErrorKind};

use crate::fail::{Fail, Result};
use crate::show;

const COMMANDS: [&str; 8] =
    ["demo", "fit", "encode", "predict", "score", "info", "synth", "recovery"];

pub fn answer(error: &Error) -> Result<()> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            show::print(&format!("{}\n", error.to_string().trim_end()))
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Fail::input("which command? try 'msbdl demo', or see 'msbdl --help'"))
        }
        _ => {
            let given = std::env::args_os().nth(1).unwrap_or_default();
            let command = COMMANDS.iter().find(|name| given == **name);
            Err(Fail::input(one_line(&error.to_string(), command.copied())))
        }
    }
}

/// What clap says above its usage text.
fn one_line(text: &str, command: Option<&str>) -> String {
    let mut problem = String::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with("Usage:") || line.starts_with("For more") {
            break;
        }
        problem.push_str(match line {
            _ if problem.is_empty() => "",
            _ if line.starts_with("tip:") => "; ",
            _ if line.starts_with('[') || problem.ends_with(':') => " ",
            _ => ", ",
        });
        problem.push_str(line);
    }
    let problem = problem.strip_prefix("error: ").unwrap_or(&problem);
    let command = command.map_or(String::new(), |name| format!("{name} "));
    format!("{problem}; see 'msbdl {command}--help'")
}
