//! Makes the library's settings of Python's.

use std::collections::BTreeMap;

use msbdl::{Config, PerModality, Posterior, Preset, PriorKind, Schedule};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// One value, or one by modality.
#[derive(FromPyObject)]
pub enum Each<T> {
    Same(T),
    ByName(BTreeMap<String, T>),
}

impl<T> From<Each<T>> for PerModality<T> {
    fn from(each: Each<T>) -> Self {
        match each {
            Each::Same(value) => PerModality::Same(value),
            Each::ByName(values) => PerModality::ByName(values.into_iter().collect()),
        }
    }
}

/// The keyword arguments of a fit.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Settings {
    n_atoms: Each<usize>,
    preset: String,
    prior: String,
    /// As JSON.
    groups: Option<String>,
    root: Option<String>,
    max_leaves: Option<usize>,
    schedule: Option<String>,
    batch_size: Option<usize>,
    posterior: Option<String>,
    sigma0: Option<Each<f64>>,
    sigma_inf: Option<f64>,
    alpha: Option<f64>,
    max_iter: Option<usize>,
    seed: u64,
    threads: usize,
}

impl TryFrom<Settings> for Config {
    type Error = PyErr;

    fn try_from(given: Settings) -> PyResult<Self> {
        let mut config = Config::new(0);
        config.n_atoms = given.n_atoms.into();
        config.preset = choose("preset", &PRESETS, &given.preset)?;
        config.prior = choose("prior", &PRIORS, &given.prior)?;
        let groups = given.groups.map(|groups| serde_json::from_str(&groups));
        config.groups = groups.transpose().map_err(|error| {
            PyValueError::new_err(format!("groups must be a list of branches: {error}"))
        })?;
        config.root = given.root;
        config.max_leaves = given.max_leaves;
        config.schedule = given.schedule.map(|x| choose("schedule", &SCHEDULES, &x)).transpose()?;
        config.batch_size = given.batch_size;
        config.posterior =
            given.posterior.map(|x| choose("posterior", &POSTERIORS, &x)).transpose()?;
        config.sigma0 = given.sigma0.map(Into::into);
        config.sigma_inf = given.sigma_inf;
        config.alpha = given.alpha;
        config.max_iter = given.max_iter;
        config.seed = given.seed;
        config.threads = given.threads;
        Ok(config)
    }
}

const PRESETS: [(&str, Preset); 6] = [
    ("auto", Preset::Auto),
    ("paper", Preset::Paper),
    ("msbdl-1", Preset::Msbdl1),
    ("msbdl-2", Preset::Msbdl2),
    ("msbdl-3", Preset::Msbdl3),
    ("msbdl-4", Preset::Msbdl4),
];
const PRIORS: [(&str, PriorKind); 4] = [
    ("one-to-one", PriorKind::OneToOne),
    ("atom-to-subspace", PriorKind::AtomToSubspace),
    ("hierarchical", PriorKind::Hierarchical),
    ("tree", PriorKind::Tree),
];
const SCHEDULES: [(&str, Schedule); 3] =
    [("full", Schedule::Full), ("incremental", Schedule::Incremental), ("batch", Schedule::Batch)];
const POSTERIORS: [(&str, Posterior); 2] =
    [("exact", Posterior::Exact), ("approximate", Posterior::Approximate)];

pub fn choose<T: Copy>(option: &str, choices: &[(&str, T)], given: &str) -> PyResult<T> {
    let found = choices.iter().find(|(name, _)| *name == given);
    found.map(|(_, choice)| *choice).ok_or_else(|| {
        let known: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        PyValueError::new_err(format!("{option} must be one of {known:?}, not '{given}'"))
    })
}

/// The name that Python knows a prior by.
pub fn prior_name(prior: PriorKind) -> &'static str {
    PRIORS.iter().find(|(_, known)| *known == prior).map_or("", |(name, _)| name)
}

/// The name that Python knows a preset by.
pub fn preset_name(preset: Preset) -> &'static str {
    PRESETS.iter().find(|(_, known)| *known == preset).map_or("", |(name, _)| name)
}
