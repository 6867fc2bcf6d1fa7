//! Estimates the noise variances from what the codes leave unexplained.

use super::em::Em;
use super::stats::{ModalityStats, Stats};

/// Factor by which a variance may change in one pass over the samples.
const STEP: f64 = 0.8;
/// Share of the degrees of freedom that the dictionary's own never take.
const LEAST_FREE: f64 = 0.2;

/// Which average over the samples the estimate is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Average {
    Mean,
    /// The smaller of mean and median: samples whose support is not yet complete have large
    /// residuals and would hide the small coefficients that they lack.
    Robust,
}

/// s = |residual|^2 / degrees of freedom (MacKay's fixed point, where the slope of the
/// log-likelihood is nought), less the degrees of freedom of the dictionary itself.
pub(crate) fn update_noise(em: &mut Em, stats: &Stats, average: Average) {
    let step = STEP.powf(1.0 / em.n_blocks() as f64);
    for ((s, d), stats) in em.s.iter_mut().zip(&em.d).zip(&stats.modalities) {
        if stats.count == 0 {
            continue;
        }
        let (n, m) = d.dim();
        let free = free_of(stats, n, m);
        let mut found = stats.residual / free;
        if average == Average::Robust {
            found = found.min(stats.spread.median() * stats.free / free);
        }
        *s = found.clamp(step * *s, *s / step).max(SMALLEST);
    }
}

/// Degrees of freedom that neither the codes nor the N x M dictionary use up.
pub(crate) fn free_of(stats: &ModalityStats, n: usize, m: usize) -> f64 {
    let fitted = (m * (n - 1)) as f64;
    (stats.free - fitted).max(LEAST_FREE * stats.free)
}

/// The smallest variance, relative to data of unit energy: below it f64 cannot tell signal
/// from rounding.
const SMALLEST: f64 = 1e-14;
