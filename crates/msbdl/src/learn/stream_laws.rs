//! Tests that batches are the incremental schedule, and what else a stream promises.

use std::sync::Arc;

use ndarray::{Array1, Array2, Axis};

use super::e_step::Posterior;
use super::em::{Ask, Em, Schedule};
use super::fit::fit;
use super::noise::{Average, update_noise};
use super::stream::{Named, Stream};
use crate::input::config::{Config, Preset};
use crate::input::data::Data;
use crate::input::prior::{GammaStep, OneToOne, Slab};
use crate::model::Model;
use crate::support::observe::Silent;
use crate::support::recovery::recovery;
use crate::support::synth::{Recipe, Truth};

pub(super) fn truth(l: usize, missing: &[f64]) -> Truth {
    let paper = Recipe::paper(&[30.0, 20.0], 1);
    Recipe {
        n_atoms: 12,
        n_features: 8,
        sparsity: 2,
        n_samples: l,
        missing: missing.to_vec(),
        ..paper
    }
    .draw()
    .unwrap()
}

pub(super) fn batch(truth: &Truth, rows: &[usize]) -> Named {
    let each = truth.data.iter().enumerate();
    each.map(|(j, y)| (format!("m{j}"), y.select(Axis(0), rows))).collect()
}

fn rows(range: std::ops::Range<usize>) -> Vec<usize> {
    range.collect()
}

fn model(truth: &Truth, l: usize, max_iter: Option<usize>) -> Model {
    let data = Data::new(batch(truth, &rows(0..l)), true).unwrap();
    fit(&data, &Config { max_iter, ..Config::new(12) }, &mut Silent).unwrap()
}

/// The incremental schedule on four blocks of fifty samples, for streams to be held against.
pub(super) struct Scheduled<'a> {
    pub em: Em<'a>,
    whole: &'a Data,
    slab: Slab,
}

impl<'a> Scheduled<'a> {
    pub fn new(whole: &'a Data, model: &Model) -> Self {
        let prior = Arc::new(OneToOne { n_atoms: 12 });
        let mut em = Em::new(whole, prior, Posterior::Exact, Schedule::Incremental, 50, 3);
        em.d = model.modalities.iter().map(|x| x.dictionary.clone()).collect();
        em.s = model.modalities.iter().map(|x| x.sigma2 / x.scale.powi(2)).collect();
        Scheduled { em, whole, slab: model.slab }
    }

    /// The samples of block k.
    pub fn samples(&self, k: usize) -> Vec<usize> {
        (k * 50..(k + 1) * 50).map(|row| self.em.sample(row)).collect()
    }

    /// Takes the step of block k, `own` being its samples, which `stream` has not seen yet.
    pub fn step(&mut self, (pass, k): (usize, usize), own: Named, stream: &Stream) {
        let (em, whole) = (&mut self.em, self.whole);
        if pass == 0 {
            // Coded as new samples are, without any labels.
            let data = stream.data(own).unwrap();
            let prior = em.prior.clone();
            let mut new = Em::new(&data, prior, Posterior::Exact, Schedule::Full, 50, 0);
            (new.d, new.offset) = (em.d.clone(), em.offset.clone());
            stream.model.find_gamma(&mut new, &em.s);
            em.gamma[k * 50 * 12..(k + 1) * 50 * 12].copy_from_slice(&new.gamma);
        }
        let total =
            em.e_step(Ask { gamma: GammaStep::Toggle(self.slab), learn: true, cross: false });
        em.m_step(&total, &[false, false]).unwrap();
        // The schedule's own step of the noise is that of a quarter of a pass.
        let (before, blocks) = (em.s.clone(), if pass == 0 { k + 1 } else { 4 });
        let mut one = Em::new(whole, em.prior.clone(), Posterior::Exact, Schedule::Full, 200, 0);
        (one.d, one.s) = (em.d.clone(), em.s.clone());
        update_noise(&mut one, &total, Average::Mean);
        let s = before.iter().zip(&one.s);
        em.s = s.map(|(a, b)| a * (b / a).powf(1.0 / blocks as f64)).collect();
        self.slab.update(&total, 12);
    }
}

