//! Writes and reads the classifier's part of a model file.

use ndarray::Array1;
use safetensors::tensor::SafeTensors;
use serde::{Deserialize, Serialize};

use super::ModalityModel;
use super::classifier::{Classifier, Head, Logistic, Projection, ReadOut, ValidationReport};
use super::file::{Read, Tensor, matrix, read, tensor};
use crate::input::labels::{LabelKind, NameType};
use crate::support::logistic::Affine;

/// What is not a tensor. The tensors are `classifier.NAME` (W of the modality NAME) and, of each
/// logistic regression, `logistic.K.weights` and `logistic.K.constants`.
#[derive(Serialize, Deserialize)]
pub(super) struct ClassifierEntry {
    kind: LabelKind,
    names: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name_type: Option<NameType>,
    shares: Vec<f64>,
    read_out: ReadOut,
    beta2: Vec<f64>,
    projection_noise: f64,
    projection_temperature: f64,
    logistic_noise: f64,
    #[serde(default)]
    logistic_values: bool,
    agreement: f64,
    heads: Vec<HeadEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    validation: Option<ValidationReport>,
}

#[derive(Serialize, Deserialize)]
struct HeadEntry {
    /// Places of the modalities.
    uses: Vec<usize>,
    alone: bool,
    #[serde(default)]
    variances: bool,
}

impl ClassifierEntry {
    pub fn new(classifier: &Classifier) -> Self {
        let heads = classifier.logistic.heads.iter();
        ClassifierEntry {
            kind: classifier.kind,
            names: classifier.names.clone(),
            name_type: classifier.name_type,
            shares: classifier.shares.to_vec(),
            read_out: classifier.read_out,
            beta2: classifier.projection.beta2.clone(),
            projection_noise: classifier.projection.noise,
            projection_temperature: classifier.projection.temperature,
            logistic_noise: classifier.logistic.noise,
            logistic_values: classifier.logistic.values,
            agreement: classifier.logistic.agreement,
            heads: heads
                .map(|head| HeadEntry {
                    uses: head.uses.clone(),
                    alone: head.alone,
                    variances: head.variances,
                })
                .collect(),
            validation: classifier.validation.clone(),
        }
    }

    /// The classifier, checked against the modalities it belongs to.
    pub fn with_tensors(
        self,
        modalities: &[ModalityModel],
        tensors: &SafeTensors,
    ) -> Read<Classifier> {
        let c = self.names.len();
        if c == 0 || self.shares.len() != c || self.beta2.len() != modalities.len() {
            return Err("the classifier does not belong to these modalities".into());
        }
        let atoms = |j: usize| modalities[j].dictionary.ncols();
        let mut weights = Vec::new();
        for (j, modality) in modalities.iter().enumerate() {
            weights.push(matrix(tensors, &tensor("classifier", &modality.name), c, atoms(j))?);
        }
        let mut heads = Vec::new();
        for (k, HeadEntry { uses, alone, variances }) in self.heads.into_iter().enumerate() {
            if let Some(j) = uses.iter().find(|&&j| j >= modalities.len()) {
                return Err(format!(
                    "logistic regression {k} uses modality {j}, which is not there"
                ));
            }
            let values = |j: usize| if self.logistic_values { modalities[j].mean.len() } else { 0 };
            let codes = |j: usize| if variances { 2 * atoms(j) } else { atoms(j) };
            let width = uses.iter().map(|&j| codes(j) + values(j)).sum();
            let a = matrix(tensors, &head_tensor(k, "weights"), c, width)?;
            let b = Array1::from(read(tensors, &head_tensor(k, "constants"), &[c])?);
            heads.push(Head { uses, alone, variances, affine: Affine { a, b } });
        }
        for (what, x) in [
            ("noise of the projection", self.projection_noise),
            ("temperature", self.projection_temperature),
            ("noise of the logistic regressions", self.logistic_noise),
            ("agreement", self.agreement),
        ] {
            if !(x.is_finite() && x > 0.0) {
                return Err(format!("the classifier's {what} is {x}"));
            }
        }
        Ok(Classifier {
            kind: self.kind,
            names: self.names,
            name_type: self.name_type,
            shares: Array1::from(self.shares),
            read_out: self.read_out,
            projection: Projection {
                weights,
                beta2: self.beta2,
                noise: self.projection_noise,
                temperature: self.projection_temperature,
            },
            logistic: Logistic {
                n_modalities: modalities.len(),
                values: self.logistic_values,
                noise: self.logistic_noise,
                heads,
                agreement: self.agreement,
            },
            validation: self.validation,
        })
    }
}

/// The tensors of a classifier.
pub(super) fn tensors(classifier: &Classifier, modalities: &[ModalityModel]) -> Vec<Tensor> {
    let mut all = Vec::new();
    for (modality, w) in modalities.iter().zip(&classifier.projection.weights) {
        all.push(Tensor::new(tensor("classifier", &modality.name), w));
    }
    for (k, head) in classifier.logistic.heads.iter().enumerate() {
        let Affine { a, b } = &head.affine;
        all.push(Tensor::new(head_tensor(k, "weights"), a));
        all.push(Tensor::new(head_tensor(k, "constants"), b));
    }
    all
}

fn head_tensor(k: usize, what: &str) -> String {
    format!("logistic.{k}.{what}")
}
