//! Makes the paper's synthetic data, with their truth.

use ndarray::{Array1, Array2};
use rand::RngExt;
use rand::seq::index;
use rand_distr::{Distribution, StandardNormal};

use super::error::{Error, Result};
use super::linalg;
use super::random::{Purpose, stream};
use crate::input::branches::Branches;
use crate::learn::prune::number;

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

/// A recipe in which atoms of the first modality are roots with leaves in the others.
#[derive(Clone, Debug)]
pub struct TreeRecipe {
    /// Features per modality.
    pub n_features: Vec<usize>,
    /// Per modality after the first: how many leaves each root has; roots are as many.
    pub leaves: Vec<Vec<usize>>,
    pub n_samples: usize,
    /// Roots in use per sample.
    pub sparsity: usize,
    /// Signal-to-noise ratio per modality in dB.
    pub snr: Vec<f64>,
    /// Share of the samples that lack each modality (never two at once); empty: none.
    pub missing: Vec<f64>,
    /// Probability that a leaf is in use when its root is, where a root has several.
    pub leaf_on: f64,
    pub seed: u64,
}

/// A row of the paper's tables on trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// 50 roots with two leaves each; 30 and 30 dB.
    A,
    /// 50 roots, ten of them with two leaves; 30 and 30 dB.
    B,
    /// As B, leaves at 10 dB.
    C,
    /// As B, roots at 10 dB.
    D,
}

impl TreeRecipe {
    /// The paper's setting (50 roots of 20 features, L = 1000, s = 5).
    pub fn paper(case: Case, seed: u64) -> Self {
        let (features, two, snr) = match case {
            Case::A => (40, 50, [30.0, 30.0]),
            Case::B => (30, 10, [30.0, 30.0]),
            Case::C => (30, 10, [30.0, 10.0]),
            Case::D => (30, 10, [10.0, 30.0]),
        };
        TreeRecipe {
            n_features: vec![20, features],
            leaves: vec![(0..50).map(|k| if k < two { 2 } else { 1 }).collect()],
            n_samples: 1000,
            sparsity: 5,
            snr: snr.to_vec(),
            missing: Vec::new(),
            leaf_on: 1.0,
            seed,
        }
    }

    fn check(&self) -> Result<usize> {
        let wrong = |option, expected: &str, found: String| {
            Err(Error::Setting { option, expected: expected.to_owned(), found })
        };
        let roots = self.leaves.first().map_or(0, Vec::len);
        for (option, size) in
            [("samples", self.n_samples), ("sparsity", self.sparsity), ("roots", roots)]
        {
            if size == 0 {
                return wrong(option, "at least 1", "0".into());
            }
        }
        if self.n_features.contains(&0) {
            return wrong("features", "at least 1", "0".into());
        }
        if self.leaves.iter().any(|x| x.len() != roots || x.iter().sum::<usize>() == 0) {
            return wrong("leaves", "given for every root", format!("{:?}", self.leaves));
        }
        if self.sparsity > roots {
            return wrong("sparsity", "at most the number of roots", self.sparsity.to_string());
        }
        let modalities = self.leaves.len() + 1;
        if self.n_features.len() != modalities {
            return wrong("features", "given for every modality", format!("{:?}", self.n_features));
        }
        if self.snr.len() != modalities || self.snr.iter().any(|x| !x.is_finite()) {
            return wrong("snr", "one finite number a modality", format!("{:?}", self.snr));
        }
        if !(self.leaf_on > 0.0 && self.leaf_on <= 1.0) {
            return wrong("leaf-on", "above 0 and at most 1", self.leaf_on.to_string());
        }
        check_missing(&self.missing, modalities)?;
        Ok(roots)
    }

    /// Draws dictionaries, codes and data. The first leaves are atoms 0, 1, ... of their
    /// modality, then come the second ones: the paper's T^k = {k, k + M_1}.
    pub fn draw(&self) -> Result<Truth> {
        let roots = self.check()?;
        let mut atoms = vec![(0..roots).map(|k| vec![k]).collect::<Vec<_>>()];
        for leaves in &self.leaves {
            atoms.push(number(leaves));
        }
        let branches = Branches::flat(0, atoms);
        let modalities = self.leaves.len() + 1;
        let mut rng = stream(self.seed, Purpose::Dictionary);
        let dictionaries: Vec<Array2<f64>> = (0..modalities)
            .map(|j| unit_columns(self.n_features[j], branches.n_atoms(j), &mut rng))
            .collect();
        let mut rng = stream(self.seed, Purpose::Codes);
        let mut codes: Vec<Array2<f64>> =
            (0..modalities).map(|j| Array2::zeros((self.n_samples, branches.n_atoms(j)))).collect();
        for i in 0..self.n_samples {
            for k in index::sample(&mut rng, roots, self.sparsity) {
                for (j, x) in codes.iter_mut().enumerate() {
                    let atoms = branches.atoms(j, k);
                    for &m in atoms {
                        if atoms.len() == 1 || rng.random_bool(self.leaf_on) {
                            x[[i, m]] = StandardNormal.sample(&mut rng);
                        }
                    }
                }
            }
        }
        let (mut data, sigma2) = observe(&dictionaries, &codes, &self.snr, self.seed);
        drop_modalities(&mut data, &self.missing, self.seed);
        Ok(Truth { data, dictionaries, codes, sigma2, branches })
    }
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
