//! Ties the variances of the codes of all modalities: a prior is a map from hyperparameters
//! gamma (per sample) to variances v_j, and a way to update gamma from the moments.

mod atom_to_subspace;
mod hierarchical;
mod one_to_one;
pub(crate) mod pooling;
mod subset;
mod tree;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::branches::Branches;
pub use atom_to_subspace::AtomToSubspace;
pub use hierarchical::Hierarchical;
pub use one_to_one::OneToOne;
pub use subset::Subset;
pub use tree::Tree;

/// A prior by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PriorKind {
    /// Atom m of every modality is used or not used together.
    OneToOne,
    /// All atoms of a branch are used or not used together.
    AtomToSubspace,
    /// The paper's hierarchical prior, as the paper infers it.
    Hierarchical,
    /// No atom has more variance than the one that it hangs under.
    Tree,
}

impl PriorKind {
    /// The prior of this kind on these branches.
    pub(crate) fn on(self, branches: &Branches) -> Arc<dyn Prior> {
        match self {
            PriorKind::OneToOne => Arc::new(OneToOne { n_atoms: branches.count() }),
            PriorKind::AtomToSubspace => Arc::new(AtomToSubspace::new(branches.clone())),
            PriorKind::Hierarchical => Arc::new(Hierarchical::new(branches.clone())),
            PriorKind::Tree => Arc::new(Tree::new(branches.clone())),
        }
    }
}

/// What the E-step said of one sample in one modality: t = d^T S^-1 y and b = d^T S^-1 d.
#[derive(Clone, Copy)]
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
        if self.v[m] == 0.0 {
            return (self.t[m], self.b[m]);
        }
        // 1 - v b is Sigma_mm / v > 0; rounding must not make it nought.
        let own = (1.0 - self.v[m] * self.b[m]).max(f64::EPSILON);
        (self.t[m] / own, self.b[m] / own)
    }

    /// Sum of v b and sum of v t^2.
    pub fn used_and_fitted(&self) -> (f64, f64) {
        /// Sums side by side, which need not wait for one another.
        const LANES: usize = 4;
        let add = |sums: &mut [[f64; LANES]; 2], lane: usize, v: f64, t: f64, b: f64| {
            sums[0][lane] += v * b;
            sums[1][lane] += v * t * t;
        };
        let mut sums = [[0.0; LANES]; 2];
        let (v, v_rest) = self.v.as_chunks::<LANES>();
        let (t, t_rest) = self.t.as_chunks::<LANES>();
        let (b, b_rest) = self.b.as_chunks::<LANES>();
        for ((v, t), b) in v.iter().zip(t).zip(b) {
            for lane in 0..LANES {
                add(&mut sums, lane, v[lane], t[lane], b[lane]);
            }
        }
        for (lane, ((v, t), b)) in v_rest.iter().zip(t_rest).zip(b_rest).enumerate() {
            add(&mut sums, lane, *v, *t, *b);
        }
        (sums[0].iter().sum(), sums[1].iter().sum())
    }

    /// |mu| of coefficient m as it would be if its own variance were `power`.
    pub fn size_under(&self, m: usize, power: f64) -> f64 {
        let (t, b) = self.without_own(m);
        (power * t / (1.0 + power * b)).abs()
    }

    /// log p(y | x_m ~ N(0, power)) - log p(y | x_m = 0), all other variances as they are.
    pub fn gain(&self, m: usize, power: f64) -> f64 {
        let (t, b) = self.without_own(m);
        gain_at_most(t, b, power) - 0.5 * (power * b).ln_1p()
    }
}

/// A gain without its price, which takes a logarithm.
fn gain_at_most(t: f64, b: f64, power: f64) -> f64 {
    0.5 * t * t * power / (1.0 + power * b)
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
    /// gamma sqrt(sum t^2 / sum b), at or above a floor: maximises another bound on the same
    /// evidence, which touches it where EM's does (Wipf and Nagarajan 2010). As safe as EM, but a
    /// coefficient that is not wanted falls by a factor a step, where EM's falls as 1 / steps.
    /// What is near the floor counts as nought in the posterior and can still come back.
    Sharpen { floor: f64 },
    /// Switches on the coefficient (or branch) whose posterior odds ask for it most, and off the
    /// one whose odds ask for that most: at most one of each, since neighbours explain the same
    /// thing. What hangs under another atom is on, given that one, with even odds.
    Toggle(Slab),
}

