//! Fits a model from files.

use msbdl::{Data, Model};

use crate::args::Fit;
use crate::fail::{Fail, Result};
use crate::input::Files;
use crate::show::{self, Report};
use crate::{labels, progress, read, settings, write};

pub fn run(args: &Fit) -> Result<()> {
    let common = &args.common;
    let files = Files::parse(&args.modality)?;
    let config = settings::config(args)?;
    write::check_file(&args.out, "safetensors")?;
    let samples = files.read(common.ids)?;
    let note = samples.note();
    let explain = |error| files.explain(&error, &samples.names);
    let rows = read::Samples { count: samples.count(), ids: samples.names.ids.as_deref() };
    let task = labels::task(args, rows)?;
    let data = Data::new(samples.tables, !args.no_center).map_err(explain)?;
    config.check(&data).map_err(explain)?;
    let task = task.as_ref().map(|(labels, task)| (labels, task));
    if let Some((labels, task)) = task {
        task.check(&data, labels, config.preset, config.seed).map_err(explain)?;
    }

    if let Some(note) = note.filter(|_| !common.quiet) {
        eprintln!("{note}");
    }
    let (model, took) = progress::fit(&data, task, &config, common.quiet).map_err(explain)?;
    save(&model, &args.out)?;

    let report = Report::new(&model, &args.out, Some(took));
    match (common.json, common.quiet) {
        (true, _) => show::json(&report),
        (false, false) => show::print(&report.text()),
        (false, true) => Ok(()),
    }
}

/// Writes the model; what can be wrong now is the disk, not the input.
pub fn save(model: &Model, path: &std::path::Path) -> Result<()> {
    model.save(path).map_err(Fail::run)
}
