//! Codes samples from files with a model.

use std::path::Path;
use std::{fs, io};

use msbdl::{Codes, Error, Model};
use serde::Serialize;

use crate::args::Encode;
use crate::fail::{Fail, Result};
use crate::input::Files;
use crate::settings;
use crate::show;
use crate::write::{self, Values};

/// The JSON output; its names stay.
#[derive(Serialize)]
struct Report {
    codes: String,
    model: String,
    n_samples: usize,
    n_atoms: usize,
    /// Mean log-likelihood of what was given of a sample.
    mean_log_evidence: f64,
    modalities: Vec<Part>,
}

#[derive(Serialize)]
struct Part {
    name: String,
    /// Samples that have it.
    n_samples: usize,
}

pub fn run(args: &Encode) -> Result<()> {
    let common = &args.common;
    let files = Files::parse(&args.modality)?;
    let threads = settings::threads(&args.threads)?;
    write::check_file(&args.out, "npz")?;
    let model = load(&args.model)?;
    check_known(&files, &model, &args.out)?;
    let samples = files.read(common.ids)?;
    let note = samples.note();
    let n_samples = samples.count();
    let codes = model
        .encode_on(samples.tables, threads)
        .map_err(|error| files.explain(&error, &samples.names))?;

    if let Some(note) = note.filter(|_| !common.quiet) {
        eprintln!("{note}");
    }
    save(&codes, samples.names.ids.as_deref(), &args.out)?;

    let parts = samples
        .absent
        .into_iter()
        .map(|(name, absent)| Part { name, n_samples: n_samples - absent });
    let report = Report {
        codes: args.out.display().to_string(),
        model: args.model.display().to_string(),
        n_samples,
        n_atoms: codes.gamma.ncols(),
        mean_log_evidence: codes.log_evidence.mean().unwrap_or(f64::NAN),
        modalities: parts.collect(),
    };
    match (common.json, common.quiet) {
        (true, _) => show::json(&report),
        (false, false) => show::print(&report.text()),
        (false, true) => Ok(()),
    }
}

/// Checks that the model knows the modalities, and that the output replaces none of the files.
pub fn check_known(files: &Files, model: &Model, out: &Path) -> Result<()> {
    let known: Vec<&str> = model.modalities.iter().map(|part| part.name.as_str()).collect();
    for (name, file) in files.each() {
        if !known.contains(&name) {
            return Err(Fail::input(format!(
                "{file}: modality '{name}' is not in the model; its modalities are {}",
                known.join(", ")
            )));
        }
        spare(out, file)?;
    }
    Ok(())
}

pub fn load(path: &Path) -> Result<Model> {
    Model::load(path).map_err(|error| match error {
        Error::Io { path, source } if source.kind() == io::ErrorKind::NotFound => {
            Fail::input(format!("{}: no such file", path.display()))
        }
        _ => Fail::input(error.to_string()),
    })
}

/// Refuses to replace the data by their codes.
fn spare(out: &Path, spec: &str) -> Result<()> {
    let Ok(out) = fs::canonicalize(out) else {
        return Ok(());
    };
    let path = spec.rsplit_once(".npz:").map(|(path, _)| format!("{path}.npz"));
    let inputs = [Some(spec.to_owned()), path];
    let mut inputs = inputs.into_iter().flatten();
    match inputs.any(|input| fs::canonicalize(input).is_ok_and(|input| input == out)) {
        true => Err(Fail::input(format!("--out: {spec} is the input"))),
        false => Ok(()),
    }
}

/// Writes codes as an archive; `ids` name the samples.
pub fn save(codes: &Codes, ids: Option<&[String]>, path: &Path) -> Result<()> {
    let mut arrays = vec![
        ("gamma".to_owned(), Values::Matrix(&codes.gamma)),
        ("log_evidence".to_owned(), Values::Vector(&codes.log_evidence)),
    ];
    for part in &codes.modalities {
        for (kind, values) in [
            ("mean", &part.mean),
            ("variance", &part.variance),
            ("reconstruction", &part.reconstruction),
        ] {
            arrays.push((format!("{kind}.{}", part.name), Values::Matrix(values)));
        }
    }
    if let Some(ids) = ids {
        arrays.push(("ids".to_owned(), Values::Text(ids)));
    }
    write::npz(path, &arrays)?.place()
}

impl Report {
    fn text(&self) -> String {
        let rows = self.modalities.iter();
        let rows = rows.map(|part| vec![part.name.clone(), part.n_samples.to_string()]);
        format!(
            "{}\n\
             samples       {}, coded with {} atoms\n\
             log evidence  {} per sample on average\n\
             codes         {}\n",
            show::table(&["modality", "samples"], rows),
            self.n_samples,
            self.n_atoms,
            show::significant(self.mean_log_evidence),
            self.codes,
        )
    }
}
