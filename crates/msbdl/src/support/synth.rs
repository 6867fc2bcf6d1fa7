//! Makes the paper's synthetic data, with their truth.

use ndarray::{Array1, Array2};
use rand::RngExt;
use rand::seq::index;
use rand_distr::{Distribution, StandardNormal};

use super::error::{Error, Result};
use super::linalg;
use super::random::{Purpose, stream};

/// How the non-zero coefficients are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coefficients {
    /// N(0, 1), as in the paper.
    Normal,
    /// Uniform in +-[.5, 1.5].
    Uniform,
}

/// A recipe of synthetic data in which the support of the codes is shared.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub n_features: usize,
    pub n_atoms: usize,
    pub n_samples: usize,
    pub sparsity: usize,
    /// Signal-to-noise ratio per modality in dB; its length is the number of modalities.
    pub snr: Vec<f64>,
    /// Share of the samples that lack each modality (never two at once); empty: none.
    pub missing: Vec<f64>,
    pub coefficients: Coefficients,
    pub seed: u64,
}

impl Recipe {
    /// The paper's setting (N = 20, M = 50, L = 1000, s = 5) at these signal-to-noise ratios.
    pub fn paper(snr: &[f64], seed: u64) -> Self {
        Recipe {
            n_features: 20,
            n_atoms: 50,
            n_samples: 1000,
            sparsity: 5,
            snr: snr.to_vec(),
            missing: Vec::new(),
            coefficients: Coefficients::Normal,
            seed,
        }
    }

    fn check(&self) -> Result<()> {
        let wrong = |option, expected: &str, found: String| {
            Err(Error::Setting { option, expected: expected.to_owned(), found })
        };
        for (option, size) in [
            ("features", self.n_features),
            ("atoms", self.n_atoms),
            ("samples", self.n_samples),
            ("sparsity", self.sparsity),
        ] {
            if size == 0 {
                return wrong(option, "at least 1", "0".into());
            }
        }
        if self.sparsity > self.n_atoms {
            return wrong("sparsity", "at most the number of atoms", self.sparsity.to_string());
        }
        if self.snr.is_empty() || self.snr.iter().any(|x| !x.is_finite()) {
            return wrong("snr", "one finite number a modality", format!("{:?}", self.snr));
        }
        let positive = self.missing.iter().all(|share| *share >= 0.0);
        let together: f64 = self.missing.iter().sum();
        let several = self.snr.len() > 1 && self.missing.len() <= self.snr.len();
        let fine = self.missing.is_empty() || (several && positive && together <= 1.0);
        if !fine {
            let expected = "shares of several modalities that add up to at most 1";
            return wrong("missing", expected, format!("{:?}", self.missing));
        }
        Ok(())
    }

    /// Draws dictionaries, codes and data.
    pub fn draw(&self) -> Result<Truth> {
        self.check()?;
        let (n, m) = (self.n_features, self.n_atoms);
        let mut rng = stream(self.seed, Purpose::Dictionary);
        let dictionaries: Vec<Array2<f64>> = self
            .snr
            .iter()
            .map(|_| {
                let mut d = Array2::from_shape_fn((n, m), |_| StandardNormal.sample(&mut rng));
                linalg::normalise_columns(&mut d);
                d
            })
            .collect();
        let mut rng = stream(self.seed, Purpose::Codes);
        let mut codes = vec![Array2::zeros((self.n_samples, m)); self.snr.len()];
        for i in 0..self.n_samples {
            for k in index::sample(&mut rng, m, self.sparsity) {
                for x in &mut codes {
                    x[[i, k]] = match self.coefficients {
                        Coefficients::Normal => StandardNormal.sample(&mut rng),
                        Coefficients::Uniform => {
                            let sign = if rng.random_bool(0.5) { 1.0 } else { -1.0 };
                            sign * rng.random_range(0.5..1.5)
                        }
                    };
                }
            }
        }
        let mut rng = stream(self.seed, Purpose::Noise);
        let mut sigma2 = Vec::new();
        let mut data: Vec<Array2<f64>> = Vec::new();
        for ((d, x), snr) in dictionaries.iter().zip(&codes).zip(&self.snr) {
            let mut y = linalg::product(x.view(), d.t());
            let mut total = 0.0;
            for mut row in y.rows_mut() {
                let noise: Array1<f64> =
                    (0..n).map(|_| -> f64 { StandardNormal.sample(&mut rng) }).collect();
                let wanted = row.dot(&row) * 10f64.powf(-snr / 10.0);
                let noise = &noise * (wanted / noise.dot(&noise)).sqrt();
                total += wanted;
                row += &noise;
            }
            sigma2.push(total / (self.n_samples * n) as f64);
            data.push(y);
        }
        self.drop_modalities(&mut data);
        Ok(Truth { data, dictionaries, codes, sigma2 })
    }

    fn drop_modalities(&self, data: &mut [Array2<f64>]) {
        let mut rng = stream(self.seed, Purpose::Missing);
        let order = index::sample(&mut rng, self.n_samples, self.n_samples).into_vec();
        let mut next = 0;
        for (y, share) in data.iter_mut().zip(&self.missing) {
            let count = (share * self.n_samples as f64).round() as usize;
            for &row in order.iter().skip(next).take(count) {
                y.row_mut(row).fill(f64::NAN);
            }
            next += count;
        }
    }
}

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
}
