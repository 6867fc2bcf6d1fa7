//! Makes labels, and how they take part, of what Python hands in.

use msbdl::{Labels, TaskConfig, Validation};
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;

use super::error::exception;
use super::settings::Each;

/// A class for each sample, or a column for each tag.
#[derive(FromPyObject)]
pub enum Given<'py> {
    Tags((Vec<String>, PyReadonlyArray2<'py, f64>)),
    Classes(Vec<Option<String>>),
}

/// The keyword arguments of a task.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Task<'py> {
    labels: Given<'py>,
    validation: f64,
    beta0: Option<Each<f64>>,
    alpha_beta: Option<f64>,
    nu: Option<f64>,
    validate_every: Option<usize>,
    balance: bool,
}

impl Task<'_> {
    pub fn checked(self) -> PyResult<(Labels, TaskConfig)> {
        let labels = match self.labels {
            Given::Classes(classes) => Labels::classes(&classes),
            Given::Tags((names, tags)) => Labels::tags(Some(names), tags.as_array().to_owned()),
        };
        let config = TaskConfig {
            validation: Validation::Share(self.validation),
            beta0: self.beta0.map(Into::into),
            alpha_beta: self.alpha_beta,
            nu: self.nu,
            validate_every: self.validate_every,
            balance: self.balance,
        };
        Ok((labels.map_err(exception)?, config))
    }
}
