//! Looks at labelled samples whose labels learning does not see: beta is annealed by their
//! likelihood, and the W that tells most of their labels is remembered.
//!
//! These samples take part in learning without their labels, so their codes, made as those of
//! test samples, are at hand in every iteration.

use ndarray::{Array2, Axis};

use super::e_step::{Posterior, Want, e_step};
use super::em::Em;
use super::task::Task;
use crate::input::task::TaskPlan;
use crate::support::linalg;
use crate::support::score;

/// Validation samples that are looked at: enough to tell two likelihoods apart.
const AT_MOST: usize = 500;
/// Looks without any gain after which the paper's procedure ends.
const PATIENCE: usize = 30;

/// Follows the validation samples through a run.
pub(crate) struct Validator {
    /// Rows of gamma.
    rows: Vec<usize>,
    every: usize,
    alpha2: f64,
    best: Option<Best>,
    /// Looks since something was gained.
    idle: usize,
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
            alpha2: plan.alpha2,
            best: None,
            idle: 0,
        }
    }

    /// After iteration `t`: anneals beta and scores W, if it is time to; the share of labels told.
    pub fn look(&mut self, em: &mut Em, t: usize) -> Option<f64> {
        if self.rows.is_empty() || !t.is_multiple_of(self.every) {
            return None;
        }
        let fell = self.anneal(em);
        let share = score::recall(self.labels(em)?.view(), self.told(em)?.view());
        let better = self.best.as_ref().is_none_or(|best| share >= best.share);
        let gained = self.best.as_ref().is_none_or(|best| share > best.share);
        if better {
            self.best = em.task.as_ref().map(|task| Best { w: task.w.clone(), share });
        }
        self.idle = if gained || fell { 0 } else { self.idle + 1 };
        Some(share)
    }

    /// Whether more iterations seem to be in vain.
    pub fn done(&self) -> bool {
        self.idle >= PATIENCE
    }

    pub fn best(self) -> Option<Best> {
        self.best
    }

    /// beta_j^2 falls as far as it would have since the last look, if that makes the labels of
    /// the validation samples likelier; whether any did.
    fn anneal(&self, em: &mut Em) -> bool {
        let factor = self.alpha2.powf(self.every as f64 / em.n_blocks() as f64);
        let mut fell = false;
        for j in 0..em.d.len() {
            let Some(task) = &em.task else { return false };
            let now = task.beta2[j];
            let less = (factor * now).max(LEAST);
            if less < now && self.likelihood(em, task, j, less) > self.likelihood(em, task, j, now)
            {
                if let Some(task) = &mut em.task {
                    task.beta2[j] = less;
                }
                fell = true;
            }
        }
        fell
    }

    /// sum_i log N(h_i; 0, beta^2 I + W V_i W^T), the paper's tractable p(H^V | W, beta).
    fn likelihood(&self, em: &Em, task: &Task, j: usize, beta2: f64) -> f64 {
        let w = &task.w[j];
        let each = self.rows.iter().filter(|&&row| em.has(j, row)).map(|&row| {
            let v = em.variances(j, row);
            let mut c = linalg::product((w * &v).view(), w.t());
            c.diag_mut().mapv_inplace(|x| x + beta2);
            linalg::log_normal(task.h.row(em.sample(row)), c.view()).unwrap_or(f64::NEG_INFINITY)
        });
        each.sum()
    }

    /// The labels, 0 or 1, in the order of `rows`.
    fn labels(&self, em: &Em) -> Option<Array2<f64>> {
        let samples: Vec<usize> = self.rows.iter().map(|&row| em.sample(row)).collect();
        let h = em.task.as_ref()?.h.select(Axis(0), &samples);
        // Centred labels are above nought where the label is there.
        Some(h.mapv(|x| f64::from(u8::from(x > 0.0))))
    }

    /// W mu of all modalities, weighted by 1 / beta^2.
    fn told(&self, em: &Em) -> Option<Array2<f64>> {
        let task = em.task.as_ref()?;
        let mut sum = Array2::zeros((self.rows.len(), task.h.ncols()));
        for (j, prepared) in em.prepared(Posterior::Exact).iter().enumerate() {
            let places: Vec<usize> =
                (0..self.rows.len()).filter(|&place| em.has(j, self.rows[place])).collect();
            let samples: Vec<usize> =
                places.iter().map(|&place| em.sample(self.rows[place])).collect();
            let y = em.data.modalities()[j].y().select(Axis(0), &samples) - &em.offset[j];
            let mut mu = Array2::zeros((places.len(), em.d[j].ncols()));
            for (mut mu, &place) in mu.rows_mut().into_iter().zip(&places) {
                mu.assign(&em.variances(j, self.rows[place]));
            }
            let answer = e_step(prepared, y.view(), mu.view(), Want { cov: false, slopes: false });
            mu.iter_mut().zip(&answer.t).for_each(|(mu, t)| *mu *= t);
            let told = linalg::product(mu.view(), task.w[j].t());
            for (told, place) in told.rows().into_iter().zip(places) {
                sum.row_mut(place).scaled_add(1.0 / task.beta2[j], &told);
            }
        }
        Some(sum)
    }
}

/// The paper's (beta^inf)^2 for MIR Flickr, the smaller of its two.
const LEAST: f64 = 1e-4;
