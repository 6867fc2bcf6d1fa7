//! Codes samples for reading labels off: softly, under more noise than was found.
//!
//! Switched codes keep a few atoms, and which of two similar atoms is kept changes at random;
//! what is read off must change little when the sample changes little.

use std::sync::Arc;

use ndarray::{Array1, Array2};

use super::Model;
use crate::input::data::Data;
use crate::input::prior::{GammaStep, OneToOne};
use crate::learn::e_step::{Posterior, Want, e_step};
use crate::learn::em::{Ask, Em, Schedule};

/// EM steps, and the multiple of the noise they start from if the last one is not larger.
const STEPS: usize = 15;
const FIRST: f64 = 20.0;
/// Samples that are coded at once, which bounds the memory beside the codes.
const AT_ONCE: usize = 4096;

/// Codes of every modality of a [`Data`], in the library's units; nought where it is missing.
pub(crate) struct SoftCodes {
    pub mean: Vec<Array2<f64>>,
    pub variance: Vec<Array2<f64>>,
}

impl Model {
    /// EM with the dictionaries fixed, under noise that falls to `multiple` times what was found.
    pub(crate) fn soft_codes(&self, data: &Data, multiple: f64) -> SoftCodes {
        let (l, m) = (data.n_samples(), self.n_branches());
        let zeros = || data.modalities().iter().map(|_| Array2::zeros((l, m))).collect();
        let mut codes = SoftCodes { mean: zeros(), variance: zeros() };
        for from in (0..l).step_by(AT_ONCE) {
            let part = data.part(from..(from + AT_ONCE).min(l));
            self.soft_part(&part, multiple, from, &mut codes);
        }
        codes
    }

    fn soft_part(&self, data: &Data, multiple: f64, from: usize, codes: &mut SoftCodes) {
        let m = self.n_branches();
        let prior = Arc::new(OneToOne { n_atoms: m });
        let l = data.n_samples();
        let mut em = Em::new(data, prior, Posterior::Exact, Schedule::Full, l, self.seed);
        let mut noise = Vec::new();
        for modality in data.modalities() {
            let Some(learnt) = self.modality(modality.name()) else { return };
            em.d.push(learnt.dictionary.clone());
            noise.push(learnt.sigma2 / (learnt.scale * learnt.scale));
        }
        for ((offset, modality), learnt) in em
            .offset
            .iter_mut()
            .zip(data.modalities())
            .zip(data.modalities().iter().filter_map(|modality| self.modality(modality.name())))
        {
            let off: Array1<f64> = &learnt.mean - modality.mean();
            offset.assign(&(off / modality.scale()));
        }
        em.gamma.fill(self.slab.power);
        let first = FIRST.max(multiple);
        for t in 0..STEPS {
            let now = first * (multiple / first).powf(t as f64 / (STEPS - 1) as f64);
            em.s = noise.iter().map(|s| s * now).collect();
            let gamma = GammaStep::Em { floor: f64::MIN_POSITIVE };
            em.e_step(Ask { gamma, learn: false, cross: false });
        }
        for (j, prepared) in em.prepared(Posterior::Exact).iter().enumerate() {
            let modality = &data.modalities()[j];
            let y = modality.y() - &em.offset[j];
            let mut v = Array2::zeros((l, m));
            (0..l).for_each(|row| v.row_mut(row).assign(&em.variances(j, row)));
            let answer = e_step(prepared, y.view(), v.view(), Want { cov: false, slopes: false });
            for row in (0..l).filter(|&row| modality.present()[row]) {
                for k in 0..m {
                    let (v, at) = (v[[row, k]], row * m + k);
                    codes.mean[j][[from + row, k]] = v * answer.t[at];
                    codes.variance[j][[from + row, k]] = (v * (1.0 - v * answer.b[at])).max(0.0);
                }
            }
        }
    }
}
