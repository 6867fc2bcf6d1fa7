//! Fits the read-outs on codes made without labels, as test samples are coded, and lets the
//! validation samples choose between them.
//!
//! W_j is learnt from codes that have seen the label, which the codes of test samples have not;
//! logistic regression on codes of the latter kind makes good what that costs.

use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use rayon::prelude::*;

use super::beside::{Beside, size};
use crate::input::data::Data;
use crate::input::labels::{LabelKind, Labels};
use crate::input::task::TaskPlan;
use crate::model::Model;
use crate::model::classifier::{
    Classifier, Head, Logistic, Projection, ReadOut, ReadOutReport, ValidationReport, design,
    log_variances,
};
use crate::model::soft::SoftCodes;
use crate::support::logistic::{self, Affine};
use crate::support::score;

/// Multiples of the noise that codes are tried under. Under the last, codes are nearly linear in the
/// values; a thousand would cost some accuracy where there are many samples.
const NOISE: [f64; 6] = [1.0, 3.0, 10.0, 30.0, 100.0, 300.0];
/// The one that is taken where no validation sample can tell.
const NOISE_UNTRIED: f64 = 10.0;
/// Ridges that are tried, on codes of unit size; each fit starts from the one before.
const RIDGE: [f64; 5] = [150.0, 30.0, 6.0, 1.2, 0.25];
const RIDGE_UNTRIED: f64 = 6.0;

/// What is learnt from: labelled samples, those that were shown first, then those held back.
struct Cases<'a> {
    data: Data,
    h: Array2<f64>,
    kind: LabelKind,
    shares: Array1<f64>,
    n_shown: usize,
    weight: Array1<f64>,
    model: &'a Model,
}

/// `w` are the projections to choose from, the last one that was learnt first.
pub(crate) fn fit_read_outs(
    model: &Model,
    data: &Data,
    labels: &Labels,
    plan: &TaskPlan,
    w: Vec<Vec<Array2<f64>>>,
    beta2: &[f64],
) -> Classifier {
    let rows: Vec<usize> = plan.shown.iter().chain(&plan.held).copied().collect();
    let all: Vec<usize> = (0..data.modalities().len()).collect();
    let shares = labels.shares(&plan.shown);
    let h = labels.h().select(Axis(0), &rows);
    let cases = Cases {
        data: data.select(&rows, &all),
        weight: weights(&h, &shares, plan.balance && labels.kind() == LabelKind::Classes),
        h,
        kind: labels.kind(),
        shares,
        n_shown: plan.shown.len(),
        model,
    };
    let noise = if cases.n_held() > 0 { NOISE.to_vec() } else { vec![NOISE_UNTRIED] };
    let codes: Vec<SoftCodes> =
        noise.iter().map(|&noise| model.soft_codes(&cases.data, noise)).collect();
    let coded: Vec<(f64, &SoftCodes)> = noise.into_iter().zip(&codes).collect();
    let (projection, by_projection) = cases.projection(&coded, w, beta2);
    let (logistic, by_logistic) = cases.logistic(&coded);
    let validation = (cases.n_held() > 0).then_some(ValidationReport {
        n_samples: cases.n_held(),
        projection: by_projection,
        logistic: by_logistic,
    });
    let read_out = match &validation {
        Some(report) if report.projection.log_loss < report.logistic.log_loss => {
            ReadOut::Projection
        }
        _ => ReadOut::Logistic,
    };
    Classifier {
        kind: cases.kind,
        names: labels.names().to_vec(),
        name_type: None,
        shares: cases.shares,
        read_out,
        projection,
        logistic,
        validation,
    }
}

/// One for every sample, or such that every class weighs the same.
fn weights(h: &Array2<f64>, shares: &Array1<f64>, balance: bool) -> Array1<f64> {
    if !balance {
        return Array1::ones(h.nrows());
    }
    let each = shares.mapv(|share| 1.0 / (share * shares.len() as f64));
    h.dot(&each)
}

