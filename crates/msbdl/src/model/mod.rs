//! Keeps what was learnt: the model and its file, codes of new samples, a summary.

pub mod classifier;
mod classifier_file;
pub mod encode;
pub mod file;
pub(crate) mod memory;
#[cfg(test)]
mod memory_errors;
mod memory_file;
pub mod predict;
pub(crate) mod soft;
pub mod summary;

use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};

use crate::input::branches::{Branches, Groups};
use crate::input::config::Preset;
use crate::input::prior::{PriorKind, Slab};
use crate::support::observe::Facts;
use classifier::Classifier;
use memory::Memory;
use summary::Summary;

/// Why a fit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The noise of every modality has settled.
    Converged,
    /// The procedure ran to its end, but the noise of some modality was still changing.
    NotSettled,
    /// The largest number of iterations was reached first.
    MaxIterations,
    /// The observer asked for it.
    Interrupted,
    /// The validation samples gained nothing any more.
    Validated,
}

/// One modality's part of a model, in the user's units: y = mean + D x + noise.
#[derive(Clone, Debug)]
pub struct ModalityModel {
    pub name: String,
    /// N x M, unit columns.
    pub dictionary: Array2<f64>,
    pub mean: Array1<f64>,
    /// The library's y is (y - mean) / scale.
    pub scale: f64,
    /// Noise variance.
    pub sigma2: f64,
}

/// Dictionaries of several modalities, and how they came about.
#[derive(Clone, Debug)]
pub struct Model {
    /// In the order of their names.
    pub modalities: Vec<ModalityModel>,
    pub preset: Preset,
    pub prior: PriorKind,
    /// Which atoms belong together; branch k has atom k of the root modality.
    pub branches: Branches,
    /// Per branch: whether its atoms can be told apart, or only their span is known since leaves
    /// are always on together.
    pub identified: Vec<bool>,
    pub seed: u64,
    pub stop_reason: StopReason,
    pub history: Vec<Facts>,
    /// How coefficients of new samples are switched on and off.
    pub slab: Slab,
    pub summary: Summary,
    /// How labels are told from codes, if there were any.
    pub classifier: Option<Classifier>,
    /// What learning can go on from; none in files of before it was kept.
    pub(crate) memory: Option<Memory>,
}

impl Model {
    /// The number of branches, which is that of the root's atoms; with the one-to-one prior,
    /// that of every modality.
    pub fn n_branches(&self) -> usize {
        self.branches.count()
    }

    /// The branches as users write them.
    pub fn groups(&self) -> Groups {
        let names: Vec<&str> = self.modalities.iter().map(|x| x.name.as_str()).collect();
        self.branches.to_groups(&names)
    }

    /// Whether the noise of every modality had settled when the fit ended.
    pub fn converged(&self) -> bool {
        self.stop_reason == StopReason::Converged
    }

    /// Whether learning can go on from it, see [`Stream`](crate::Stream).
    pub fn has_sums(&self) -> bool {
        self.memory.is_some()
    }

    /// The classes or tags that batches may have, also those that no sample has had yet; none if
    /// it was learnt without labels.
    pub fn label_names(&self) -> Option<&[String]> {
        let taught = self.memory.as_ref().and_then(|memory| memory.taught.as_ref());
        let known = self.classifier.as_ref().map(|classifier| &classifier.names);
        taught.map(|taught| &taught.names).or(known).map(Vec::as_slice)
    }

    /// The same model without any of the samples that it was taught with.
    pub fn without_samples(mut self) -> Self {
        if let Some(taught) = self.memory.as_mut().and_then(|memory| memory.taught.as_mut()) {
            taught.kept = None;
        }
        self
    }

    pub fn modality(&self, name: &str) -> Option<&ModalityModel> {
        self.modalities.iter().find(|modality| modality.name == name)
    }
}
