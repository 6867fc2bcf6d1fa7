//! Ties atom m of every modality: v_j[m] = gamma[m].

use super::{GammaStep, Moments, Prior, gain_at_most, second_moment, sharpen, toggle};
use crate::support::logs::sum_of_logs;

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
                let share = 1.0 / seen.iter().flatten().count() as f64;
                for (gamma, sum) in gamma.iter_mut().zip(sums) {
                    let mean = sum * share;
                    let new = if mean > floor { mean } else { floor };
                    *gamma = if *gamma > 0.0 { new } else { *gamma };
                }
            }
            GammaStep::Sharpen { floor } => {
                let mut sums = vec![0.0; 2 * gamma.len()];
                let (tt, b) = sums.split_at_mut(gamma.len());
                for moments in seen.iter().flatten() {
                    tt.iter_mut().zip(moments.t).for_each(|(sum, t)| *sum += t * t);
                    b.iter_mut().zip(moments.b).for_each(|(sum, b)| *sum += b);
                }
                for (gamma, (tt, b)) in gamma.iter_mut().zip(tt.iter().zip(b)) {
                    sharpen(gamma, (*tt, *b), floor);
                }
            }
            GammaStep::Toggle(slab) => {
                let (log_odds, power) = (slab.log_odds, slab.power);
                let mut at_most = vec![log_odds; gamma.len()];
                for moments in seen.iter().flatten() {
                    for (sum, (t, b)) in at_most.iter_mut().zip(moments.t.iter().zip(moments.b)) {
                        *sum += gain_at_most(*t, *b, power);
                    }
                }
                let odds = |m| {
                    let own = || seen.iter().flatten().map(|moments| moments.without_own(m));
                    let gain: f64 = own().map(|(t, b)| gain_at_most(t, b, power)).sum();
                    log_odds + gain - 0.5 * sum_of_logs(own().map(|(_, b)| 1.0 + power * b))
                };
                toggle(gamma, power, odds, &at_most);
            }
        }
    }

    fn set(&self, gamma: &mut [f64], k: usize, power: f64) {
        gamma[k] = power;
    }

    fn set_all(&self, gamma: &mut [f64], power: &[f64]) {
        gamma.copy_from_slice(power);
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
