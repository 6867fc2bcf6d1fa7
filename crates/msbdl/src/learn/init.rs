//! Starts every modality's atoms at the same random samples.

use ndarray::Array2;
use rand::seq::SliceRandom;

use super::em::Em;
use super::partition::START_POWER;
use crate::support::linalg;
use crate::support::random::{Purpose, stream};

/// D_j = samples, unit columns; gamma the same for all; s_j the mean energy per dimension.
pub(crate) fn start(em: &mut Em, seed: u64) {
    let mut order: Vec<usize> = (0..em.data.n_samples()).collect();
    order.shuffle(&mut stream(seed, Purpose::Initialise));
    // Samples that have every modality come first: their atoms start in their pairs.
    let modalities = em.data.modalities();
    order.sort_by_key(|&i| !modalities.iter().all(|x| x.present()[i]));
    for (j, modality) in modalities.iter().enumerate() {
        let m = em.prior.n_atoms(j);
        let usable = order.iter().filter(|&&i| modality.y().row(i).iter().any(|x| *x != 0.0));
        let mut d = Array2::zeros((modality.n_features(), m));
        for (mut column, &i) in d.columns_mut().into_iter().zip(usable) {
            column.assign(&modality.y().row(i));
        }
        linalg::normalise_columns(&mut d);
        em.d.push(d);
        em.s.push(em.energy(j));
    }
    em.level(START_POWER / em.prior.n_branches() as f64);
}
