//! Makes labels, and how they take part, of what Python hands in.

use msbdl::{Labels, TaskConfig, Validation};
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;

use super::error::exception;
use super::settings::Each;

/// A column for each tag, a class for each sample, or the same with the classes there may be.
#[derive(FromPyObject)]
pub enum Given<'py> {
    Tags((Vec<String>, PyReadonlyArray2<'py, f64>)),
    Among((Vec<String>, Vec<Option<String>>)),
    Classes(Vec<Option<String>>),
}

impl Given<'_> {
    pub fn checked(self) -> PyResult<Labels> {
        let labels = match self {
            Given::Tags((names, tags)) => Labels::tags(Some(names), tags.as_array().to_owned()),
            Given::Among((names, classes)) => Labels::among(names, &classes),
            Given::Classes(classes) => Labels::classes(&classes),
        };
        labels.map_err(exception)
    }
}

/// Labelled samples to hold back: a share, or rows.
#[derive(FromPyObject)]
pub enum Held {
    Share(f64),
    Rows(Vec<usize>),
}

/// The keyword arguments of a task.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Task {
    validation: Held,
    beta0: Option<Each<f64>>,
    alpha_beta: Option<f64>,
    nu: Option<f64>,
    validate_every: Option<usize>,
    balance: bool,
}

impl Task {
    pub fn config(self) -> TaskConfig {
        TaskConfig {
            validation: match self.validation {
                Held::Share(share) => Validation::Share(share),
                Held::Rows(rows) => Validation::Rows(rows),
            },
            beta0: self.beta0.map(Into::into),
            alpha_beta: self.alpha_beta,
            nu: self.nu,
            validate_every: self.validate_every,
            balance: self.balance,
        }
    }
}
