//! Codes new samples with the dictionaries fixed, from any subset of the modalities.

use std::sync::Arc;

use ndarray::{Array1, Array2, Zip, s};

use super::{ModalityModel, Model};
use crate::input::data::Data;
use crate::input::prior::{GammaStep, Prior, Subset};
use crate::learn::e_step::{Posterior, Want, e_step};
use crate::learn::em::{Em, Schedule, keep_largest};
use crate::learn::fit::on_threads;
use crate::support::buffer::Buffer;
use crate::support::error::Result;
use crate::support::linalg;

/// Codes of new samples, in the user's units; rows are samples.
#[derive(Clone, Debug)]
pub struct Codes {
    /// Variance of every branch, L x K, in the library's units (a modality's are gamma * scale^2):
    /// how much the branch is in use. With the one-to-one prior, a branch is an atom.
    pub gamma: Array2<f64>,
    /// log p(y) of what was observed of each sample.
    pub log_evidence: Array1<f64>,
    /// Of every modality that was given, in the order of their names.
    pub modalities: Vec<ModalityCodes>,
}

/// One modality's codes.
#[derive(Clone, Debug)]
pub struct ModalityCodes {
    pub name: String,
    /// Posterior means, L x M.
    pub mean: Array2<f64>,
    /// Posterior variances, L x M.
    pub variance: Array2<f64>,
    /// mean + D x, L x N; the mean alone where the sample lacks the modality.
    pub reconstruction: Array2<f64>,
}

/// Soft steps under noise that falls from the first to the second multiple, as in learning. Each
/// goes three times as far as EM would, as ratios go, so that five reach what took EM twelve.
const SOFT: (usize, f64, f64) = (5, 20.0, 0.5);
/// The most steps that switch coefficients on or off.
const TOGGLE: usize = 20;
/// Steps of the paper's EM on the coefficients that are on.
const POLISH: usize = 2;
/// Samples that are coded at once, which bounds the memory beside the codes.
const AT_ONCE: usize = 4096;

impl Model {
    /// Codes samples; a row of NaN is a missing modality, and whole modalities may be left out.
    pub fn encode(&self, named: Vec<(String, Array2<f64>)>) -> Result<Codes> {
        self.encode_on(named, 0)
    }

    /// The same on so many threads; nought means one per core.
    pub fn encode_on(&self, named: Vec<(String, Array2<f64>)>, threads: usize) -> Result<Codes> {
        let data = self.data("encode", named)?;
        let used: Vec<&ModalityModel> =
            data.modalities().iter().filter_map(|x| self.modality(x.name())).collect();
        on_threads(threads, || self.codes(&data, &used))
    }

    fn codes(&self, data: &Data, used: &[&ModalityModel]) -> Codes {
        let l = data.n_samples();
        let mut codes = Codes {
            gamma: Array2::zeros((l, self.n_branches())),
            log_evidence: Array1::zeros(l),
            modalities: used.iter().map(|x| ModalityCodes::empty(x, l)).collect(),
        };
        for from in (0..l).step_by(AT_ONCE) {
            let rows = from..(from + AT_ONCE).min(l);
            self.code_rows(&data.part(rows.clone()), used, from, &mut codes);
        }
        codes
    }

    fn code_rows(&self, data: &Data, used: &[&ModalityModel], from: usize, codes: &mut Codes) {
        let l = data.n_samples();
        let prior = self.prior_of(used);
        let mut em = Em::new(data, prior, Posterior::Exact, Schedule::Full, l, self.seed);
        em.d = used.iter().map(|x| x.dictionary.clone()).collect();
        let noise: Vec<f64> = used.iter().map(|x| x.sigma2 / (x.scale * x.scale)).collect();
        self.find_gamma(&mut em, &noise);
        let here = from..from + l;
        let rows = || em.gamma.chunks_exact(em.prior.n_gamma()).enumerate();
        let mut gammas = codes.gamma.slice_mut(s![here.clone(), ..]);
        for (mut to, (_, gamma)) in gammas.rows_mut().into_iter().zip(rows()) {
            // A row of a freshly made array is contiguous, so the slice is always there.
            em.prior.branch_variances(gamma, to.as_slice_mut().unwrap_or(&mut []));
        }
        for (j, prepared) in em.prepared(Posterior::Exact).iter().enumerate() {
            let (modality, used) = (&data.modalities()[j], used[j]);
            let m = used.dictionary.ncols();
            let mut v = Buffer::stale(l * m);
            for (v, (_, gamma)) in v.chunks_exact_mut(m).zip(rows()) {
                em.prior.variances(gamma, j, v);
            }
            let v = v.rows(m);
            let want = Want { cov: false, slopes: false };
            let answer = e_step(prepared, modality.y().view(), v, want);
            let out = &mut codes.modalities[j];
            let mut mean = out.mean.slice_mut(s![here.clone(), ..]);
            let mut variance = out.variance.slice_mut(s![here.clone(), ..]);
            let (scale, t, b) = (used.scale, answer.t.rows(m), answer.b.rows(m));
            Zip::from(&mut mean).and(v).and(t).for_each(|to, v, t| *to = v * t * scale);
            Zip::from(&mut variance)
                .and(v)
                .and(b)
                .for_each(|to, v, b| *to = v * (1.0 - v * b) * (scale * scale));
            let n = modality.n_features() as f64;
            let constants = n * (std::f64::consts::TAU.ln() + 2.0 * scale.ln());
            for (row, &present) in modality.present().iter().enumerate() {
                if present {
                    codes.log_evidence[from + row] -=
                        0.5 * (constants + answer.log_det[row] + answer.quad[row]);
                } else {
                    // What is not seen says nothing of the codes.
                    mean.row_mut(row).fill(0.0);
                    variance.row_mut(row).assign(&(&v.row(row) * (scale * scale)));
                }
            }
            let mean = out.mean.slice(s![here.clone(), ..]);
            let fitted = linalg::product(mean, used.dictionary.t());
            out.reconstruction.slice_mut(s![here.clone(), ..]).scaled_add(1.0, &fitted);
        }
    }

