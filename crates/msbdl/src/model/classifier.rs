//! Reads labels off codes, by the paper's W_j mu_j or by logistic regression.

use ndarray::{Array1, Array2, ArrayView2, Axis, concatenate};
use serde::{Deserialize, Serialize};

use super::Model;
use super::soft::SoftCodes;
use crate::input::data::Data;
use crate::input::labels::{LabelKind, NameType};
use crate::support::linalg;
use crate::support::logistic::{self, Affine};

/// What labels are read off with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadOut {
    /// The paper's W_j mu_j, fused over the modalities by precision.
    Projection,
    /// Logistic regression on codes that were made without labels.
    Logistic,
}

/// Everything that turns codes into labels.
#[derive(Clone, Debug)]
pub struct Classifier {
    pub kind: LabelKind,
    /// The classes or tags.
    pub names: Vec<String>,
    /// What the names were before they became text, where that was said.
    pub name_type: Option<NameType>,
    /// Share of the labelled samples that have each.
    pub shares: Array1<f64>,
    /// The one that validated best.
    pub read_out: ReadOut,
    pub projection: Projection,
    pub logistic: Logistic,
    /// What the validation samples said; none if there were none.
    pub validation: Option<ValidationReport>,
}

/// The paper's read-out.
#[derive(Clone, Debug)]
pub struct Projection {
    /// W_j, C x M_j, for codes in the library's units; modalities in the order of their names.
    pub weights: Vec<Array2<f64>>,
    /// beta_j^2
    pub beta2: Vec<f64>,
    /// Multiple of the noise under which samples are coded.
    pub noise: f64,
    /// Factor that makes scores log-odds.
    pub temperature: f64,
}

/// Logistic regressions, each on the codes of some modalities.
#[derive(Clone, Debug)]
pub struct Logistic {
    /// How many modalities a complete sample has.
    pub n_modalities: usize,
    /// Whether the samples' values stand beside their codes.
    pub values: bool,
    /// Multiple of the noise under which samples are coded.
    pub noise: f64,
    pub heads: Vec<Head>,
    /// Factor on the summed log-odds of several modalities, which are not independent.
    pub agreement: f64,
}

/// Scores A x + b of the codes x of some modalities.
#[derive(Clone, Debug)]
pub struct Head {
    /// Places of the modalities.
    pub uses: Vec<usize>,
    /// For samples that have no other modality, and were coded without.
    pub alone: bool,
    /// Whether log-variances of the codes stand beside them. They tell which atoms the other
    /// modalities ask for, and only of complete samples are they what was learnt from.
    pub variances: bool,
    pub(crate) affine: Affine,
}

/// How well the validation samples' labels were told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationReport {
    pub n_samples: usize,
    pub projection: ReadOutReport,
    pub logistic: ReadOutReport,
}

/// One read-out's part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadOutReport {
    /// Accuracy, or for tags the share of a sample's k tags among the k most probable.
    pub accuracy: f64,
    /// Mean of -log p(label).
    pub log_loss: f64,
    /// Expected calibration error of the probabilities.
    pub calibration_error: f64,
}

/// Scores (log-odds up to a constant) of all samples together and by modality.
pub(crate) struct Scores {
    pub fused: Array2<f64>,
    /// Per modality; rows of samples that lack it are NaN.
    pub votes: Vec<Array2<f64>>,
}

impl Classifier {
    /// What a read-out looks at.
    pub(crate) fn codes(&self, model: &Model, data: &Data, read_out: ReadOut) -> SoftCodes {
        match read_out {
            ReadOut::Projection => model.soft_codes(data, self.projection.noise),
            ReadOut::Logistic => self.logistic.codes(model, data),
        }
    }

    /// `modalities[j]` is the place of codes j among the model's modalities.
    pub(crate) fn scores(
        &self,
        read_out: ReadOut,
        codes: &SoftCodes,
        modalities: &[usize],
        present: &[&[bool]],
    ) -> Scores {
        match read_out {
            ReadOut::Projection => {
                self.projection.scores(self.kind, &self.shares, codes, modalities, present)
            }
            ReadOut::Logistic => {
                self.logistic.scores(self.kind, &self.shares, codes, modalities, present)
            }
        }
    }

    pub(crate) fn probabilities(&self, scores: ArrayView2<f64>) -> Array2<f64> {
        logistic::probabilities(scores, self.kind)
    }
}

impl Projection {
    /// Means of shares + W_j mu_j, weighted by 1 / (beta_j^2 + diag(W_j Sigma_j W_j^T)), with
    /// Sigma_j taken as diagonal; the scores are those times a factor.
    pub(crate) fn scores(
        &self,
        kind: LabelKind,
        shares: &Array1<f64>,
        codes: &SoftCodes,
        modalities: &[usize],
        present: &[&[bool]],
    ) -> Scores {
        // A tag is there when its share is above a half.
        let middle = if kind == LabelKind::Tags { 0.5 } else { 0.0 };
        let (l, c) = (codes.mean[0].nrows(), shares.len());
        let (mut sum, mut weight) = (Array2::<f64>::zeros((l, c)), Array2::<f64>::zeros((l, c)));
        let mut votes = Vec::new();
        for (place, &j) in modalities.iter().enumerate() {
            let w = &self.weights[j];
            let mut told = linalg::product(codes.mean[place].view(), w.t()) + shares - middle;
            let doubt = linalg::product(codes.variance[place].view(), w.mapv(|w| w * w).t())
                + self.beta2[j];
            for row in 0..l {
                if !present[place][row] {
                    told.row_mut(row).fill(f64::NAN);
                    continue;
                }
                for c in 0..c {
                    sum[[row, c]] += told[[row, c]] / doubt[[row, c]];
                    weight[[row, c]] += 1.0 / doubt[[row, c]];
                }
            }
            votes.push(told * self.temperature);
        }
        Scores { fused: sum / weight * self.temperature, votes }
    }
}

