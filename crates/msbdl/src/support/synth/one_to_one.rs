//! Draws data in which atom m of every modality is used or not used together.

use ndarray::Array2;
use rand::RngExt;
use rand::seq::index;
use rand_distr::{Distribution, StandardNormal};

use super::{Truth, check_missing, drop_modalities, observe, unit_columns};
use crate::input::branches::Branches;
use crate::support::error::{Error, Result};
use crate::support::random::{Purpose, stream};

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
        check_missing(&self.missing, self.snr.len())
    }

    /// Draws dictionaries, codes and data.
    pub fn draw(&self) -> Result<Truth> {
        self.check()?;
        let (n, m) = (self.n_features, self.n_atoms);
        let mut rng = stream(self.seed, Purpose::Dictionary);
        let dictionaries: Vec<Array2<f64>> =
            self.snr.iter().map(|_| unit_columns(n, m, &mut rng)).collect();
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
        let (mut data, sigma2) = observe(&dictionaries, &codes, &self.snr, self.seed);
        drop_modalities(&mut data, &self.missing, self.seed);
        let branches = Branches::balanced(0, m, &vec![1; self.snr.len()]);
        Ok(Truth { data, dictionaries, codes, sigma2, branches })
    }
}
