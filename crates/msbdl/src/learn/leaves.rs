//! Tells the leaves of a branch apart where they switch on and off, and says where they do not.
//!
//! Leaves that are always on together can be turned into one another without changing anything;
//! only their span is known. Leaves that switch on and off independently have axes of their own
//! (axes.rs). So have branches, which are mixed up where their codes are correlated.

use ndarray::{Array2, Axis};

use super::axes::Axes;
use super::e_step::{Posterior, Want, e_step};
use super::em::Em;
use super::pair::assign;
use crate::support::linalg;

/// Samples that are looked at.
const SURVEY: usize = 4000;
/// Leaves shorter than these shares of the branch's longest (in |d|^2) are left alone: beside
/// the leaves of the same branch, and beside those of another.
const LEAST: (f64, f64) = (0.02, 0.1);
/// Samples per leaf that a branch must have for its leaves to be told apart.
const ENOUGH: usize = 10;
/// Log-likelihood that switching must gain over always being on for atoms to be identified: leaves
/// that are always on gain up to 8 by chance, leaves that are on half of the time 45 and more.
const CLEAR: f64 = 15.0;
/// Correlation of codes above which two branches are mixed up with each other: independent ones
/// that are on in a hundred samples, ten of them common, reach a tenth.
const TANGLED: f64 = 0.2;

/// Gives the leaves of every branch the axes along which they switch, where they do so clearly;
/// whether they do, per branch.
pub(crate) fn separate(em: &mut Em) -> Vec<bool> {
    let mut identified = vec![true; em.prior.n_branches()];
    for j in 0..em.d.len() {
        let members = em.members(j);
        if members.iter().all(|atoms| atoms.len() < 2) {
            continue;
        }
        let codes = Codes::of(em, j);
        let mut change = Change::none(em.d[j].ncols());
        for (k, atoms) in members.iter().enumerate().filter(|(_, atoms)| atoms.len() > 1) {
            let long = codes.long(atoms, LEAST.0);
            let found = codes.axes(&long, &[k]).filter(|axes| axes.switching > CLEAR);
            identified[k] &= found.is_some();
            if let Some(axes) = found {
                change.set(&long, &axes.t, &axes.inverse);
            }
        }
        em.transform(j, &change.t, &change.inverse);
    }
    identified
}

/// Takes branches apart whose codes are correlated, two by two, where that makes them sparser.
pub(crate) fn untangle(em: &mut Em) {
    for j in 0..em.d.len() {
        let codes = Codes::of(em, j);
        let long: Vec<Vec<usize>> =
            em.members(j).iter().map(|atoms| codes.long(atoms, LEAST.1)).collect();
        let mut change = Change::none(em.d[j].ncols());
        let mut done = vec![false; long.len()];
        for (k, l) in codes.tangled(&long) {
            if done[k] || done[l] {
                continue;
            }
            let atoms = [&long[k][..], &long[l]].concat();
            let found = codes.axes(&atoms, &[k, l]).filter(|axes| axes.sparser > CLEAR);
            let Some(axes) = found else { continue };
            (done[k], done[l]) = (true, true);
            // New atoms take the places of the old ones that they are most like.
            let old = em.d[j].select(Axis(1), &atoms);
            let new = linalg::product(old.view(), axes.t.view());
            let from = assign(&crate::support::recovery::cosines(old.view(), new.view()));
            let t = axes.t.select(Axis(1), &from);
            change.set(&atoms, &t, &axes.inverse.select(Axis(0), &from));
        }
        em.transform(j, &change.t, &change.inverse);
    }
}

/// D T for a whole dictionary, put together from some of its atoms.
struct Change {
    t: Array2<f64>,
    inverse: Array2<f64>,
}

impl Change {
    fn none(m: usize) -> Self {
        Change { t: Array2::eye(m), inverse: Array2::eye(m) }
    }

    fn set(&mut self, atoms: &[usize], t: &Array2<f64>, inverse: &Array2<f64>) {
        for (row, &a) in atoms.iter().enumerate() {
            for (column, &b) in atoms.iter().enumerate() {
                self.t[[a, b]] = t[[row, column]];
                self.inverse[[a, b]] = inverse[[row, column]];
            }
        }
    }
}

/// What some samples say of one modality.
struct Codes {
    /// Posterior means, rows x atoms.
    mu: Array2<f64>,
    /// Rows x branches.
    on: Array2<bool>,
    /// |d|^2 of the atoms.
    length: Vec<f64>,
    s: f64,
    /// Variance of a coefficient that is on.
    power: f64,
}

