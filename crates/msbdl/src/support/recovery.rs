//! Measures how much of a known dictionary was found.

use ndarray::{Array2, ArrayView2, Axis};

use super::error::Result;
use super::linalg;
use super::synth::Truth;
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
    let prior = OneToOne { n_atoms: codes.ncols() };
    let l = data.n_samples();
    let mut em = Em::new(&data, &prior, Posterior::Exact, Schedule::Full, l, 0);
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