impl Logistic {
    pub(crate) fn codes(&self, model: &Model, data: &Data) -> SoftCodes {
        let codes = model.soft_codes(data, self.noise);
        if self.values { codes.beside_values(data, model) } else { codes }
    }

    /// `variances` prefers one that reads them.
    fn head(&self, uses: &[usize], alone: bool, variances: bool) -> Option<&Head> {
        let mut fit = self.heads.iter().filter(|head| head.uses == uses && head.alone == alone);
        let first = fit.clone().find(|head| head.variances == variances);
        first.or_else(|| fit.find(|head| !head.variances))
    }

    pub(crate) fn scores(
        &self,
        kind: LabelKind,
        shares: &Array1<f64>,
        codes: &SoftCodes,
        modalities: &[usize],
        present: &[&[bool]],
    ) -> Scores {
        let (l, c) = (codes.mean[0].nrows(), shares.len());
        let known_before = log_odds(shares, kind);
        let nan = Array2::from_elem((l, c), f64::NAN);
        let mut scores = Scores {
            fused: Array2::zeros((l, c)),
            votes: modalities.iter().map(|_| nan.clone()).collect(),
        };
        for (pattern, rows) in patterns(present, l) {
            let uses: Vec<usize> = pattern.iter().map(|&place| modalities[place]).collect();
            let alone = uses.len() == 1;
            let complete = uses.len() == self.n_modalities;
            let mut sum: Array2<f64> = Array2::zeros((rows.len(), c));
            for (&place, j) in pattern.iter().zip(&uses) {
                let vote = |variances: bool| {
                    let head = self.head(&[*j], alone, variances);
                    match head.or_else(|| self.head(&[*j], false, variances)) {
                        Some(head) => head.scores(codes, &[place], &rows),
                        // No labelled sample had the modality.
                        None => &Array2::zeros((rows.len(), c)) + &known_before,
                    }
                };
                assign(&mut scores.votes[place], &rows, &vote(complete));
                // Variances repeat what the others say.
                sum += &(centred(vote(false), kind) - &known_before);
            }
            let fused = match self.head(&uses, alone, complete) {
                _ if alone => sum + &known_before,
                Some(head) => head.scores(codes, &pattern, &rows),
                None => sum * self.agreement + &known_before,
            };
            assign(&mut scores.fused, &rows, &fused);
        }
        scores
    }
}

impl Head {
    fn scores(&self, codes: &SoftCodes, places: &[usize], rows: &[usize]) -> Array2<f64> {
        let x = design(codes, places, rows);
        match self.variances {
            true => self
                .affine
                .scores(concatenate![Axis(1), x, log_variances(codes, places, rows)].view()),
            false => self.affine.scores(x.view()),
        }
    }
}

/// The codes of some modalities side by side.
pub(crate) fn design(codes: &SoftCodes, places: &[usize], rows: &[usize]) -> Array2<f64> {
    side_by_side(&codes.mean, places, rows)
}

/// Logarithms of the codes' variances, of some modalities side by side.
pub(crate) fn log_variances(codes: &SoftCodes, places: &[usize], rows: &[usize]) -> Array2<f64> {
    /// In the library's units, in which data have unit size: all that is smaller is nought.
    const LEAST: f64 = 1e-12;
    side_by_side(&codes.variance, places, rows).mapv_into(|variance| variance.max(LEAST).ln())
}

fn side_by_side(arrays: &[Array2<f64>], places: &[usize], rows: &[usize]) -> Array2<f64> {
    let parts: Vec<_> = places.iter().map(|&place| arrays[place].select(Axis(0), rows)).collect();
    let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
    // The parts have the same rows by construction.
    concatenate(Axis(1), &views).unwrap_or_default()
}

/// Samples by the modalities that they have.
fn patterns(present: &[&[bool]], l: usize) -> Vec<(Vec<usize>, Vec<usize>)> {
    let mut all: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    for row in 0..l {
        let has: Vec<usize> = (0..present.len()).filter(|&place| present[place][row]).collect();
        match all.iter_mut().find(|(pattern, _)| *pattern == has) {
            Some((_, rows)) => rows.push(row),
            None => all.push((has, vec![row])),
        }
    }
    all
}

fn assign(to: &mut Array2<f64>, rows: &[usize], from: &Array2<f64>) {
    rows.iter().zip(from.rows()).for_each(|(&row, from)| to.row_mut(row).assign(&from));
}

/// Scores of classes are only known up to a constant; this one makes them log-probabilities.
fn centred(mut scores: Array2<f64>, kind: LabelKind) -> Array2<f64> {
    if kind == LabelKind::Classes {
        for mut row in scores.rows_mut() {
            let top = row.fold(f64::NEG_INFINITY, |a, &b| a.max(b));
            let sum: f64 = row.iter().map(|z| (z - top).exp()).sum();
            row -= top + sum.ln();
        }
    }
    scores
}

/// Scores that say no more than how frequent the labels are.
fn log_odds(shares: &Array1<f64>, kind: LabelKind) -> Array1<f64> {
    // Never quite certain.
    shares.mapv(|share| share.clamp(1e-6, 1.0 - 1e-6)).mapv(|share| match kind {
        LabelKind::Classes => share.ln(),
        LabelKind::Tags => (share / (1.0 - share)).ln(),
    })
}
