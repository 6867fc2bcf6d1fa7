//! Looks at labelled samples whose labels learning does not see: beta is annealed by their
//! likelihood, and the W that tells most of their labels is remembered.
//!
//! These samples take part in learning without their labels, so their codes, made as those of
//! test samples, are at hand in every iteration.

use ndarray::{Array2, Axis};

use super::e_step::{Posterior, Prepared, Want, e_step};
use super::em::Em;
use super::task::Task;
use crate::input::task::TaskPlan;
use crate::support::linalg;
use crate::support::score;

/// Validation samples that are looked at, and those of them that judge beta: pairs of likelihoods
/// that differ little are told apart by few, and each costs a factorisation.
const AT_MOST: usize = 500;
const JUDGES: usize = 150;
/// Looks without any gain after which the paper's procedure ends.
const PATIENCE: usize = 30;

/// Follows the validation samples through a run.
pub(crate) struct Validator {
    /// Rows of gamma.
    rows: Vec<usize>,
    every: usize,
    blocks: usize,
    alpha2: f64,
    best: Option<Best>,
    /// Looks since something was gained.
    idle: usize,
    /// The best share before the round under way.
    before: f64,
}

/// The W that told most labels.
pub(crate) struct Best {
    pub w: Vec<Array2<f64>>,
    share: f64,
}

impl Validator {
    pub fn new(em: &Em, plan: &TaskPlan) -> Self {
        let held = |row: &usize| plan.held.binary_search(&em.sample(*row)).is_ok();
        let rows: Vec<usize> = (0..em.data.n_samples()).filter(held).collect();
        let step = rows.len().div_ceil(AT_MOST).max(1);
        Validator {
            rows: rows.into_iter().step_by(step).collect(),
            every: plan.validate_every,
            blocks: em.n_blocks(),
            alpha2: plan.alpha2,
            best: None,
            idle: 0,
            before: -1.0,
        }
    }

    /// After iteration `t`: anneals beta and scores W, if it is time to; the share of labels told.
    pub fn look(&mut self, em: &mut Em, t: usize) -> Option<f64> {
        let waits = em.task.as_ref().is_none_or(|task| !task.takes_part);
        if waits || self.rows.is_empty() || !t.is_multiple_of(self.every) {
            return None;
        }
        let codes: Vec<Held> = (0..em.d.len()).map(|j| self.code(em, j)).collect();
        let task = em.task.as_mut()?;
        // beta falls as far as it would have since the last look, if that makes the labels likelier.
        let factor = self.alpha2.powf(self.every as f64 / self.blocks as f64);
        let mut fell = false;
        for (j, held) in codes.iter().enumerate() {
            let (now, less) = (task.beta2[j], (factor * task.beta2[j]).max(LEAST));
            if less >= now {
                continue;
            }
            let [as_is, with_less] = held.log_likelihoods(task, j, [now, less]);
            if with_less > as_is {
                task.beta2[j] = less;
                fell = true;
            }
        }
        let share = self.share_told(task, &codes);
        let best = self.best.as_ref().map_or(-1.0, |best| best.share);
        if share >= best {
            self.best = Some(Best { w: task.w.clone(), share });
        }
        self.idle = if share > best || fell { 0 } else { self.idle + 1 };
        Some(share)
    }

    /// Whether more iterations seem to be in vain.
    pub fn done(&self) -> bool {
        self.idle >= PATIENCE
    }

    /// Ends a round of learning; whether it told more labels than all before.
    pub fn gained(&mut self) -> bool {
        let best = self.best.as_ref().map_or(-1.0, |best| best.share);
        let gained = best > self.before || self.rows.is_empty();
        self.before = best;
        gained
    }

    /// Drops the best W: its columns are those of atoms that have gone or been given other numbers.
    pub fn forget(&mut self) {
        self.best = None;
    }

    pub fn best(self) -> Option<Best> {
        self.best
    }

