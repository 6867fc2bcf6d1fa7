//! Lets no atom have more variance than what it hangs under: an unused root forces its leaves to
//! be unused, but not the reverse, in trees of any depth.
//!
//! This is what the paper says of its hierarchical prior (a root that is nought makes its leaves
//! nought); the paper's own inference does not keep it, see [`super::Hierarchical`].

use super::pooling::pool;
use super::{GammaStep, Moments, Prior, toggle_under};
use crate::input::branches::{Branches, Node};

/// One variance per atom, gamma[(j, m)] = v_j[m], that never rises from root to leaf.
pub struct Tree {
    branches: Branches,
    /// Where each modality's gamma begins.
    start: Vec<usize>,
    /// All atoms, parents first, and where their parents stand in this list.
    nodes: Vec<Node>,
    parent: Vec<Option<usize>>,
}

/// Weight of an atom that was not seen: it keeps its variance unless its neighbours forbid it.
const UNSEEN: f64 = 1e-12;

impl Tree {
    pub fn new(branches: Branches) -> Self {
        let mut start = vec![0];
        for j in 0..branches.n_modalities() {
            start.push(start[j] + branches.n_atoms(j));
        }
        let depth = |node: Node| {
            std::iter::successors(branches.parent(node), |&node| branches.parent(node)).count()
        };
        let of = |j: usize| (0..branches.n_atoms(j)).map(move |m| (j, m));
        let mut nodes: Vec<Node> = (0..branches.n_modalities()).flat_map(of).collect();
        nodes.sort_by_key(|&node| depth(node));
        let place = |node: Node| nodes.iter().position(|other| *other == node);
        let parent = nodes.iter().map(|&node| branches.parent(node).and_then(place)).collect();
        Tree { start, nodes, parent, branches }
    }

    fn index(&self, (j, m): Node) -> usize {
        self.start[j] + m
    }

    /// Hands the nodes' variances to those that are not nought.
    fn assign(&self, gamma: &mut [f64], v: Vec<f64>, floor: f64) {
        for (&node, v) in self.nodes.iter().zip(v) {
            let gamma = &mut gamma[self.index(node)];
            if *gamma > 0.0 {
                *gamma = v.max(floor);
            }
        }
    }
}

impl Prior for Tree {
    fn n_gamma(&self) -> usize {
        self.nodes.len()
    }

    fn n_atoms(&self, j: usize) -> usize {
        self.branches.n_atoms(j)
    }

    fn variances(&self, gamma: &[f64], j: usize, v: &mut [f64]) {
        v.copy_from_slice(&gamma[self.start[j]..self.start[j + 1]]);
    }

    fn update(&self, gamma: &mut [f64], seen: &[Option<Moments>], step: GammaStep) {
        match step {
            GammaStep::Keep => {}
            GammaStep::Em { floor } => {
                let moments = |&(j, m): &Node| match &seen[j] {
                    Some(moments) => (moments.q(m), 1.0),
                    None => (gamma[self.index((j, m))], UNSEEN),
                };
                let (q, w): (Vec<f64>, Vec<f64>) = self.nodes.iter().map(moments).unzip();
                self.assign(gamma, pool(&self.parent, &q, &w), floor);
            }
            // Minimises sum b v + (gamma t)^2 / v: the same pooling, of squares.
            GammaStep::Sharpen { floor } => {
                let square = |&node: &Node| gamma[self.index(node)].powi(2);
                let moments = |node: &Node| match &seen[node.0] {
                    Some(Moments { t, b, .. }) if b[node.1] > 0.0 => {
                        (square(node) * t[node.1].powi(2) / b[node.1], b[node.1])
                    }
                    _ => (square(node), UNSEEN),
                };
                let (q, w): (Vec<f64>, Vec<f64>) = self.nodes.iter().map(moments).unzip();
                let squares = pool(&self.parent, &q, &w);
                self.assign(gamma, squares.into_iter().map(f64::sqrt).collect(), floor);
            }
            GammaStep::Toggle(slab) => {
                let odds = |(&(j, m), parent): (&Node, &Option<usize>)| {
                    let gain = seen[j].as_ref().map_or(0.0, |moments| moments.gain(m, slab.power));
                    gain + if parent.is_none() { slab.log_odds } else { 0.0 }
                };
                let odds: Vec<f64> = self.nodes.iter().zip(&self.parent).map(odds).collect();
                let on = |&node: &Node| gamma[self.index(node)] > 0.0;
                let mut on: Vec<bool> = self.nodes.iter().map(on).collect();
                toggle_under(&self.parent, &odds, &mut on);
                for (&node, on) in self.nodes.iter().zip(on) {
                    gamma[self.index(node)] = if on { slab.power } else { 0.0 };
                }
            }
        }
    }

    fn set(&self, gamma: &mut [f64], k: usize, power: f64) {
        for j in 0..self.branches.n_modalities() {
            for &m in self.branches.atoms(j, k) {
                gamma[self.index((j, m))] = power;
            }
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