impl Codes {
    fn of(em: &Em, j: usize) -> Self {
        let modality = &em.data.modalities()[j];
        let (k, m) = (em.prior.n_gamma(), em.d[j].ncols());
        let there = |row: &usize| modality.present()[em.sample(*row)];
        let rows: Vec<usize> = em.some_rows(SURVEY).into_iter().filter(there).collect();
        let samples: Vec<usize> = rows.iter().map(|&row| em.sample(row)).collect();
        let y = modality.y().select(Axis(0), &samples) - &em.offset[j];
        let mut v = Array2::zeros((rows.len(), m));
        let mut on = Array2::from_elem((rows.len(), em.prior.n_branches()), false);
        let mut branches = vec![0.0; em.prior.n_branches()];
        for (i, &row) in rows.iter().enumerate() {
            let gamma = &em.gamma[row * k..(row + 1) * k];
            // A freshly made array is contiguous, so the slice is always there.
            em.prior.variances(gamma, j, v.row_mut(i).as_slice_mut().unwrap_or(&mut []));
            em.prior.branch_variances(gamma, &mut branches);
            on.row_mut(i).iter_mut().zip(&branches).for_each(|(on, v)| *on = *v > 0.0);
        }
        let power = v.iter().fold(0.0, |a: f64, &v| a.max(v));
        let prepared = em.prepared(Posterior::Exact);
        let want = Want { cov: false, slopes: false };
        let answer = e_step(&prepared[j], y.view(), v.view(), want);
        v.iter_mut().zip(answer.t.iter()).for_each(|(v, t)| *v *= t);
        let length = em.d[j].columns().into_iter().map(|d| d.dot(&d)).collect();
        Codes { mu: v, on, length, s: em.s[j], power }
    }

    /// Those of `atoms` that are no shorter than a share of the longest.
    fn long(&self, atoms: &[usize], least: f64) -> Vec<usize> {
        let longest = atoms.iter().fold(0.0, |a: f64, &m| a.max(self.length[m]));
        atoms.iter().copied().filter(|&m| self.length[m] > least * longest).collect()
    }

    /// Pairs of branches with correlated codes, the most correlated first.
    fn tangled(&self, atoms: &[Vec<usize>]) -> Vec<(usize, usize)> {
        let c = linalg::gram(self.mu.view());
        let correlation = |a: usize, b: usize| {
            c[[a, b]].abs() / (c[[a, a]] * c[[b, b]]).sqrt().max(f64::MIN_POSITIVE)
        };
        let mut pairs = Vec::new();
        for k in 0..atoms.len() {
            for l in 0..k {
                let each = atoms[k].iter().flat_map(|&a| atoms[l].iter().map(move |&b| (a, b)));
                let most = each.map(|(a, b)| correlation(a, b)).fold(0.0, f64::max);
                if most > TANGLED {
                    pairs.push((most, k, l));
                }
            }
        }
        pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
        pairs.into_iter().map(|(_, k, l)| (k, l)).collect()
    }

    /// The axes of these atoms in the samples that use one of these branches.
    fn axes(&self, atoms: &[usize], branches: &[usize]) -> Option<Axes> {
        let used = |i: &usize| branches.iter().any(|&k| self.on[[*i, k]]);
        let rows: Vec<usize> = (0..self.mu.nrows()).filter(used).collect();
        if atoms.len() < 2 || rows.len() < ENOUGH * atoms.len() {
            return None;
        }
        let x = self.mu.select(Axis(0), &rows).select(Axis(1), atoms);
        let energy = self.length[atoms[0]] * x.column(0).dot(&x.column(0)) / rows.len() as f64;
        // Made uncorrelated on some hundred samples, coefficients are off by a tenth.
        let noise = (self.s / energy).clamp(0.01, 0.5);
        Axes::of(&x, noise, self.power)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::data::Data;
    use crate::input::prior::OneToOne;
    use crate::learn::em::Schedule;
    use crate::learn::init::start;
    use crate::support::recovery::cosines;
    use rand::{RngExt, SeedableRng};
    use std::sync::Arc;

    /// One atom has taken in half of another, which must then be on beside it.
    #[test]
    fn mixed_branches_are_taken_apart_and_others_left_alone() {
        for (share, changes) in [(0.5, true), (0.0, false)] {
            let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
            let mut draw = |_| rng.random_range(-1.0..1.0);
            let d = Array2::from_shape_fn((6, 3), &mut draw);
            let mut x = Array2::from_shape_fn((400, 3), &mut draw);
            x.mapv_inplace(|x| if rng.random_bool(0.5) { x } else { 0.0 });
            let data = Data::new(vec![("a".to_owned(), x.dot(&d.t()))], false).unwrap();
            let prior = Arc::new(OneToOne { n_atoms: 3 });
            let mut em = Em::new(&data, prior, Posterior::Exact, Schedule::Full, 400, 1);
            start(&mut em, 1);
            let mut mixed = d.clone();
            mixed.column_mut(0).scaled_add(share, &d.column(1));
            em.d[0] = mixed.clone();
            em.s[0] = 1e-5;
            em.gamma.fill(1.0);
            untangle(&mut em);
            assert_eq!(em.d[0] != mixed, changes);
            for (k, cosine) in cosines(d.view(), em.d[0].view()).diag().iter().enumerate() {
                assert!(*cosine > 0.995, "atom {k}: {cosine}");
            }
        }
    }
}
