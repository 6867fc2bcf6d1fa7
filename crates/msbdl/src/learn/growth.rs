//! Follows the branches through a run, and ends it with those that were asked for.

use std::sync::Arc;

use super::em::Em;
use super::prune::{prune, prune_as_the_paper};
use super::run::Run;
use super::span::principal_axes;
use crate::input::branches::Branches;
use crate::input::config::Preset;
use crate::input::prior::Prior;
use crate::input::shape::{End, Shape};

/// The branches so far, and what is to become of them.
pub(crate) struct Growth<'a> {
    pub shape: &'a Shape,
    pub branches: Branches,
    preset: Preset,
    /// How often the number of leaves was decided.
    rounds: usize,
    /// Per branch: whether its atoms can be told apart.
    pub identified: Vec<bool>,
}

impl<'a> Growth<'a> {
    pub fn new(shape: &'a Shape, preset: Preset) -> Self {
        let (branches, identified) = (shape.start.clone(), single(&shape.start));
        Growth { shape, branches, preset, rounds: 0, identified }
    }

    /// Decides on the number of leaves and, where branches were given, on which are which.
    pub fn decide(&mut self, run: &mut Run) {
        self.rounds += 1;
        let (em, end, root) = (&mut run.em, &self.shape.end, self.branches.root());
        self.branches = match self.preset {
            Preset::Paper => prune_as_the_paper(em, end, root),
            _ => prune(em, end, root, self.rounds > 1),
        };
        self.identified = single(&self.branches);
        if let Some(validator) = &mut run.validator {
            validator.forget();
        }
    }

    /// Decides if that was not done: because it comes last, because there is nothing to prune, or
    /// because the run was stopped before. Atoms may then be of any length.
    pub fn settle(&mut self, run: &mut Run) {
        let leafy = run.em.has_leaves();
        let done = match &self.shape.end {
            End::Given(branches) => *branches == self.branches,
            End::Learnt(_) => self.rounds > 0 || !leafy,
        };
        if done {
            return;
        }
        if leafy && self.preset != Preset::Paper {
            run.em.normalise = false;
            principal_axes(&mut run.em);
        }
        self.decide(run);
        if self.preset == Preset::Paper {
            self.move_to(&mut run.em, self.shape.prior.on(&self.branches));
        }
    }

    /// Exchanges the prior; every branch keeps its root's variance.
    pub fn move_to(&self, em: &mut Em, prior: Arc<dyn Prior>) {
        let order: Vec<usize> = (0..prior.n_branches()).collect();
        em.move_to(prior, &order);
    }
}

/// Per branch: whether it has one atom of a modality at most.
fn single(branches: &Branches) -> Vec<bool> {
    let single = |k: usize| (0..branches.n_modalities()).all(|j| branches.atoms(j, k).len() < 2);
    (0..branches.count()).map(single).collect()
}