    /// The model's prior, of the modalities that are there.
    pub(crate) fn prior_of(&self, used: &[&ModalityModel]) -> Arc<dyn Prior> {
        let prior = self.prior.on(&self.branches);
        let all = self.modalities.iter().enumerate();
        let there = all.filter(|(_, x)| used.iter().any(|used| used.name == x.name));
        let modalities = there.map(|(j, _)| j).collect();
        Arc::new(Subset { prior, n_modalities: self.modalities.len(), modalities })
    }

    /// gamma of samples that the model has not seen, given its noise.
    pub(crate) fn find_gamma(&self, em: &mut Em, noise: &[f64]) {
        let floor = 1e-3 * noise.iter().copied().fold(f64::INFINITY, f64::min);
        em.level(self.slab.power);
        let (steps, first, last) = SOFT;
        let mut before = Buffer::stale(em.gamma.len());
        for t in 0..steps {
            let multiple = first * (last / first).powf(t as f64 / (steps - 1) as f64);
            em.s = noise.iter().map(|s| s * multiple).collect();
            before.copy_from_slice(&em.gamma);
            em.renew(GammaStep::Em { floor });
            stretch(&mut em.gamma, &before, floor);
        }
        em.s = noise.to_vec();
        keep_largest(em, self.slab.power);
        self.toggle(em);
        for _ in 0..POLISH {
            em.renew(GammaStep::Em { floor });
        }
    }
}

/// Goes three times as far in the logarithm as the step from `before` to `gamma` did: over-relaxed
/// EM (Salakhutdinov and Roweis 2003), which has the same fixed points.
fn stretch(gamma: &mut [f64], before: &[f64], floor: f64) {
    for (gamma, before) in gamma.iter_mut().zip(before) {
        let far = (*gamma * (*gamma / before).powi(2)).max(floor);
        *gamma = if *before > 0.0 { far } else { *gamma };
    }
}

impl Model {
    /// Switches coefficients until none changes: with D and the noise fixed, a sample whose
    /// coefficients stay as they are would stay for ever.
    fn toggle(&self, em: &mut Em) {
        let k = em.prior.n_gamma();
        let mut open: Vec<usize> = (0..em.gamma.len() / k).collect();
        for _ in 0..TOGGLE {
            if open.is_empty() {
                break;
            }
            let mut gamma = Buffer::stale(open.len() * k);
            for (to, &row) in gamma.chunks_exact_mut(k).zip(&open) {
                to.copy_from_slice(&em.gamma[row * k..(row + 1) * k]);
            }
            let samples: Vec<usize> = open.iter().map(|&row| em.sample(row)).collect();
            em.renew_on(GammaStep::Toggle(self.slab), &samples, &mut gamma);
            let mut changed = gamma.chunks_exact(k);
            open.retain(|&row| {
                let (Some(new), old) = (changed.next(), &mut em.gamma[row * k..(row + 1) * k])
                else {
                    return false;
                };
                let moved = new != old;
                old.copy_from_slice(new);
                moved
            });
        }
    }
}

impl ModalityCodes {
    fn empty(model: &ModalityModel, l: usize) -> Self {
        let (n, m) = model.dictionary.dim();
        let reconstruction = Array2::from_shape_fn((l, n), |(_, k)| model.mean[k]);
        ModalityCodes {
            name: model.name.clone(),
            mean: Array2::zeros((l, m)),
            variance: Array2::zeros((l, m)),
            reconstruction,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretching_keeps_fixed_points_noughts_and_the_floor() {
        let before = [2.0, 2.0, 0.0, 1.0, 4.0];
        let mut gamma = [2.0, 4.0, 0.0, 0.1, 1.0];
        stretch(&mut gamma, &before, 0.05);
        assert_eq!(gamma, [2.0, 16.0, 0.0, 0.05, 0.0625]);
    }
}
