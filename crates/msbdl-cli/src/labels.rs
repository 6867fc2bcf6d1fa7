//! Makes labels and their settings of the options of `msbdl fit`.

use msbdl::{Labels, TaskConfig, Validation};

use crate::args::Fit;
use crate::fail::{Fail, Result};
use crate::read::{self, Given};
use crate::settings;

/// The labels and what is to be done with them, if there are any.
pub fn task(args: &Fit, samples: read::Samples) -> Result<Option<(Labels, TaskConfig)>> {
    let task = &args.task;
    let Some(file) = &task.labels else {
        let given = [
            ("--validation", task.validation.is_some()),
            ("--validation-rows", task.validation_rows.is_some()),
            ("--beta0", !task.beta0.is_empty()),
            ("--alpha-beta", task.alpha_beta.is_some()),
            ("--nu", task.nu.is_some()),
            ("--validate-every", task.validate_every.is_some()),
            ("--balance", task.balance),
        ];
        return match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Fail::input(format!("{option} needs --labels"))),
            None => Ok(None),
        };
    };
    let number = |option, text: &Option<String>| -> Result<Option<f64>> {
        text.as_deref().map(|text| settings::real(option, text)).transpose()
    };
    let beta0 = match task.beta0.as_slice() {
        [] => None,
        given => Some(settings::per_modality("--beta0", given, settings::real)?),
    };
    let every = task.validate_every.as_deref();
    let mut config = TaskConfig {
        beta0,
        alpha_beta: number("--alpha-beta", &task.alpha_beta)?,
        nu: number("--nu", &task.nu)?,
        validate_every: every.map(|x| settings::whole("--validate-every", 1, x)).transpose()?,
        balance: task.balance,
        ..TaskConfig::default()
    };
    if let Some(share) = number("--validation", &task.validation)? {
        config.validation = Validation::Share(share);
    }
    if let Some(rows) = &task.validation_rows {
        config.validation = Validation::Rows(validation_rows(rows, samples)?);
    }
    Ok(Some((read(file, samples)?, config)))
}

/// Labels from a file.
fn read(file: &str, samples: read::Samples) -> Result<Labels> {
    let labels = match read::labels(file, samples)? {
        Given::Classes(classes) => Labels::classes(&classes),
        Given::Tags { names, values } => Labels::tags(names, values),
    };
    labels.map_err(|error| Fail::input(format!("{file}: {error}")))
}

/// Rows counted from 0, or ids, one a line.
fn validation_rows(file: &str, samples: read::Samples) -> Result<Vec<usize>> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Fail::input(format!("{file}: cannot be read: {error}")))?;
    let words = text.lines().enumerate().map(|(line, text)| (line + 1, text.trim()));
    let words = words.filter(|(_, text)| !text.is_empty());
    let rows = words.map(|(line, text)| {
        let row = match samples.ids {
            Some(ids) => ids.iter().position(|id| id == text),
            None => text.parse().ok(),
        };
        let expected = if samples.ids.is_some() { "the id of a sample" } else { "a row" };
        row.ok_or_else(|| Fail::input(format!("{file}: line {line}: '{text}' is not {expected}")))
    });
    rows.collect()
}
