//! Ties the variances of the codes of all modalities: a prior is a map from hyperparameters
//! gamma (per sample) to variances v_j, and a way to update gamma from the moments.

use serde::{Deserialize, Serialize};

/// What the E-step said of one sample in one modality: t = d^T S^-1 y and b = d^T S^-1 d.
pub struct Moments<'a> {
    pub v: &'a [f64],
    pub t: &'a [f64],
    pub b: &'a [f64],
}

impl Moments<'_> {
    /// Second moment of coefficient m: mu^2 + Sigma_mm.
    pub fn q(&self, m: usize) -> f64 {
        second_moment(self.v[m], self.t[m], self.b[m])
    }

    /// t and b with coefficient m's own variance taken out of S: what the rest leaves for it.
    pub fn without_own(&self, m: usize) -> (f64, f64) {
        // 1 - v b is Sigma_mm / v > 0; rounding must not make it nought.
        let own = (1.0 - self.v[m] * self.b[m]).max(f64::EPSILON);
        (self.t[m] / own, self.b[m] / own)
    }

    /// |mu| of coefficient m as it would be if its own variance were `power`.
    pub fn size_under(&self, m: usize, power: f64) -> f64 {
        let (t, b) = self.without_own(m);
        (power * t / (1.0 + power * b)).abs()
    }

    /// log p(y | x_m ~ N(0, power)) - log p(y | x_m = 0), all other variances as they are.
    pub fn gain(&self, m: usize, power: f64) -> f64 {
        let (t, b) = self.without_own(m);
        0.5 * (t * t * power / (1.0 + power * b) - (power * b).ln_1p())
    }
}

fn second_moment(v: f64, t: f64, b: f64) -> f64 {
    (v * t).powi(2) + v * (1.0 - v * b)
}

/// How coefficients are switched on and off: prior log-odds of being on, and variance if on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slab {
    pub log_odds: f64,
    /// In the library's units.
    pub power: f64,
}

/// How gamma is updated; the choices are the same for every prior.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GammaStep {
    /// Left alone.
    Keep,
    /// The paper's EM, at or above a floor. What is nought stays nought.
    Em { floor: f64 },
    /// Switches on the coefficient whose posterior odds ask for it most, and off the one whose
    /// odds ask for that most: at most one of each, since neighbours explain the same thing.
    Toggle(Slab),
}

/// A prior on the codes of all modalities of one sample.
pub trait Prior: Sync {
    /// Hyperparameters per sample.
    fn n_gamma(&self) -> usize;

    /// Atoms of modality `j`.
    fn n_atoms(&self, j: usize) -> usize;

    /// v_j from gamma.
    fn variances(&self, gamma: &[f64], j: usize, v: &mut [f64]);

    /// gamma from the moments of the modalities that were seen.
    fn update(&self, gamma: &mut [f64], seen: &[Option<Moments>], step: GammaStep);
}

/// The same variance for atom m of every modality: v_j[m] = gamma[m].
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
}

/// Sets gamma to `power` or nought, changing at most one entry in each direction.
fn toggle(gamma: &mut [f64], power: f64, odds: impl Fn(usize) -> f64) {
    let (mut on, mut off) = (None, None);
    let (mut highest, mut lowest) = (0.0, 0.0);
    for (m, gamma) in gamma.iter_mut().enumerate() {
        let odds = odds(m);
        if *gamma > 0.0 {
            *gamma = power;
            if odds < lowest {
                (lowest, off) = (odds, Some(m));
            }
        } else if odds > highest {
            (highest, on) = (odds, Some(m));
        }
    }
    if let Some(m) = on {
        gamma[m] = power;
    }
    if let Some(m) = off {
        gamma[m] = 0.0;
    }
}