impl Cases<'_> {
    fn n_held(&self) -> usize {
        self.h.nrows() - self.n_shown
    }

    fn present(&self) -> Vec<&[bool]> {
        self.data.modalities().iter().map(|modality| modality.present()).collect()
    }

    /// Those of `rows` that were shown, or held back.
    fn part(&self, rows: &[usize], shown: bool) -> Vec<usize> {
        rows.iter().copied().filter(|&row| (row < self.n_shown) == shown).collect()
    }

    /// -log p(label) of each of `rows`, by its weight.
    fn losses(&self, scores: ArrayView2<f64>, rows: &[usize]) -> Array1<f64> {
        let h = self.h.select(Axis(0), rows);
        logistic::losses(scores, h.view(), self.kind) * self.weight.select(Axis(0), rows)
    }

    /// What the scores of the held samples, in their order, amount to.
    fn report(&self, scores: ArrayView2<f64>) -> ReadOutReport {
        let held: Vec<usize> = (self.n_shown..self.h.nrows()).collect();
        let h = self.h.slice(s![self.n_shown.., ..]);
        let probability = logistic::probabilities(scores, self.kind);
        let calibration_error = match self.kind {
            LabelKind::Classes => {
                let truth: Vec<usize> =
                    h.rows().into_iter().map(|row| score::ranked(row)[0]).collect();
                score::class_calibration_error(&probability, &truth)
            }
            LabelKind::Tags => {
                let right: Vec<bool> = h.iter().map(|h| *h == 1.0).collect();
                let probability: Vec<f64> = probability.iter().copied().collect();
                score::calibration_error(&probability, &right)
            }
        };
        ReadOutReport {
            accuracy: score::recall(h, scores),
            log_loss: mean(&self.losses(scores, &held)),
            calibration_error,
        }
    }

    /// The projection, noise and temperature that the held samples like best.
    fn projection(
        &self,
        coded: &[(f64, &SoftCodes)],
        w: Vec<Vec<Array2<f64>>>,
        beta2: &[f64],
    ) -> (Projection, ReadOutReport) {
        let all: Vec<usize> = (0..self.data.modalities().len()).collect();
        let held = s![self.n_shown.., ..];
        let mut best: Option<(Projection, ReadOutReport)> = None;
        for weights in w {
            for &(noise, codes) in coded {
                let mut one = Projection {
                    weights: weights.clone(),
                    beta2: beta2.to_vec(),
                    noise,
                    temperature: 1.0,
                };
                let scores = one.scores(self.kind, &self.shares, codes, &all, &self.present());
                let scores = scores.fused.slice(held).to_owned();
                one.temperature =
                    logistic::temperature(scores.view(), self.h.slice(held), self.kind);
                let report = self.report((&scores * one.temperature).view());
                if best.as_ref().is_none_or(|(_, best)| report.log_loss < best.log_loss) {
                    best = Some((one, report));
                }
            }
        }
        best.unwrap_or_else(|| {
            let nothing = ReadOutReport { accuracy: 0.0, log_loss: 0.0, calibration_error: 0.0 };
            let weights = Vec::new();
            (Projection { weights, beta2: Vec::new(), noise: 1.0, temperature: 1.0 }, nothing)
        })
    }

    fn logistic(&self, coded: &[(f64, &SoftCodes)]) -> (Logistic, ReadOutReport) {
        let all: Vec<usize> = (0..self.data.modalities().len()).collect();
        let rows: Vec<usize> = (0..self.h.nrows()).collect();
        // Blocks of missing modalities are nought here: good enough to choose the noise.
        let by = |codes: &SoftCodes| self.tried(&design(codes, &all, &rows), &rows).losses;
        let tried: Vec<_> =
            coded.par_iter().map(|(noise, codes)| (by(codes), *noise, *codes)).collect();
        let least = tried.into_iter().min_by(|a, b| mean(&a.0).total_cmp(&mean(&b.0)));
        let Some((losses, noise, codes)) = least else {
            unreachable!("codes are made under at least one noise")
        };
        let beside = self
            .may_use_values()
            .then(|| codes.clone().beside_values(&self.data, self.model))
            .filter(|beside| pays(&losses - by(beside)));
        let codes = beside.as_ref().unwrap_or(codes);
        let mut judged = Logistic {
            n_modalities: all.len(),
            values: beside.is_some(),
            noise,
            heads: Vec::new(),
            agreement: 1.0,
        };
        let heads = self.heads(codes, &judged);
        judged.heads = heads.iter().map(|x| x.0.clone()).collect();
        let held = s![self.n_shown.., ..];
        let scores = |logistic: &Logistic| {
            logistic.scores(self.kind, &self.shares, codes, &all, &self.present()).fused
        };
        if self.n_held() > 0 && all.len() > 2 {
            let mut votes = judged.clone();
            votes.heads.retain(|head| head.uses.len() == 1 && !head.variances);
            judged.agreement =
                logistic::temperature(scores(&votes).slice(held), self.h.slice(held), self.kind);
        }
        let report = self.report(scores(&judged).slice(held));
        // The held samples have judged; now they may teach.
        judged.heads = heads.into_iter().map(|(_, head)| head).collect();
        (judged, report)
    }

    /// Whether there are more labels than values, so that regressions on those can be judged.
    fn may_use_values(&self) -> bool {
        let values: usize = self.data.modalities().iter().map(|x| x.mean().len()).sum();
        self.n_held() > 0 && values < self.n_shown
    }

    /// Every head, as fitted on the samples that were shown and as fitted on all.
    fn heads(&self, codes: &SoftCodes, logistic: &Logistic) -> Vec<(Head, Head)> {
        let n = self.data.modalities().len();
        let all: Vec<usize> = (0..n).collect();
        let mut wanted: Vec<(Vec<usize>, bool)> = all.iter().map(|&j| (vec![j], false)).collect();
        if n > 1 {
            wanted.push((all.clone(), false));
            wanted.extend(all.iter().map(|&j| (vec![j], true)));
        }
        if n > 2 {
            let but_one = |j: usize| all.iter().copied().filter(|&other| other != j).collect();
            wanted.extend(all.iter().map(|&j| (but_one(j), false)));
        }
        wanted
            .into_par_iter()
            .flat_map_iter(|(uses, alone)| self.plain_and_wide(codes, logistic, uses, alone))
            .collect()
    }

    /// One that looks at codes, and where it pays one for complete samples that looks at their
    /// variances too.
    fn plain_and_wide(
        &self,
        codes: &SoftCodes,
        logistic: &Logistic,
        uses: Vec<usize>,
        alone: bool,
    ) -> Vec<(Head, Head)> {
        let rows = self.with(&uses);
        let shown = self.part(&rows, true);
        // A head for several modalities must have seen every label.
        if shown.is_empty() || (uses.len() > 1 && !self.tell_all(&shown)) {
            return Vec::new();
        }
        let x = match alone {
            false => design(codes, &uses, &rows),
            true => {
                let data = self.data.select(&rows, &uses);
                let within: Vec<usize> = (0..rows.len()).collect();
                design(&logistic.codes(self.model, &data), &[0], &within)
            }
        };
        let tried = self.tried(&x, &rows);
        let wide = self.wide(codes, &uses, alone, &rows, &tried.losses);
        let plain = self.judged_and_last(&x, &rows, tried);
        let head = |variances, affine| Head { uses: uses.clone(), alone, variances, affine };
        let heads = [(false, Some(plain)), (true, wide)].into_iter();
        heads
            .filter_map(|(wide, fitted)| fitted.map(|(a, b)| (head(wide, a), head(wide, b))))
            .collect()
    }

    /// Regressions on codes and their variances, if those tell more than `losses` of codes alone,
    /// which are of the held ones of `rows`.
    fn wide(
        &self,
        codes: &SoftCodes,
        uses: &[usize],
        alone: bool,
        rows: &[usize],
        losses: &Array1<f64>,
    ) -> Option<(Affine, Affine)> {
        let n = self.data.modalities().len();
        let complete = self.with(&(0..n).collect::<Vec<usize>>());
        let held = self.part(rows, false);
        let kept: Vec<usize> =
            (0..held.len()).filter(|&k| complete.binary_search(&held[k]).is_ok()).collect();
        // Regressions on all but one are for samples that lack it.
        let for_complete = !alone && n > 1 && [1, n].contains(&uses.len());
        if !for_complete || kept.is_empty() || !self.tell_all(&self.part(&complete, true)) {
            return None;
        }
        let x = design(codes, uses, &complete);
        let beside = Beside::new(&x, log_variances(codes, uses, &complete));
        let tried = self.tried(&beside.x, &complete);
        pays(losses.select(Axis(0), &kept) - &tried.losses).then(|| {
            let (judged, last) = self.judged_and_last(&beside.x, &complete, tried);
            (beside.plain(judged), beside.plain(last))
        })
    }

    /// Samples that have all of `modalities`, in order.
    fn with(&self, modalities: &[usize]) -> Vec<usize> {
        let present = self.present();
        let has = |row: &usize| modalities.iter().all(|&j| present[j][*row]);
        (0..self.h.nrows()).filter(has).collect()
    }

    /// Whether every label is among those of `rows`.
    fn tell_all(&self, rows: &[usize]) -> bool {
        self.h.select(Axis(0), rows).sum_axis(Axis(0)).iter().all(|count| *count > 0.0)
    }

    /// The regression that was tried, and one on all of `rows`.
    fn judged_and_last(&self, x: &Array2<f64>, rows: &[usize], tried: Tried) -> (Affine, Affine) {
        let mut judged = tried.affine;
        let mut last = self.fitted(x, rows, tried.ridge, &judged);
        for affine in [&mut judged, &mut last] {
            affine.a *= tried.temperature;
            affine.b *= tried.temperature;
        }
        (judged, last)
    }

    /// Fits on all of `rows`, to which the rows of `x` belong.
    fn fitted(&self, x: &Array2<f64>, rows: &[usize], ridge: f64, start: &Affine) -> Affine {
        let h = self.h.select(Axis(0), rows);
        let weight = self.weight.select(Axis(0), rows);
        // The ridge is meant for codes of unit size.
        let size = if size(x) > 0.0 { size(x) } else { 1.0 };
        let start = Affine { a: &start.a * size, b: start.b.clone() };
        let mut found =
            logistic::fit((x / size).view(), h.view(), &weight, self.kind, ridge, &start);
        found.a /= size;
        found
    }

    /// Fits on the shown ones of `rows` with every ridge; the one that the held ones like best.
    fn tried(&self, x: &Array2<f64>, rows: &[usize]) -> Tried {
        let places = |shown: bool| -> Vec<usize> {
            (0..rows.len()).filter(|&k| (rows[k] < self.n_shown) == shown).collect()
        };
        let (shown, held) = (places(true), places(false));
        let (x_shown, x_held) = (x.select(Axis(0), &shown), x.select(Axis(0), &held));
        let (rows_shown, rows_held) = (self.part(rows, true), self.part(rows, false));
        let h = self.h.select(Axis(0), &rows_held);
        let ridges = if held.is_empty() { &[RIDGE_UNTRIED][..] } else { &RIDGE };
        let mut affine = Affine::zeros(self.h.ncols(), x.ncols());
        let mut at = |ridge: f64| {
            affine = self.fitted(&x_shown, &rows_shown, ridge, &affine);
            let scores = affine.scores(x_held.view());
            let temperature = match held.is_empty() {
                true => 1.0,
                false => logistic::temperature(scores.view(), h.view(), self.kind),
            };
            let losses = self.losses((&scores * temperature).view(), &rows_held);
            Tried { affine: affine.clone(), ridge, temperature, losses }
        };
        let mut best = at(ridges[0]);
        for &ridge in &ridges[1..] {
            let next = at(ridge);
            if mean(&next.losses) < mean(&best.losses) {
                best = next;
            }
        }
        best
    }
}

/// A regression on the shown samples, and what it says of the held ones.
struct Tried {
    affine: Affine,
    ridge: f64,
    temperature: f64,
    losses: Array1<f64>,
}

fn mean(x: &Array1<f64>) -> f64 {
    x.mean().unwrap_or(0.0)
}

/// Whether a gain, given sample by sample, is more than chance would have it.
fn pays(gain: Array1<f64>) -> bool {
    /// In standard errors.
    const CLEARLY: f64 = 2.0;
    mean(&gain) > CLEARLY * gain.std(0.0) / (gain.len() as f64).sqrt()
}