/// k batches once are one pass of the incremental schedule, and k more are the next.
#[test]
fn batches_are_the_incremental_schedule() {
    let truth = truth(200, &[0.2, 0.1]);
    let model = model(&truth, 100, Some(200));
    let mut stream = Stream::new(model.clone(), true);
    let whole = stream.data(batch(&truth, &rows(0..200))).unwrap();
    let mut expected = Scheduled::new(&whole, &model);
    for (pass, k) in (0..2).flat_map(|pass| (0..4).map(move |k| (pass, k))) {
        let own = expected.samples(k);
        expected.step((pass, k), batch(&truth, &own), &stream);
        stream.step(batch(&truth, &own), Some(&k.to_string()), 1).unwrap();
        for (j, part) in stream.model.modalities.iter().enumerate() {
            let difference = (&part.dictionary - &expected.em.d[j]).mapv(f64::abs).sum();
            assert!(difference < 1e-9, "pass {pass}, batch {k}: {difference}");
            let s = part.sigma2 / part.scale.powi(2);
            assert!((s / expected.em.s[j] - 1.0).abs() < 1e-9);
        }
    }
}

fn from_file(stream: &Stream) -> Stream {
    let bytes = stream.model().to_bytes().unwrap();
    Stream::resume(Model::from_bytes(&bytes).unwrap()).unwrap()
}

/// From a file learning goes on with the same bits, whatever the batches.
#[test]
fn files_make_the_same_stream() {
    let truth = truth(150, &[0.2, 0.1]);
    let fitted = model(&truth, 100, Some(50));
    for start in [Stream::resume(fitted.clone()).unwrap(), Stream::new(fitted, true)] {
        let mut stream = start;
        let steps =
            [(100..125, Some("a")), (125..150, None), (90..110, None), (100..125, Some("a"))];
        for (range, name) in steps {
            let mut copy = from_file(&stream);
            stream.step(batch(&truth, &rows(range.clone())), name, 1).unwrap();
            copy.step(batch(&truth, &rows(range)), name, 2).unwrap();
            assert_eq!(stream.model().to_bytes(), copy.model().to_bytes());
        }
    }
}

/// The sums of a fit are those of all its samples, by the literal formulas.
#[test]
fn a_fit_keeps_its_sums() {
    let truth = truth(100, &[0.2, 0.1]);
    for preset in [Preset::Auto, Preset::Paper, Preset::Msbdl4] {
        let data = Data::new(batch(&truth, &rows(0..100)), true).unwrap();
        let config = Config { preset, max_iter: Some(60), ..Config::new(12) };
        let model = fit(&data, &config, &mut Silent).unwrap();
        let memory = model.memory.as_ref().unwrap();
        let past = memory.past.as_ref().unwrap();
        assert_eq!(past.count, 100);
        for (j, (part, stats)) in model.modalities.iter().zip(&past.modalities).enumerate() {
            let y = data.modalities()[j].y();
            let present = data.modalities()[j].n_present();
            assert_eq!(stats.count, present);
            let off = (&stats.y - &y.sum_axis(Axis(0))).mapv(f64::abs).sum();
            assert!(off < 1e-9, "sum of y is off by {off}");
            // sum (y - offset - D mu) by its parts, and the residual, from C, B and the sum of mu.
            let offset = (&part.mean - &memory.base[j]) / part.scale;
            let d = &part.dictionary;
            let b = &stats.b - &outer(&offset, &stats.mu);
            let yy: f64 = y
                .rows()
                .into_iter()
                .zip(data.modalities()[j].present())
                .filter(|(_, present)| **present)
                .map(|(y, _)| (&y - &offset).mapv(|x| x * x).sum())
                .sum();
            let (cross, square) = ((d * &b).sum(), (&d.t().dot(d) * &stats.c).sum());
            // tr D^T D Sigma = s (N - free)
            let s = part.sigma2 / part.scale.powi(2);
            let spread = s * ((present * d.nrows()) as f64 - stats.free);
            let residual = yy - 2.0 * cross + square - spread;
            assert!((residual / stats.residual - 1.0).abs() < 1e-6, "{preset:?} {j} {residual}");
        }
    }
}