impl GammaStep {
    /// Variances up to this one count as nought in the posterior.
    pub(crate) fn negligible(self) -> f64 {
        /// Above one, since the floor falls with the noise and must not leave its own behind.
        const NEAR: f64 = 2.0;
        match self {
            GammaStep::Sharpen { floor } => NEAR * floor,
            _ => 0.0,
        }
    }
}

/// The step of [`GammaStep::Sharpen`], given the sums of t^2 and b over what gamma drives.
fn sharpen(gamma: &mut f64, (tt, b): (f64, f64), floor: f64) {
    let new = *gamma * (tt / b).sqrt();
    // No branch and no call, so that several are done at once.
    let new = if new > floor { new } else { floor };
    *gamma = if (*gamma > 0.0) & (b > 0.0) { new } else { *gamma };
}

/// A prior on the codes of all modalities of one sample.
///
/// Atoms form branches; branch k has atom k of one modality, its root.
pub trait Prior: Send + Sync {
    /// Hyperparameters per sample.
    fn n_gamma(&self) -> usize;

    /// Atoms of modality `j`.
    fn n_atoms(&self, j: usize) -> usize;

    /// v_j from gamma.
    fn variances(&self, gamma: &[f64], j: usize, v: &mut [f64]);

    /// gamma from the moments of the modalities that were seen.
    fn update(&self, gamma: &mut [f64], seen: &[Option<Moments>], step: GammaStep);

    /// Gives every coefficient of branch `k` the variance `power`.
    fn set(&self, gamma: &mut [f64], k: usize, power: f64);

    /// The number of branches.
    fn n_branches(&self) -> usize;

    /// The branch of atom `m` of modality `j`.
    fn branch_of(&self, j: usize, m: usize) -> usize;

    /// The variance of every branch's root.
    fn branch_variances(&self, gamma: &[f64], v: &mut [f64]);

    /// Gives the coefficients of every branch its own variance.
    fn set_all(&self, gamma: &mut [f64], power: &[f64]) {
        for (k, &power) in power.iter().enumerate() {
            self.set(gamma, k, power);
        }
    }
}

/// Sets gamma to `power` or nought, changing at most one entry in each direction; `at_most`
/// bounds the odds of what is off.
fn toggle(gamma: &mut [f64], power: f64, odds: impl Fn(usize) -> f64, at_most: &[f64]) {
    let (mut on, mut off) = (None, None);
    let (mut highest, mut lowest) = (0.0, 0.0);
    for (m, gamma) in gamma.iter_mut().enumerate() {
        if *gamma > 0.0 {
            *gamma = power;
            let odds = odds(m);
            if odds < lowest {
                (lowest, off) = (odds, Some(m));
            }
        } else if at_most[m] > highest {
            let odds = odds(m);
            if odds > highest {
                (highest, on) = (odds, Some(m));
            }
        }
    }
    if let Some(m) = on {
        gamma[m] = power;
    }
    if let Some(m) = off {
        gamma[m] = 0.0;
    }
}

/// Switches nodes of a tree (parents first), at most one subtree in each direction.
///
/// `odds` are the nodes' own log-odds, given their parents. A node's subtree is worth its own
/// odds and those of the subtrees below it that are worth something.
fn toggle_under(parent: &[Option<usize>], odds: &[f64], on: &mut [bool]) {
    let mut worth = odds.to_vec();
    for i in (0..odds.len()).rev() {
        if let Some(parent) = parent[i] {
            worth[parent] += worth[i].max(0.0);
        }
    }
    let (mut up, mut down) = (None, None);
    let (mut highest, mut lowest) = (0.0, 0.0);
    for i in 0..odds.len() {
        if on[i] {
            if worth[i] < lowest {
                (lowest, down) = (worth[i], Some(i));
            }
        } else if worth[i] > highest && parent[i].is_none_or(|parent| on[parent]) {
            (highest, up) = (worth[i], Some(i));
        }
    }
    let mut fresh = vec![false; on.len()];
    for i in 0..on.len() {
        let above = parent[i].is_some_and(|parent| fresh[parent]);
        if up == Some(i) || (above && worth[i] > 0.0) {
            (fresh[i], on[i]) = (true, true);
        }
        if down == Some(i) || parent[i].is_some_and(|parent| !on[parent]) {
            on[i] = false;
        }
    }
}
