//! Makes a [`Config`] of the options of `msbdl fit`; what depends on the data the library checks.

use std::num::IntErrorKind;
use std::path::Path;
use std::str::FromStr;

use msbdl::{Config, Groups, PerModality};

use crate::args::Fit;
use crate::fail::{Fail, Result};

pub fn config(args: &Fit) -> Result<Config> {
    let number = |option, text: &Option<String>| -> Result<Option<f64>> {
        text.as_deref().map(|text| real(option, text)).transpose()
    };
    let count = |option, text: &Option<String>| -> Result<Option<usize>> {
        text.as_deref().map(|text| whole(option, 1, text)).transpose()
    };
    let sigma0 = match args.sigma0.as_slice() {
        [] => None,
        given => Some(per_modality("--sigma0", given, real)?),
    };
    Ok(Config {
        n_atoms: match args.atoms.as_slice() {
            [] => PerModality::ByName(Vec::new()),
            given => per_modality("--atoms", given, |option, text| whole(option, 1, text))?,
        },
        preset: args.preset.into(),
        schedule: args.schedule.map(Into::into),
        batch_size: count("--batch-size", &args.batch_size)?,
        posterior: args.posterior.map(Into::into),
        sigma0,
        sigma_inf: number("--sigma-inf", &args.sigma_inf)?,
        alpha: number("--alpha", &args.alpha)?,
        max_iter: count("--max-iter", &args.max_iter)?,
        seed: whole("--seed", 0, &args.seed)?,
        threads: threads(&args.threads)?,
        prior: args.prior.into(),
        groups: args.groups.as_deref().map(groups).transpose()?,
        root: args.root.clone(),
        max_leaves: count("--max-leaves", &args.max_leaves)?,
    })
}

fn groups(path: &Path) -> Result<Groups> {
    let bad = |problem: String| Fail::input(format!("--groups: {}: {problem}", path.display()));
    let text =
        std::fs::read_to_string(path).map_err(|error| bad(format!("cannot be read: {error}")))?;
    serde_json::from_str(&text).map_err(|error| {
        let problem = "not a list of branches, as in [{\"image\":[0],\"text\":[0,50]}]";
        bad(format!("{problem} ({error})"))
    })
}

/// Takes one value, or NAME=VALUE any number of times.
pub fn per_modality<T>(
    option: &str,
    given: &[String],
    parse: impl Fn(&str, &str) -> Result<T>,
) -> Result<PerModality<T>> {
    let pairs: Vec<_> = given.iter().filter_map(|text| text.split_once('=')).collect();
    match (given, pairs.len()) {
        ([value], 0) => Ok(PerModality::Same(parse(option, value)?)),
        (_, 0) => Err(Fail::input(format!(
            "{option} was given {} times; give it once, or as NAME=VALUE for each modality",
            given.len()
        ))),
        (all, named) if named < all.len() => Err(Fail::input(format!(
            "{option} takes either one number or NAME=VALUE for each modality, not both"
        ))),
        _ => {
            let parsed = pairs.into_iter().map(|(name, value)| {
                let value = parse(&format!("{option} of '{name}'"), value)?;
                Ok((name.to_owned(), value))
            });
            Ok(PerModality::ByName(parsed.collect::<Result<_>>()?))
        }
    }
}

/// More than any machine has cores; the library starts as many as it is told.
const MOST_THREADS: usize = 1024;

pub fn threads(text: &str) -> Result<usize> {
    let threads = whole("--threads", 0, text)?;
    if threads > MOST_THREADS {
        let problem = format!("--threads must be at most {MOST_THREADS}, not {threads}");
        return Err(Fail::input(problem));
    }
    Ok(threads)
}

/// Reads a whole number that is not below `least`.
pub fn whole<T>(option: &str, least: T, text: &str) -> Result<T>
where
    T: FromStr<Err = std::num::ParseIntError> + PartialOrd + ToString,
{
    let text = text.trim();
    let below = || {
        let least = least.to_string();
        Fail::input(format!("{option} must be at least {least}, not {text}"))
    };
    match text.parse::<T>() {
        Ok(value) if value < least => Err(below()),
        Ok(value) => Ok(value),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
            Err(Fail::input(format!("{option} is too large: {text}")))
        }
        Err(_) if text.parse::<i128>().is_ok_and(|value| value < 0) => Err(below()),
        Err(_) => Err(Fail::input(format!("{option} must be a whole number, not '{text}'"))),
    }
}

/// Reads a number; its range is checked elsewhere.
pub fn real(option: &str, text: &str) -> Result<f64> {
    let text = text.trim();
    text.parse().map_err(|_| Fail::input(format!("{option} must be a number, not '{text}'")))
}

/// Reads numbers with commas between them, one for each modality.
pub fn list(option: &str, text: &str, count: usize) -> Result<Vec<f64>> {
    let values: Vec<f64> = text.split(',').map(|text| real(option, text)).collect::<Result<_>>()?;
    if values.len() != count {
        return Err(Fail::input(format!(
            "{option} must give {count} numbers, one for each modality, not {}",
            values.len()
        )));
    }
    Ok(values)
}
