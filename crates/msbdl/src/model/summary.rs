//! Tells what a model is in a few numbers.

use serde::{Deserialize, Serialize};

use crate::input::prior::Slab;
use crate::learn::em::Em;
use crate::learn::stats::Stats;

/// What the codes of the training samples look like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub n_samples: usize,
    /// Mean number of branches in use per sample (with the one-to-one prior, of atoms).
    pub atoms_per_sample: f64,
    /// Share of the samples that use each branch.
    pub usage: Vec<f64>,
    pub modalities: Vec<ModalitySummary>,
}

/// One modality's part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModalitySummary {
    pub name: String,
    /// Samples that have it.
    pub n_samples: usize,
    /// 1 - |y - mean - D mu|^2 / |y - mean|^2 over those samples.
    pub variance_explained: f64,
}

/// A coefficient counts as in use when its variance is above this share of the sample's largest.
const IN_USE: f64 = 1e-3;

/// `stats` are the sums over all samples, with everything as it was learnt.
pub(crate) fn summarise(em: &Em, stats: &Stats) -> Summary {
    let (n_samples, k) = (em.data.n_samples(), em.prior.n_branches());
    let (mut usage, mut v) = (vec![0.0; k], vec![0.0; k]);
    for gamma in em.gamma.chunks_exact(em.prior.n_gamma()) {
        em.prior.branch_variances(gamma, &mut v);
        let largest = v.iter().fold(0.0, |a: f64, &b| a.max(b));
        for (usage, v) in usage.iter_mut().zip(&v) {
            *usage += f64::from(u8::from(*v > IN_USE * largest)) / n_samples as f64;
        }
    }
    let modalities = em.data.modalities().iter().zip(&stats.modalities).enumerate();
    let modalities = modalities.map(|(j, (modality, stats))| {
        let rows = modality.y().rows().into_iter().zip(modality.present());
        let total: f64 = rows
            .filter(|(_, present)| **present)
            .map(|(y, _)| (&y - &em.offset[j]).mapv(|x| x * x).sum())
            .sum();
        ModalitySummary {
            name: modality.name().to_owned(),
            n_samples: stats.count,
            variance_explained: 1.0 - stats.residual / total,
        }
    });
    Summary {
        n_samples,
        atoms_per_sample: usage.iter().sum(),
        usage,
        modalities: modalities.collect(),
    }
}

impl Summary {
    /// Branches that at least one training sample uses.
    pub fn atoms_used(&self) -> usize {
        self.usage.iter().filter(|usage| **usage > 0.0).count()
    }

    /// How coefficients are switched, read off codes that were learnt without switching.
    pub(crate) fn slab(&self, em: &Em) -> Slab {
        let share = (self.atoms_per_sample / self.usage.len() as f64).clamp(1e-6, 0.5);
        let mut v = vec![0.0; em.prior.n_branches()];
        let sum = |gamma: &[f64]| {
            em.prior.branch_variances(gamma, &mut v);
            v.iter().sum::<f64>()
        };
        let rows = em.gamma.chunks_exact(em.prior.n_gamma());
        let total = rows.map(sum).sum::<f64>() / self.n_samples as f64;
        let power = (total / self.atoms_per_sample.max(1.0)).max(f64::MIN_POSITIVE);
        Slab { log_odds: (share / (1.0 - share)).ln(), power }
    }
}
