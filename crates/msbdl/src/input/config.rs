//! Turns the user's wishes ([`Config`]) into a checked [`Plan`]. There is no other gate.

use serde::{Deserialize, Serialize};

use super::branches::Groups;
use super::data::Data;
use super::prior::PriorKind;
use super::shape::Shape;
use crate::learn::e_step::Posterior;
use crate::learn::em::Schedule;
use crate::support::error::{Error, Result};

/// One value for all modalities, or one for each by name.
#[derive(Clone, Debug, PartialEq)]
pub enum PerModality<T> {
    Same(T),
    ByName(Vec<(String, T)>),
}

/// A procedure under its own name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Finds the noise by itself; full EM with exact posteriors.
    Auto,
    /// The paper's algorithm with the paper's constants.
    Paper,
    /// `Auto` with incremental EM.
    Msbdl1,
    /// `Auto` with incremental EM and approximate posteriors.
    Msbdl2,
    /// `Auto` with batch EM.
    Msbdl3,
    /// `Auto` with batch EM and approximate posteriors.
    Msbdl4,
}

/// What the user wants; everything but the number of atoms has a default.
#[derive(Clone, Debug)]
pub struct Config {
    /// With a tree prior, that of the root alone is enough.
    pub n_atoms: PerModality<usize>,
    pub preset: Preset,
    pub prior: PriorKind,
    /// Which atoms form a branch (tree priors); learnt if not given.
    pub groups: Option<Groups>,
    /// The modality of the roots (tree priors).
    pub root: Option<String>,
    /// The most atoms of another modality that hang under a root, where that is learnt.
    pub max_leaves: Option<usize>,
    /// Overrides the preset's schedule.
    pub schedule: Option<Schedule>,
    /// Samples per block of the incremental and batch schedules.
    pub batch_size: Option<usize>,
    /// Overrides the preset's posterior.
    pub posterior: Option<Posterior>,
    /// Noise standard deviation at the start, in the user's units (preset `Paper` only).
    pub sigma0: Option<PerModality<f64>>,
    /// Noise standard deviation at which annealing ends, in the user's units (`Paper` only).
    pub sigma_inf: Option<f64>,
    /// Factor on sigma per annealing step (`Paper` only).
    pub alpha: Option<f64>,
    pub max_iter: Option<usize>,
    pub seed: u64,
    /// Threads to use; nought means one per core. The result does not depend on it.
    pub threads: usize,
}

impl Config {
    /// The defaults, with `n_atoms` atoms in every modality.
    pub fn new(n_atoms: usize) -> Self {
        Config {
            n_atoms: PerModality::Same(n_atoms),
            preset: Preset::Auto,
            prior: PriorKind::OneToOne,
            groups: None,
            root: None,
            max_leaves: None,
            schedule: None,
            batch_size: None,
            posterior: None,
            sigma0: None,
            sigma_inf: None,
            alpha: None,
            max_iter: None,
            seed: 0,
            threads: 0,
        }
    }