fn outer(a: &Array1<f64>, b: &Array1<f64>) -> Array2<f64> {
    Array2::from_shape_fn((a.len(), b.len()), |(n, m)| a[n] * b[m])
}

/// A batch after a fit is what a second block is after a first that is not seen again.
#[test]
fn a_batch_after_a_fit_adds_to_its_sums() {
    let truth = truth(150, &[]);
    let model = model(&truth, 100, Some(50));
    let mut stream = Stream::resume(model.clone()).unwrap();
    stream.step(batch(&truth, &rows(100..150)), Some("b"), 1).unwrap();
    let memory = stream.model().memory.as_ref().unwrap();
    let mut total = memory.blocks["b"].stats.clone();
    total.merge(model.memory.as_ref().unwrap().past.as_ref().unwrap());
    let data = stream.data(batch(&truth, &rows(0..150))).unwrap();
    let prior = Arc::new(OneToOne { n_atoms: 12 });
    let mut em = Em::new(&data, prior, Posterior::Exact, Schedule::Full, 150, 0);
    em.d = model.modalities.iter().map(|x| x.dictionary.clone()).collect();
    em.m_step(&total, &[false, false]).unwrap();
    for (part, d) in stream.model().modalities.iter().zip(&em.d) {
        assert_eq!(part.dictionary, d);
    }
}

/// A small batch after a large fit moves little; many batches improve a poor start.
#[test]
fn resuming_neither_forgets_nor_stands_still() {
    let truth = truth(1500, &[]);
    let found = |model: &Model, j: usize| {
        recovery(truth.dictionaries[j].view(), model.modalities[j].dictionary.view())
    };
    let good = model(&truth, 400, None);
    let mut stream = Stream::resume(good.clone()).unwrap();
    stream.step(batch(&truth, &rows(400..410)), None, 1).unwrap();
    for j in 0..2 {
        assert!(found(&stream.model, j) >= found(&good, j), "{j}");
    }
    let evidence =
        |model: &Model| model.encode(batch(&truth, &rows(1400..1500))).unwrap().log_evidence.sum();
    let mut stream = Stream::new(model(&truth, 40, None), true);
    let before = evidence(&stream.model);
    for start in (0..1400).step_by(100) {
        stream.step(batch(&truth, &rows(start..start + 100)), None, 1).unwrap();
    }
    let after = evidence(&stream.model);
    assert!(after > before + 100.0, "{before} {after}");
}

#[test]
fn bad_batches_change_nothing() {
    let truth = truth(100, &[]);
    let mut stream = Stream::new(model(&truth, 60, Some(20)), true);
    stream.step(batch(&truth, &rows(0..60)), Some("a"), 1).unwrap();
    let before = stream.model().to_bytes();
    let error =
        |stream: &mut Stream, batch, name| stream.step(batch, name, 1).unwrap_err().to_string();
    let longer = error(&mut stream, batch(&truth, &rows(0..70)), Some("a"));
    assert_eq!(longer, "block must be of 60 samples, as before, not of 70");
    let other = vec![("m7".to_owned(), truth.data[0].clone())];
    assert!(error(&mut stream, other, None).contains("unknown modality 'm7'"));
    assert_eq!(stream.model().to_bytes(), before);
    let old = Model { memory: None, ..stream.into_model() };
    let old = Model::from_bytes(&old.to_bytes().unwrap()).unwrap();
    assert!(!old.has_sums());
    let error = Stream::resume(old).unwrap_err().to_string();
    assert!(error.starts_with("the model has no sums of the samples"), "{error}");
}
