//! Infers the paper's hierarchical prior without doubling the codes.
//!
//! The paper's x_2[m] is the sum of two latent copies, one of variance g1[m] that it shares with
//! its root and one of variance g2[m] of its own; the root is the sum of its leaves' first
//! copies. Summed up, v_1[k] = sum of g1 over the leaves of k and v_2[m] = g1[m] + g2[m], and a
//! latent of variance g has the second moment g^2 t^2 + g - g^2 b with the t and b of the
//! coefficient that it is part of. So EM needs x alone. (As the variances add up, a root that is
//! nought does not keep its leaves from being used; [`super::Tree`] does.)

use super::{GammaStep, Moments, Prior, second_moment, sharpen, toggle_under};
use crate::input::branches::{Branches, Node};

/// gamma: g1 of every leaf, g2 of every leaf, one of its own for every root without leaves.
pub struct Hierarchical {
    branches: Branches,
    /// All leaves, by modality and atom.
    leaves: Vec<Node>,
    /// Where each modality's leaves begin in `leaves`.
    start: Vec<usize>,
    /// Branches without leaves.
    bare: Vec<usize>,
    /// Leaves per branch.
    n_leaves: Vec<usize>,
}

/// The least g2 of a leaf that is switched on, as a share of its variance: were it nought, it
/// could never grow.
const LEAST_OWN: f64 = 0.1;

impl Hierarchical {
    pub fn new(branches: Branches) -> Self {
        let (mut leaves, mut start) = (Vec::new(), vec![0]);
        let mut n_leaves = vec![0; branches.count()];
        for j in 0..branches.n_modalities() {
            if j != branches.root() {
                leaves.extend((0..branches.n_atoms(j)).map(|m| (j, m)));
                branches.branch_of(j).iter().for_each(|&k| n_leaves[k] += 1);
            }
            start.push(leaves.len());
        }
        let bare = (0..branches.count()).filter(|&k| n_leaves[k] == 0).collect();
        Hierarchical { branches, leaves, start, bare, n_leaves }
    }

    fn branch(&self, leaf: usize) -> usize {
        let (j, m) = self.leaves[leaf];
        self.branches.branch_of(j)[m]
    }

    /// Switches branches with some of their leaves; a root needs a leaf that is on.
    fn toggle(&self, gamma: &mut [f64], power: f64, gain: impl Fn(Node) -> f64, log_odds: f64) {
        let (count, l) = (self.branches.count(), self.leaves.len());
        let roots = (0..count).map(|k| log_odds + gain((self.branches.root(), k)));
        let odds: Vec<f64> = roots.chain(self.leaves.iter().map(|&leaf| gain(leaf))).collect();
        let parent: Vec<Option<usize>> =
            vec![None; count].into_iter().chain((0..l).map(|x| Some(self.branch(x)))).collect();
        let mut on = vec![false; count + l];
        for leaf in (0..l).filter(|&leaf| gamma[leaf] + gamma[l + leaf] > 0.0) {
            on[count + leaf] = true;
            on[self.branch(leaf)] = true;
        }
        for (&k, gamma) in self.bare.iter().zip(&gamma[2 * l..]) {
            on[k] = *gamma > 0.0;
        }
        toggle_under(&parent, &odds, &mut on);
        let mut used = vec![0; count];
        let mut best = vec![None; count];
        for leaf in 0..l {
            let k = self.branch(leaf);
            used[k] += usize::from(on[count + leaf]);
            let better = |&other: &usize| odds[count + other] >= odds[count + leaf];
            best[k] = best[k].filter(better).or(Some(leaf));
        }
        for (k, best) in best.into_iter().enumerate() {
            if let Some(leaf) = best.filter(|_| on[k] && used[k] == 0) {
                on[count + leaf] = true;
                used[k] = 1;
            }
        }
        for leaf in 0..l {
            let shared = power / used[self.branch(leaf)].max(1) as f64;
            let (g1, g2) = match on[count + leaf] {
                true => (shared, (power - shared).max(LEAST_OWN * power)),
                false => (0.0, 0.0),
            };
            (gamma[leaf], gamma[l + leaf]) = (g1, g2);
        }
        for (&k, gamma) in self.bare.iter().zip(&mut gamma[2 * l..]) {
            *gamma = if on[k] { power } else { 0.0 };
        }
    }
}

