//! Measures how much of a known dictionary was found.

use std::sync::Arc;

use ndarray::{Array2, ArrayView2, Axis};

use super::error::Result;
use super::linalg;
use super::synth::Truth;
use crate::input::branches::Branches;
use crate::input::data::Data;
use crate::input::prior::{GammaStep, OneToOne};
use crate::learn::e_step::Posterior;
use crate::learn::em::{Ask, Em, Schedule};
use crate::learn::noise::{Average, update_noise};

/// |cosine| above which an atom counts as recovered.
pub const RECOVERED: f64 = 0.99;

/// |cosine| of every true atom with every found one.
pub fn cosines(truth: ArrayView2<f64>, found: ArrayView2<f64>) -> Array2<f64> {
    let (mut truth, mut found) = (truth.to_owned(), found.to_owned());
    linalg::normalise_columns(&mut truth);
    linalg::normalise_columns(&mut found);
    linalg::product(truth.t(), found.view()).mapv_into(f64::abs)
}

/// Share of the true atoms that some found atom matches above [`RECOVERED`].
pub fn recovery(truth: ArrayView2<f64>, found: ArrayView2<f64>) -> f64 {
    let cosines = cosines(truth, found);
    let best = cosines.rows().into_iter().map(|row| row.fold(0.0, |a: f64, &b| a.max(b)));
    best.filter(|&best| best > RECOVERED).count() as f64 / truth.ncols() as f64
}

/// The paper's iota: the product of the cosines of the angles between two spans of the same
/// dimension; nought if the dimensions differ.
pub fn iota(truth: ArrayView2<f64>, found: ArrayView2<f64>) -> f64 {
    if truth.ncols() != found.ncols() {
        return 0.0;
    }
    let (v1, v2) = (linalg::basis(truth.to_owned()), linalg::basis(found.to_owned()));
    linalg::determinant(linalg::product(v1.t(), v2.view()).view()).abs()
}

/// What was found of one modality's branches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BranchRecovery {
    /// Share of the branches with one atom whose atom is a branch of the found ones (theta_1).
    pub single: Option<f64>,
    /// Share of the branches with several whose span is that of a found branch (theta_2).
    pub spans: Option<f64>,
    /// Share of the atoms of branches with several that some found atom matches (rho_2).
    pub atoms: Option<f64>,
    /// Share of the branches whose span hangs under the right root.
    pub under_root: f64,
}

/// Dictionaries of all modalities, and which of their atoms belong together.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    pub dictionaries: &'a [ArrayView2<'a, f64>],
    pub branches: &'a Branches,
}

/// Compares the branches of modality `j`.
pub fn branch_recovery(truth: Found, found: Found, j: usize) -> BranchRecovery {
    let span =
        |of: Found, j: usize, k: usize| of.dictionaries[j].select(Axis(1), of.branches.atoms(j, k));
    let share = |hits: Vec<bool>| match hits.len() {
        0 => None,
        n => Some(hits.into_iter().filter(|hit| *hit).count() as f64 / n as f64),
    };
    let branches = 0..truth.branches.count();
    let spans: Vec<Array2<f64>> = (0..found.branches.count()).map(|k| span(found, j, k)).collect();
    let like =
        |k: usize, other: &Array2<f64>| iota(span(truth, j, k).view(), other.view()) > RECOVERED;
    let root = truth.branches.root();
    let roots = cosines(truth.dictionaries[root], found.dictionaries[root]);
    let several = |k: &usize| truth.branches.atoms(j, *k).len() > 1;
    let single = |k: &usize| truth.branches.atoms(j, *k).len() == 1;
    let matched = |k: usize| spans.iter().any(|other| like(k, other));
    let atoms = cosines(truth.dictionaries[j], found.dictionaries[j]);
    let atom = |m: &usize| atoms.row(*m).iter().any(|cosine| *cosine > RECOVERED);
    let under = |k: usize| {
        let best = (0..roots.ncols()).max_by(|&a, &b| roots[[k, a]].total_cmp(&roots[[k, b]]));
        best.is_some_and(|best| roots[[k, best]] > RECOVERED && like(k, &spans[best]))
    };
    BranchRecovery {
        single: share(branches.clone().filter(single).map(matched).collect()),
        spans: share(branches.clone().filter(several).map(matched).collect()),
        atoms: share(
            branches
                .clone()
                .filter(several)
                .flat_map(|k| truth.branches.atoms(j, k))
                .map(atom)
                .collect(),
        ),
        under_root: share(branches.map(under).collect()).unwrap_or(0.0),
    }
}

/// EM steps of [`limit`]: more change no atom's verdict.
const LIMIT_STEPS: usize = 100;

/// Recovery that knowing every support would reach: EM on dictionary and noise alone, with
/// the variance of the true coefficients where they are not nought, from the true dictionary.
pub fn limit(truth: &Truth) -> Result<Vec<f64>> {
    (0..truth.data.len()).map(|j| limit_of(truth, j)).collect()
}

fn limit_of(truth: &Truth, j: usize) -> Result<f64> {
    let seen: Vec<usize> =
        (0..truth.data[j].nrows()).filter(|&i| !truth.data[j][[i, 0]].is_nan()).collect();
    let y = truth.data[j].select(Axis(0), &seen);
    let data = Data::new(vec![("truth".into(), y)], false)?;
    let scale2 = data.modalities()[0].scale().powi(2);
    let codes = truth.codes[j].select(Axis(0), &seen);
    let active = codes.iter().filter(|x| **x != 0.0).count().max(1) as f64;
    let power = codes.iter().map(|x| x * x).sum::<f64>() / active / scale2;
    let prior = Arc::new(OneToOne { n_atoms: codes.ncols() });
    let l = data.n_samples();
    let mut em = Em::new(&data, prior, Posterior::Exact, Schedule::Full, l, 0);
    em.d = vec![truth.dictionaries[j].clone()];
    em.s = vec![truth.sigma2[j] / scale2];
    em.gamma = codes.iter().map(|x| if *x == 0.0 { 0.0 } else { power }).collect();
    for _ in 0..LIMIT_STEPS {
        let stats = em.e_step(Ask { gamma: GammaStep::Keep, learn: true, cross: false });
        em.m_step(&stats, &[false])?;
        update_noise(&mut em, &stats, Average::Mean);
    }
    Ok(recovery(truth.dictionaries[j].view(), em.d[0].view()))
}