    /// Codes without labels, as test samples are coded.
    fn code(&self, em: &Em, j: usize) -> Held {
        let places: Vec<usize> =
            (0..self.rows.len()).filter(|&place| em.has(j, self.rows[place])).collect();
        let samples: Vec<usize> = places.iter().map(|&place| em.sample(self.rows[place])).collect();
        let y = em.data.modalities()[j].y().select(Axis(0), &samples) - &em.offset[j];
        let mut v = Array2::zeros((places.len(), em.d[j].ncols()));
        for (mut v, &place) in v.rows_mut().into_iter().zip(&places) {
            v.assign(&em.variances(j, self.rows[place]));
        }
        let prepared = Prepared::new(em.d[j].view(), em.s[j], Posterior::Exact);
        let answer = e_step(&prepared, y.view(), v.view(), Want { cov: false, slopes: false });
        let (mut mu, mut variance) = (v.clone(), v);
        mu.iter_mut().zip(answer.t.iter()).for_each(|(mu, t)| *mu *= t);
        variance.iter_mut().zip(answer.b.iter()).for_each(|(v, b)| *v *= (1.0 - *v * b).max(0.0));
        Held { places, samples, mu, variance }
    }

    /// The share of labels that W mu of all modalities, weighted by 1 / beta^2, tells.
    fn share_told(&self, task: &Task, codes: &[Held]) -> f64 {
        let mut sum = Array2::zeros((self.rows.len(), task.h.ncols()));
        let mut h = Array2::zeros(sum.dim());
        for ((held, w), beta2) in codes.iter().zip(&task.w).zip(&task.beta2) {
            let told = linalg::product(held.mu.view(), w.t());
            for ((told, &place), &sample) in
                told.rows().into_iter().zip(&held.places).zip(&held.samples)
            {
                sum.row_mut(place).scaled_add(1.0 / beta2, &told);
                // Centred labels are above nought where the label is there.
                let there = task.h.row(sample).mapv(|x| f64::from(u8::from(x > 0.0)));
                h.row_mut(place).assign(&there);
            }
        }
        score::recall(h.view(), sum.view())
    }
}

/// Codes of the validation samples that have a modality.
struct Held {
    /// Where they stand among all validation samples, and which samples they are.
    places: Vec<usize>,
    samples: Vec<usize>,
    mu: Array2<f64>,
    /// diag(Sigma)
    variance: Array2<f64>,
}

impl Held {
    /// sum_i log N(h_i; W mu_i, beta^2 I + W Sigma_i W^T), Sigma taken as diagonal: p(h | y) of some
    /// samples, for several beta^2.
    fn log_likelihoods<const K: usize>(&self, task: &Task, j: usize, beta2: [f64; K]) -> [f64; K] {
        let w = &task.w[j];
        let told = linalg::product(self.mu.view(), w.t());
        let columns = w.t().as_standard_layout().into_owned();
        let mut sums = [0.0; K];
        let step = self.samples.len().div_ceil(JUDGES).max(1);
        for (i, &sample) in self.samples.iter().enumerate().step_by(step) {
            let mut c = Array2::zeros((w.nrows(), w.nrows()));
            let used = columns.rows().into_iter().zip(self.variance.row(i));
            for (w, variance) in used.filter(|(_, variance)| **variance > 0.0) {
                for (mut c, left) in c.rows_mut().into_iter().zip(w) {
                    c.scaled_add(left * variance, &w);
                }
            }
            let off = &task.h.row(sample) - &told.row(i);
            for (sum, beta2) in sums.iter_mut().zip(beta2) {
                let mut c = c.clone();
                c.diag_mut().mapv_inplace(|x| x + beta2);
                *sum += linalg::log_normal(off.view(), c.view()).unwrap_or(f64::NEG_INFINITY);
            }
        }
        sums
    }
}

/// The paper's (beta^inf)^2 for the Photo Tweet data.
const LEAST: f64 = 1e-2;