impl Prior for Hierarchical {
    fn n_gamma(&self) -> usize {
        2 * self.leaves.len() + self.bare.len()
    }

    fn n_atoms(&self, j: usize) -> usize {
        self.branches.n_atoms(j)
    }

    fn variances(&self, gamma: &[f64], j: usize, v: &mut [f64]) {
        let l = self.leaves.len();
        if j != self.branches.root() {
            let here = self.start[j]..self.start[j + 1];
            for (v, leaf) in v.iter_mut().zip(here) {
                *v = gamma[leaf] + gamma[l + leaf];
            }
            return;
        }
        v.fill(0.0);
        for (leaf, g1) in gamma[..l].iter().enumerate() {
            v[self.branch(leaf)] += g1;
        }
        for (&k, gamma) in self.bare.iter().zip(&gamma[2 * l..]) {
            v[k] = *gamma;
        }
    }

    fn update(&self, gamma: &mut [f64], seen: &[Option<Moments>], step: GammaStep) {
        let (l, root) = (self.leaves.len(), self.branches.root());
        match step {
            GammaStep::Keep => {}
            GammaStep::Em { floor } => {
                let moment = |g: f64, (j, m): Node| {
                    seen[j].as_ref().map(|moments| second_moment(g, moments.t[m], moments.b[m]))
                };
                let renew = |g: &mut f64, found: [Option<f64>; 2]| {
                    let count = found.iter().flatten().count();
                    if *g > 0.0 && count > 0 {
                        *g = (found.iter().flatten().sum::<f64>() / count as f64).max(floor);
                    }
                };
                for (leaf, &node) in self.leaves.iter().enumerate() {
                    let (g1, g2) = (gamma[leaf], gamma[l + leaf]);
                    let above = (root, self.branch(leaf));
                    renew(&mut gamma[leaf], [moment(g1, above), moment(g1, node)]);
                    renew(&mut gamma[l + leaf], [moment(g2, node), None]);
                }
                for (&k, gamma) in self.bare.iter().zip(&mut gamma[2 * l..]) {
                    let found = moment(*gamma, (root, k));
                    renew(gamma, [found, None]);
                }
            }
            GammaStep::Sharpen { floor } => {
                let sums = |nodes: &[Node]| {
                    let seen = nodes.iter().filter_map(|&(j, m)| seen[j].as_ref().map(|x| (x, m)));
                    seen.fold((0.0, 0.0), |sum, (x, m)| (sum.0 + x.t[m] * x.t[m], sum.1 + x.b[m]))
                };
                for (leaf, &node) in self.leaves.iter().enumerate() {
                    sharpen(&mut gamma[leaf], sums(&[(root, self.branch(leaf)), node]), floor);
                    sharpen(&mut gamma[l + leaf], sums(&[node]), floor);
                }
                for (&k, gamma) in self.bare.iter().zip(&mut gamma[2 * l..]) {
                    sharpen(gamma, sums(&[(root, k)]), floor);
                }
            }
            GammaStep::Toggle(slab) => {
                let gain = |(j, m): Node| {
                    seen[j].as_ref().map_or(0.0, |moments| moments.gain(m, slab.power))
                };
                self.toggle(gamma, slab.power, gain, slab.log_odds);
            }
        }
    }

    /// g1 = power / number of leaves and g2 the rest.
    fn set(&self, gamma: &mut [f64], k: usize, power: f64) {
        let l = self.leaves.len();
        let shared = power / self.n_leaves[k].max(1) as f64;
        for j in (0..self.branches.n_modalities()).filter(|&j| j != self.branches.root()) {
            for m in self.branches.atoms(j, k) {
                let leaf = self.start[j] + m;
                gamma[leaf] = shared;
                gamma[l + leaf] = (power - shared).max(LEAST_OWN * power);
            }
        }
        if let Some(place) = self.bare.iter().position(|&bare| bare == k) {
            gamma[2 * l + place] = power;
        }
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
