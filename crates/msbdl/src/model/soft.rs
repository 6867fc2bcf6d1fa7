//! Codes samples for reading labels off: softly, under more noise than was found.
//!
//! Switched codes keep a few atoms, and which of two similar atoms is kept changes at random;
//! what is read off must change little when the sample changes little.

use ndarray::{Array1, Array2, Axis, concatenate};

use super::{ModalityModel, Model};
use crate::input::data::{Data, Modality};
use crate::input::prior::GammaStep;
use crate::learn::e_step::{Posterior, Want, e_step};
use crate::learn::em::{Em, Schedule};

/// EM steps, and the multiple of the noise they start from if the last one is not larger.
const STEPS: usize = 15;
const FIRST: f64 = 20.0;
/// Weight of values beside codes: a ridge that suits both takes more off codes, which add to what
/// the values tell.
const VALUES: f64 = 3.0;
/// Samples that are coded at once, which bounds the memory beside the codes.
const AT_ONCE: usize = 4096;

/// Codes of every modality of a [`Data`], in the library's units; nought where it is missing.
#[derive(Clone)]
pub(crate) struct SoftCodes {
    pub mean: Vec<Array2<f64>>,
    pub variance: Vec<Array2<f64>>,
}

impl SoftCodes {
    /// Puts the samples' values, in the library's units and weighted, beside the means of their
    /// codes.
    pub fn beside_values(mut self, data: &Data, model: &Model) -> Self {
        for (mean, modality) in self.mean.iter_mut().zip(data.modalities()) {
            let Some(used) = model.modality(modality.name()) else { continue };
            let mut values = modality.y() - &offset(used, modality);
            for (mut row, present) in values.rows_mut().into_iter().zip(modality.present()) {
                if !present {
                    row.fill(0.0);
                }
            }
            // The same rows by construction.
            *mean = concatenate![Axis(1), *mean, values * VALUES];
        }
        self
    }
}

/// What to take off values that were centred by their own mean.
fn offset(used: &ModalityModel, modality: &Modality) -> Array1<f64> {
    (&used.mean - modality.mean()) / modality.scale()
}

impl Model {
    /// EM with the dictionaries fixed, under noise that falls to `multiple` times what was found.
    pub(crate) fn soft_codes(&self, data: &Data, multiple: f64) -> SoftCodes {
        let l = data.n_samples();
        let used: Vec<&ModalityModel> =
            data.modalities().iter().filter_map(|x| self.modality(x.name())).collect();
        let zeros = || used.iter().map(|x| Array2::zeros((l, x.dictionary.ncols()))).collect();
        let mut codes = SoftCodes { mean: zeros(), variance: zeros() };
        for from in (0..l).step_by(AT_ONCE) {
            let part = data.part(from..(from + AT_ONCE).min(l));
            self.soft_part(&part, &used, multiple, from, &mut codes);
        }
        codes
    }

    fn soft_part(
        &self,
        data: &Data,
        used: &[&ModalityModel],
        multiple: f64,
        from: usize,
        codes: &mut SoftCodes,
    ) {
        let l = data.n_samples();
        let prior = self.prior_of(used);
        let mut em = Em::new(data, prior, Posterior::Exact, Schedule::Full, l, self.seed);
        em.d = used.iter().map(|x| x.dictionary.clone()).collect();
        let noise: Vec<f64> = used.iter().map(|x| x.sigma2 / (x.scale * x.scale)).collect();
        for ((to, modality), used) in em.offset.iter_mut().zip(data.modalities()).zip(used) {
            to.assign(&offset(used, modality));
        }
        em.level(self.slab.power);
        let first = FIRST.max(multiple);
        for t in 0..STEPS {
            let now = first * (multiple / first).powf(t as f64 / (STEPS - 1) as f64);
            em.s = noise.iter().map(|s| s * now).collect();
            em.renew(GammaStep::Em { floor: f64::MIN_POSITIVE });
        }
        for (j, prepared) in em.prepared(Posterior::Exact).iter().enumerate() {
            let modality = &data.modalities()[j];
            let y = modality.y() - &em.offset[j];
            let m = em.d[j].ncols();
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
