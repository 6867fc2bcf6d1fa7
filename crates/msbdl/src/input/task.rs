//! Turns what the user wants of the labels ([`TaskConfig`]) into a checked [`TaskPlan`].

use rand::seq::SliceRandom;

use super::config::{PerModality, Preset, setting, spread};
use super::data::Data;
use super::labels::{LabelKind, Labels};
use crate::support::error::{Error, Result};
use crate::support::random::{Purpose, stream};

/// Labelled samples whose labels learning does not see, so that they can judge it.
#[derive(Clone, Debug, PartialEq)]
pub enum Validation {
    /// This share of every class, drawn by the seed; nought for none at all.
    Share(f64),
    /// These samples.
    Rows(Vec<usize>),
}

/// How labels take part in learning; everything has a default.
#[derive(Clone, Debug)]
pub struct TaskConfig {
    pub validation: Validation,
    /// Label noise (standard deviation) at the start.
    pub beta0: Option<PerModality<f64>>,
    /// Factor on beta per annealing step.
    pub alpha_beta: Option<f64>,
    /// Ridge on W: W = (sum h mu^T)(C + nu I)^-1.
    pub nu: Option<f64>,
    /// Iterations between looks at the validation samples.
    pub validate_every: Option<usize>,
    /// Let every class count the same in the read-out, however many samples it has.
    pub balance: bool,
}

impl Default for TaskConfig {
    fn default() -> Self {
        TaskConfig {
            validation: Validation::Share(VALIDATION),
            beta0: None,
            alpha_beta: None,
            nu: None,
            validate_every: None,
            balance: false,
        }
    }
}

/// The share that is set aside unless the user says otherwise.
const VALIDATION: f64 = 0.2;
/// Factor on beta^2 per iteration: as fast as `auto` lets the noise fall.
const ALPHA2: f64 = 0.967;
/// The paper's, for its own preset.
const ALPHA2_PAPER: f64 = 0.995;
/// Ridge on W per labelled sample, whose codes have about unit energy.
pub(crate) const NU: f64 = 1e-3;
/// Iterations between validations: a fiftieth of a run of `auto`.
const VALIDATE_EVERY: usize = 10;

/// Settings that fit the data and the labels.
#[derive(Clone, Debug)]
pub struct TaskPlan {
    /// Labelled samples that learning sees, and those that judge it.
    pub(crate) shown: Vec<usize>,
    pub(crate) held: Vec<usize>,
    /// beta_j^2 at the start; None: the energy of a label.
    pub(crate) beta2: Vec<Option<f64>>,
    pub(crate) alpha2: f64,
    /// Ridge on W; None: so much per labelled sample.
    pub(crate) nu: Option<f64>,
    pub(crate) validate_every: usize,
    pub(crate) balance: bool,
}

impl TaskConfig {
    /// Checks every setting against the data and the labels.
    pub fn check(
        &self,
        data: &Data,
        labels: &Labels,
        preset: Preset,
        seed: u64,
    ) -> Result<TaskPlan> {
        if labels.n_samples() != data.n_samples() {
            let (found, expected) = (labels.n_samples(), data.n_samples());
            return Err(Error::LabelCount { found, expected });
        }
        let beta0 = match &self.beta0 {
            Some(given) => spread(given, data, "beta0")?,
            None => vec![None; data.modalities().len()],
        };
        for (option, given) in [("alpha-beta", self.alpha_beta), ("nu", self.nu)]
            .into_iter()
            .chain(beta0.iter().map(|beta| ("beta0", *beta)))
        {
            if let Some(x) = given.filter(|x| !(x.is_finite() && *x > 0.0)) {
                return Err(setting(option, "positive", x));
            }
        }
        if let Some(alpha) = self.alpha_beta.filter(|alpha| *alpha >= 1.0) {
            return Err(setting("alpha-beta", "between 0 and 1", alpha));
        }
        if self.validate_every == Some(0) {
            return Err(setting("validate-every", "at least 1", 0));
        }
        let held = self.held(labels, seed)?;
        let shown: Vec<usize> =
            (0..labels.n_samples()).filter(|&i| labels.known()[i] && !held[i]).collect();
        if let Some(class) = labels.shares(&shown).iter().position(|share| *share == 0.0) {
            return Err(Error::LabelWithoutSample { name: labels.names()[class].clone() });
        }
        let alpha2 = if preset == Preset::Paper { ALPHA2_PAPER } else { ALPHA2 };
        Ok(TaskPlan {
            nu: self.nu,
            shown,
            held: (0..held.len()).filter(|&i| held[i]).collect(),
            beta2: beta0.into_iter().map(|beta| beta.map(|beta| beta * beta)).collect(),
            alpha2: self.alpha_beta.map_or(alpha2, |alpha| alpha * alpha),
            validate_every: self.validate_every.unwrap_or(VALIDATE_EVERY),
            balance: self.balance,
        })
    }

    /// The samples whose labels a fit with this seed holds back.
    pub fn held_rows(&self, labels: &Labels, seed: u64) -> Result<Vec<usize>> {
        let held = self.held(labels, seed)?;
        Ok((0..held.len()).filter(|&row| held[row]).collect())
    }

    fn held(&self, labels: &Labels, seed: u64) -> Result<Vec<bool>> {
        let mut held = vec![false; labels.n_samples()];
        match &self.validation {
            Validation::Share(share) if !(0.0..1.0).contains(share) => {
                return Err(setting("validation", "at least 0 and below 1", share));
            }
            Validation::Share(share) => {
                let mut random = stream(seed, Purpose::Validation);
                for group in strata(labels) {
                    let mut rows: Vec<usize> = group.rows;
                    if *share > 0.0 && rows.len() < 2 && labels.kind() == LabelKind::Classes {
                        return Err(Error::ClassTooSmall { name: group.name });
                    }
                    rows.shuffle(&mut random);
                    // At least one of a class on either side.
                    let most = rows.len().saturating_sub(1);
                    let least = usize::from(*share > 0.0).min(most);
                    let count = (share * rows.len() as f64).round() as usize;
                    rows[..count.clamp(least, most)].iter().for_each(|&i| held[i] = true);
                }
            }
            Validation::Rows(rows) => {
                for &row in rows {
                    if row >= held.len() {
                        let expected = format!("below the number of samples, {}", held.len());
                        return Err(setting("validation-rows", &expected, row));
                    }
                    if !labels.known()[row] {
                        return Err(setting("validation-rows", "rows with a label", row));
                    }
                    held[row] = true;
                }
            }
        }
        Ok(held)
    }
}

/// Labelled samples that are split alike.
struct Stratum {
    name: String,
    rows: Vec<usize>,
}

/// The classes; tags are split as one group.
fn strata(labels: &Labels) -> Vec<Stratum> {
    let rows = |wanted: &dyn Fn(usize) -> bool| {
        (0..labels.n_samples()).filter(|&i| labels.known()[i] && wanted(i)).collect()
    };
    match labels.kind() {
        LabelKind::Tags => vec![Stratum { name: "tags".into(), rows: rows(&|_| true) }],
        LabelKind::Classes => {
            let names = labels.names().iter().enumerate();
            names
                .map(|(class, name)| Stratum {
                    name: name.clone(),
                    rows: rows(&|i| labels.class(i) == Some(class)),
                })
                .collect()
        }
    }
}
