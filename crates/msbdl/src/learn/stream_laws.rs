//! Tests that batches are the incremental schedule, and what else a stream promises.

use std::sync::Arc;

use ndarray::Axis;

use super::e_step::Posterior;
use super::em::{Ask, Em, Schedule};
use super::fit::fit;
use super::noise::{Average, update_noise};
use super::stream::{Named, Stream};
use crate::input::config::Config;
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

#[test]
fn parts_make_the_same_stream() {
    let truth = truth(150, &[]);
    let mut stream = Stream::resume(model(&truth, 100, Some(50)), true);
    stream.step(batch(&truth, &rows(100..125)), Some("a"), 1).unwrap();
    let model = Model::from_bytes(&stream.model.to_bytes().unwrap()).unwrap();
    let mut copy = Stream::from_parts(model, &stream.memory().unwrap()).unwrap();
    for stream in [&mut stream, &mut copy] {
        stream.step(batch(&truth, &rows(125..150)), None, 1).unwrap();
        stream.step(batch(&truth, &rows(100..125)), Some("a"), 2).unwrap();
    }
    assert_eq!(stream.model.to_bytes(), copy.model.to_bytes());
}

/// A small batch after a large fit moves little; many batches improve a poor start.
#[test]
fn resuming_neither_forgets_nor_stands_still() {
    let truth = truth(1500, &[]);
    let found = |model: &Model, j: usize| {
        recovery(truth.dictionaries[j].view(), model.modalities[j].dictionary.view())
    };
    let good = model(&truth, 400, None);
    let mut stream = Stream::resume(good.clone(), true);
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
    let before = stream.memory().unwrap();
    let error =
        |stream: &mut Stream, batch, name| stream.step(batch, name, 1).unwrap_err().to_string();
    let longer = error(&mut stream, batch(&truth, &rows(0..70)), Some("a"));
    assert_eq!(longer, "block must be of 60 samples, as before, not of 70");
    let other = vec![("m7".to_owned(), truth.data[0].clone())];
    assert!(error(&mut stream, other, None).contains("unknown modality 'm7'"));
    assert_eq!(stream.memory().unwrap(), before);
    assert!(Stream::from_parts(stream.model.clone(), "{}").is_err());
}
