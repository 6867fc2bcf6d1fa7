//! Looks at the codes of some samples, and puts together what they say should change in D.

use ndarray::{Array2, Axis};

use super::axes::Axes;
use super::e_step::{Posterior, Want, e_step};
use super::em::Em;

/// Samples that are looked at.
const SURVEY: usize = 4000;
/// Samples per atom that there must be for atoms to be told apart.
const ENOUGH: usize = 10;
/// Log-likelihood that switching must gain over always being on for atoms to be identified: leaves
/// that are always on gain up to 8 by chance, leaves that are on half of the time 45 and more.
pub(crate) const CLEAR: f64 = 15.0;

/// What some samples say of one modality.
pub(crate) struct Codes {
    /// Posterior means, rows x atoms.
    mu: Array2<f64>,
    /// Rows x branches.
    pub on: Array2<bool>,
    /// |d|^2 of the atoms.
    length: Vec<f64>,
    s: f64,
    /// Variance of a coefficient that is on.
    power: f64,
}

impl Codes {
    pub fn of(em: &Em, j: usize) -> Self {
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
    pub fn long(&self, atoms: &[usize], least: f64) -> Vec<usize> {
        let longest = atoms.iter().fold(0.0, |a: f64, &m| a.max(self.length[m]));
        atoms.iter().copied().filter(|&m| self.length[m] > least * longest).collect()
    }

    /// The axes of these atoms in the samples that use one of these branches.
    pub fn axes(&self, atoms: &[usize], branches: &[usize]) -> Option<Axes> {
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

/// D T for a whole dictionary, put together from some of its atoms.
pub(crate) struct Change {
    pub t: Array2<f64>,
    pub inverse: Array2<f64>,
}

impl Change {
    pub fn none(m: usize) -> Self {
        Change { t: Array2::eye(m), inverse: Array2::eye(m) }
    }

    pub fn set(&mut self, atoms: &[usize], t: &Array2<f64>, inverse: &Array2<f64>) {
        for (row, &a) in atoms.iter().enumerate() {
            for (column, &b) in atoms.iter().enumerate() {
                self.t[[a, b]] = t[[row, column]];
                self.inverse[[a, b]] = inverse[[row, column]];
            }
        }
    }
}
