//! Ties all atoms of a branch: v_j[m] = gamma[k] for every atom m of branch k.

use super::{GammaStep, Moments, Prior, sharpen, toggle};
use crate::input::branches::Branches;

/// One variance per branch.
pub struct AtomToSubspace {
    branches: Branches,
}

impl AtomToSubspace {
    pub fn new(branches: Branches) -> Self {
        AtomToSubspace { branches }
    }
}

impl Prior for AtomToSubspace {
    fn n_gamma(&self) -> usize {
        self.branches.count()
    }

    fn n_atoms(&self, j: usize) -> usize {
        self.branches.n_atoms(j)
    }

    fn variances(&self, gamma: &[f64], j: usize, v: &mut [f64]) {
        for (v, &k) in v.iter_mut().zip(self.branches.branch_of(j)) {
            *v = gamma[k];
        }
    }

    /// The mean of q over all atoms of the branch that were seen.
    fn update(&self, gamma: &mut [f64], seen: &[Option<Moments>], step: GammaStep) {
        // Over the atoms that were seen, per branch.
        let sums = |value: &dyn Fn(&Moments, usize) -> f64| {
            let mut sums = vec![(0.0, 0.0); gamma.len()];
            for (j, moments) in seen.iter().enumerate() {
                let Some(moments) = moments else { continue };
                for (m, &k) in self.branches.branch_of(j).iter().enumerate() {
                    sums[k] = (sums[k].0 + value(moments, m), sums[k].1 + 1.0);
                }
            }
            sums
        };
        match step {
            GammaStep::Keep => {}
            GammaStep::Em { floor } => {
                let sums = sums(&|moments, m| moments.q(m));
                for (gamma, (sum, count)) in gamma.iter_mut().zip(sums) {
                    if *gamma > 0.0 && count > 0.0 {
                        *gamma = (sum / count).max(floor);
                    }
                }
            }
            GammaStep::Sharpen { floor } => {
                let tt = sums(&|moments, m| moments.t[m] * moments.t[m]);
                let b = sums(&|moments, m| moments.b[m]);
                for (gamma, (tt, b)) in gamma.iter_mut().zip(tt.iter().zip(b)) {
                    sharpen(gamma, (tt.0, b.0), floor);
                }
            }
            GammaStep::Toggle(slab) => {
                let gains = sums(&|moments, m| moments.gain(m, slab.power));
                let odds: Vec<f64> = gains.iter().map(|gain| slab.log_odds + gain.0).collect();
                toggle(gamma, slab.power, |k| odds[k], &odds);
            }
        }
    }

    fn set(&self, gamma: &mut [f64], k: usize, power: f64) {
        gamma[k] = power;
    }

    fn n_branches(&self) -> usize {
        self.branches.count()
    }

    fn branch_of(&self, j: usize, m: usize) -> usize {
        self.branches.branch_of(j)[m]
    }

    fn branch_variances(&self, gamma: &[f64], v: &mut [f64]) {
        self.variances(gamma, self.branches.root(), v);
    }
}
