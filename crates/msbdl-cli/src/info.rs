//! Says what is in a model.

use crate::args::Info;
use crate::encode::load;
use crate::fail::Result;
use crate::show::{self, Report};

pub fn run(args: &Info) -> Result<()> {
    let report = Report::new(&load(&args.model)?, &args.model, None);
    match args.json {
        true => show::json(&report),
        false => show::print(&report.text()),
    }
}