    /// Checks every setting against the data.
    pub fn check(&self, data: &Data) -> Result<Plan> {
        let shape = self.shape(data)?;
        let (schedule, posterior) = self.preset.parts();
        let schedule = self.schedule.unwrap_or(schedule);
        let batch_size = self.batch_size(data, schedule)?;
        if self.preset != Preset::Paper {
            let given = [
                ("sigma0", self.sigma0.is_some()),
                ("sigma-inf", self.sigma_inf.is_some()),
                ("alpha", self.alpha.is_some()),
            ];
            if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
                return Err(Error::Setting {
                    option,
                    expected: "left to the data, or used with the preset 'paper'".into(),
                    found: "given".into(),
                });
            }
        }
        if self.max_iter == Some(0) {
            return Err(setting("max-iter", "at least 1", 0));
        }
        Ok(Plan {
            shape,
            preset: self.preset,
            schedule,
            batch_size,
            posterior: self.posterior.unwrap_or(posterior),
            anneal: self.anneal(data)?,
            max_iter: self.max_iter.unwrap_or(MAX_PASSES * data.n_samples().div_ceil(batch_size)),
            seed: self.seed,
            threads: self.threads,
        })
    }

    fn batch_size(&self, data: &Data, schedule: Schedule) -> Result<usize> {
        let l = data.n_samples();
        match (self.batch_size, schedule) {
            (Some(_), Schedule::Full) => Err(setting(
                "batch-size",
                "used with the schedules 'incremental' and 'batch'",
                "given with 'full'",
            )),
            (Some(0), _) => Err(setting("batch-size", "at least 1", 0)),
            (Some(size), _) if size > l => {
                Err(setting("batch-size", &format!("at most the number of samples, {l}"), size))
            }
            (Some(size), _) => Ok(size),
            (None, Schedule::Full) => Ok(l),
            // The paper's choice for L = 1000.
            (None, _) => Ok(l.div_ceil(2)),
        }
    }

    fn anneal(&self, data: &Data) -> Result<Anneal> {
        for (option, given) in [("sigma-inf", self.sigma_inf), ("alpha", self.alpha)] {
            if let Some(x) = given.filter(|x| !(x.is_finite() && *x > 0.0)) {
                return Err(setting(option, "positive", x));
            }
        }
        if let Some(alpha) = self.alpha.filter(|alpha| *alpha >= 1.0) {
            return Err(setting("alpha", "between 0 and 1", alpha));
        }
        let sigma0 = match &self.sigma0 {
            Some(given) => spread(given, data, "sigma0")?,
            None => vec![None; data.modalities().len()],
        };
        if let Some(x) = sigma0.iter().flatten().find(|x| !(x.is_finite() && **x > 0.0)) {
            return Err(setting("sigma0", "positive", x));
        }
        for (modality, sigma) in data.modalities().iter().zip(&sigma0) {
            let ratio = sigma.or(self.sigma_inf).unwrap_or(modality.scale()) / modality.scale();
            if !(1e-12..1e12).contains(&ratio) {
                let expected = format!("comparable with modality '{}'", modality.name());
                return Err(setting("sigma0", &expected, ratio * modality.scale()));
            }
        }
        let start = data.modalities().iter().zip(sigma0).map(|(modality, given)| match given {
            Some(sigma) => (sigma / modality.scale()).powi(2),
            None => START / modality.n_features() as f64,
        });
        let end = data.modalities().iter().map(|modality| match self.sigma_inf {
            Some(sigma) => (sigma / modality.scale()).powi(2),
            None => END / modality.n_features() as f64,
        });
        let alpha2 = self.alpha.map_or(ALPHA2, |alpha| alpha * alpha);
        Ok(Anneal { start: start.collect(), end: end.collect(), alpha2 })
    }
}

/// Passes over the samples after which every procedure ends; the paper's needs a few thousand.
const MAX_PASSES: usize = 20_000;
/// The paper's sigma_1^0 = 1 on its data, as a multiple of the mean energy per value.
const START: f64 = 4.0;
/// The paper's sigma^inf = sqrt(1e-3) on its data, likewise.
const END: f64 = 4e-3;
/// The paper's alpha_sigma^2.
const ALPHA2: f64 = 0.995;

/// The paper's annealing of the noise variances, in the library's units.
#[derive(Clone, Debug)]
pub(crate) struct Anneal {
    pub start: Vec<f64>,
    pub end: Vec<f64>,
    /// Factor on the variance per step.
    pub alpha2: f64,
}

/// Settings that fit the data.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) shape: Shape,
    pub(crate) preset: Preset,
    pub(crate) schedule: Schedule,
    pub(crate) batch_size: usize,
    pub(crate) posterior: Posterior,
    pub(crate) anneal: Anneal,
    pub(crate) max_iter: usize,
    pub(crate) seed: u64,
    pub(crate) threads: usize,
}

impl Preset {
    fn parts(self) -> (Schedule, Posterior) {
        match self {
            Preset::Auto | Preset::Paper => (Schedule::Full, Posterior::Exact),
            Preset::Msbdl1 => (Schedule::Incremental, Posterior::Exact),
            Preset::Msbdl2 => (Schedule::Incremental, Posterior::Approximate),
            Preset::Msbdl3 => (Schedule::Batch, Posterior::Exact),
            Preset::Msbdl4 => (Schedule::Batch, Posterior::Approximate),
        }
    }
}

pub(crate) fn setting(option: &'static str, expected: &str, found: impl ToString) -> Error {
    Error::Setting { option, expected: expected.to_owned(), found: found.to_string() }
}

/// The value of each modality of the data, if one was given.
pub(crate) fn spread<T: Copy>(
    given: &PerModality<T>,
    data: &Data,
    option: &'static str,
) -> Result<Vec<Option<T>>> {
    let names: Vec<&str> = data.modalities().iter().map(|modality| modality.name()).collect();
    match given {
        PerModality::Same(value) => Ok(vec![Some(*value); names.len()]),
        PerModality::ByName(pairs) => {
            let mut each = vec![None; names.len()];
            for (name, value) in pairs {
                let Some(j) = names.iter().position(|known| known == name) else {
                    let known = names.join(", ");
                    return Err(Error::UnknownModality { option, name: name.clone(), known });
                };
                if each[j].replace(*value).is_some() {
                    return Err(setting(
                        option,
                        "given once a modality",
                        format!("'{name}' twice"),
                    ));
                }
            }
            Ok(each)
        }
    }
}
