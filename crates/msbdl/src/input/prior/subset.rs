//! Restricts a prior to some of its modalities, for samples that have no others.

use super::{GammaStep, Moments, Prior};

/// Modality j here is modality `modalities[j]` of the whole prior; the others are never seen.
pub struct Subset<P> {
    pub prior: P,
    pub n_modalities: usize,
    pub modalities: Vec<usize>,
}

impl<P: AsRef<dyn Prior> + Send + Sync> Prior for Subset<P> {
    fn n_gamma(&self) -> usize {
        self.prior.as_ref().n_gamma()
    }

    fn n_atoms(&self, j: usize) -> usize {
        self.prior.as_ref().n_atoms(self.modalities[j])
    }

    fn variances(&self, gamma: &[f64], j: usize, v: &mut [f64]) {
        self.prior.as_ref().variances(gamma, self.modalities[j], v);
    }

    fn update(&self, gamma: &mut [f64], seen: &[Option<Moments>], step: GammaStep) {
        /// So many need no memory of their own, which would be asked for in every step.
        const FEW: usize = 4;
        let (mut few, mut many) = ([None; FEW], Vec::new());
        let all = match few.get_mut(..self.n_modalities) {
            Some(few) => few,
            None => {
                many.resize(self.n_modalities, None);
                &mut many[..]
            }
        };
        for (moments, &j) in seen.iter().zip(&self.modalities) {
            all[j] = *moments;
        }
        self.prior.as_ref().update(gamma, all, step);
    }

    fn set(&self, gamma: &mut [f64], k: usize, power: f64) {
        self.prior.as_ref().set(gamma, k, power);
    }

    fn set_all(&self, gamma: &mut [f64], power: &[f64]) {
        self.prior.as_ref().set_all(gamma, power);
    }

    fn n_branches(&self) -> usize {
        self.prior.as_ref().n_branches()
    }

    fn branch_of(&self, j: usize, m: usize) -> usize {
        self.prior.as_ref().branch_of(self.modalities[j], m)
    }

    fn branch_variances(&self, gamma: &[f64], v: &mut [f64]) {
        self.prior.as_ref().branch_variances(gamma, v);
    }
}
