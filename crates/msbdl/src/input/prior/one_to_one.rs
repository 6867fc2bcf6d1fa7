//! Ties atom m of every modality: v_j[m] = gamma[m].

use super::{GammaStep, Moments, Prior, second_moment, toggle};

/// The same variance for atom m of every modality: v_j[m] = gamma[m].
#[derive(Clone, Copy)]
pub struct OneToOne {
    pub n_atoms: usize,
}

impl Prior for OneToOne {
    fn n_gamma(&self) -> usize {
        self.n_atoms
    }

    fn n_atoms(&self, _: usize) -> usize {
        self.n_atoms
    }

    fn variances(&self, gamma: &[f64], _: usize, v: &mut [f64]) {
        v.copy_from_slice(gamma);
    }

    fn update(&self, gamma: &mut [f64], seen: &[Option<Moments>], step: GammaStep) {
        match step {
            GammaStep::Keep => {}
            GammaStep::Em { floor } => {
                let mut sums = vec![0.0; gamma.len()];
                for moments in seen.iter().flatten() {
                    let slices = moments.v.iter().zip(moments.t).zip(moments.b);
                    for (sum, ((&v, &t), &b)) in sums.iter_mut().zip(slices) {
                        *sum += second_moment(v, t, b);
                    }
                }
                let count = seen.iter().flatten().count() as f64;
                for (gamma, sum) in gamma.iter_mut().zip(sums).filter(|(gamma, _)| **gamma > 0.0) {
                    *gamma = (sum / count).max(floor);
                }
            }
            GammaStep::Toggle(slab) => {
                let odds = |m| {
                    let gains = seen.iter().flatten().map(|moments| moments.gain(m, slab.power));
                    slab.log_odds + gains.sum::<f64>()
                };
                toggle(gamma, slab.power, odds);
            }
        }
    }

    fn set(&self, gamma: &mut [f64], k: usize, power: f64) {
        gamma[k] = power;
    }

    fn n_branches(&self) -> usize {
        self.n_atoms
    }

    fn branch_of(&self, _: usize, m: usize) -> usize {
        m
    }

    fn branch_variances(&self, gamma: &[f64], v: &mut [f64]) {
        v.copy_from_slice(gamma);
    }
}
