//! Lets others see each iteration and stop the run; the library itself prints nothing.

use serde::{Deserialize, Serialize};

/// The facts of one iteration.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Facts {
    /// EM iterations done, this one included.
    pub iteration: usize,
    /// Which part of the procedure this is.
    pub stage: String,
    /// log p(Y | D, gamma, sigma) before the iteration's update, in the user's units;
    /// of the batch alone for the batch schedule.
    pub log_likelihood: f64,
    /// Noise standard deviation per modality before the update, in the user's units.
    pub sigma: Vec<f64>,
    /// Label noise per modality (standard deviation); empty without labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beta: Vec<f64>,
    /// Share of the validation samples' labels that W mu tells, where they were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validation: Option<f64>,
    /// |D_new - D_old| / |D_old| per modality.
    pub dictionary_change: Vec<f64>,
    /// Columns replaced because they were idle or twins.
    pub atoms_cleaned: usize,
    /// Columns moved because they were paired with the wrong column of another modality.
    pub columns_paired: usize,
    /// Passes over all samples so far.
    pub e_steps: f64,
    /// The share of the run that is done, as far as can be foreseen.
    pub progress: f64,
    /// Seconds since the start; not stored in models, so that the same seed gives the same file.
    #[serde(skip)]
    pub seconds: f64,
}

/// What the observer wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Continue,
    Stop,
}

/// Sees every iteration.
pub trait Observer {
    fn see(&mut self, facts: &Facts) -> Next;
}

/// Watches nothing.
pub struct Silent;

impl Observer for Silent {
    fn see(&mut self, _: &Facts) -> Next {
        Next::Continue
    }
}

impl<F: FnMut(&Facts) -> Next> Observer for F {
    fn see(&mut self, facts: &Facts) -> Next {
        self(facts)
    }
}
