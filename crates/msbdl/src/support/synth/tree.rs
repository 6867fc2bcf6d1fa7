//! Draws data in which atoms of one modality hang under atoms of another.

use ndarray::Array2;
use rand::RngExt;
use rand::seq::index;
use rand_distr::{Distribution, StandardNormal};

use super::{Truth, check_missing, drop_modalities, observe, unit_columns};
use crate::input::branches::Branches;
use crate::learn::prune::number;
use crate::support::error::{Error, Result};
use crate::support::random::{Purpose, stream};

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
