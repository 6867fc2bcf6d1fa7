//! Makes the paper's synthetic data, with their truth.

mod one_to_one;
mod tree;

use ndarray::{Array1, Array2};
use rand::RngExt;
use rand::seq::index;
use rand_distr::{Distribution, StandardNormal};

use super::error::{Error, Result};
use super::linalg;
use super::random::{Purpose, stream};
use crate::input::branches::Branches;
pub use one_to_one::{Coefficients, Recipe};
pub use tree::{Case, TreeRecipe};

/// Synthetic data and what they were made of; one entry per modality.
#[derive(Clone, Debug)]
pub struct Truth {
    /// L x N; NaN rows where a modality is missing.
    pub data: Vec<Array2<f64>>,
    /// N x M, unit columns.
    pub dictionaries: Vec<Array2<f64>>,
    /// L x M
    pub codes: Vec<Array2<f64>>,
    /// Mean noise variance.
    pub sigma2: Vec<f64>,
    /// Which atoms belong together.
    pub branches: Branches,
}

/// y = D x and noise that has the wanted share of every sample's energy; the mean variances.
fn observe(
    dictionaries: &[Array2<f64>],
    codes: &[Array2<f64>],
    snr: &[f64],
    seed: u64,
) -> (Vec<Array2<f64>>, Vec<f64>) {
    let mut rng = stream(seed, Purpose::Noise);
    let all = dictionaries.iter().zip(codes).zip(snr);
    all.map(|((d, x), snr)| {
        let mut y = linalg::product(x.view(), d.t());
        let mut total = 0.0;
        for mut row in y.rows_mut() {
            let noise: Array1<f64> =
                (0..d.nrows()).map(|_| -> f64 { StandardNormal.sample(&mut rng) }).collect();
            let wanted = row.dot(&row) * 10f64.powf(-snr / 10.0);
            let noise = &noise * (wanted / noise.dot(&noise)).sqrt();
            total += wanted;
            row += &noise;
        }
        let sigma2 = total / y.len() as f64;
        (y, sigma2)
    })
    .unzip()
}

/// Makes rows NaN: a share of them per modality, never the same row twice.
fn drop_modalities(data: &mut [Array2<f64>], missing: &[f64], seed: u64) {
    let n_samples = data.first().map_or(0, |y| y.nrows());
    let mut rng = stream(seed, Purpose::Missing);
    let order = index::sample(&mut rng, n_samples, n_samples).into_vec();
    let mut next = 0;
    for (y, share) in data.iter_mut().zip(missing) {
        let count = (share * n_samples as f64).round() as usize;
        for &row in order.iter().skip(next).take(count) {
            y.row_mut(row).fill(f64::NAN);
        }
        next += count;
    }
}

fn unit_columns(n: usize, m: usize, rng: &mut impl RngExt) -> Array2<f64> {
    let mut d = Array2::from_shape_fn((n, m), |_| StandardNormal.sample(rng));
    linalg::normalise_columns(&mut d);
    d
}

fn check_missing(missing: &[f64], modalities: usize) -> Result<()> {
    let positive = missing.iter().all(|share| *share >= 0.0);
    let together: f64 = missing.iter().sum();
    let several = modalities > 1 && missing.len() <= modalities;
    if missing.is_empty() || (several && positive && together <= 1.0) {
        return Ok(());
    }
    let expected = "shares of several modalities that add up to at most 1".to_owned();
    Err(Error::Setting { option: "missing", expected, found: format!("{missing:?}") })
}
