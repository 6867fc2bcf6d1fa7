//! Runs one EM step on a set of samples: posteriors, new gamma, and the sums for the M-step.

use std::f64::consts::PI;

use ndarray::{Array2, ArrayView2, Axis};
use rayon::prelude::*;

use super::e_step::{Answer, Prepared, Want, e_step};
use super::stats::{Cross, ModalityStats, Stats};
use super::task::{Accounts, Labelled, Told};
use crate::input::data::Data;
use crate::input::prior::{GammaStep, Moments, Prior};
use crate::support::buffer::Buffer;
use crate::support::linalg;

/// Samples that a thread handles at once: enough for the vector kernels and the products,
/// few enough that the posteriors stay in the cache.
const CHUNK: usize = 256;

/// gamma at the start times the number of atoms: the paper's gamma = 1 on its data.
pub(crate) const START_POWER: f64 = 10.0;

/// What a step needs beside the samples.
pub(crate) struct Step<'a> {
    pub data: &'a Data,
    pub prior: &'a dyn Prior,
    pub dictionaries: &'a [Prepared],
    /// Labels that the samples are coded with.
    pub labels: Option<&'a Labelled<'a>>,
    pub gamma_step: GammaStep,
    /// Gather the sums that the M-step needs.
    pub learn: bool,
    /// Gather the sums that pairing needs.
    pub cross: bool,
}

impl Step<'_> {
    /// Updates `gamma` (one row per entry of `samples`) and returns the sums.
    ///
    /// The samples are halved until they fit a chunk, so the order of all sums depends on
    /// their number alone and never on the threads.
    pub fn run(&self, samples: &[usize], gamma: &mut [f64]) -> Stats {
        if samples.len() <= CHUNK {
            return self.chunk(samples, gamma);
        }
        let middle = (samples.len() / 2).next_multiple_of(CHUNK);
        let (first, second) = samples.split_at(middle);
        let (gamma_1, gamma_2) = gamma.split_at_mut(middle * self.prior.n_gamma());
        let (mut left, right) =
            rayon::join(|| self.run(first, gamma_1), || self.run(second, gamma_2));
        left.merge(&right);
        left
    }

    /// Updates `gamma` alone.
    pub fn renew(&self, samples: &[usize], gamma: &mut [f64]) {
        let rows = gamma.par_chunks_mut(CHUNK * self.prior.n_gamma());
        rows.zip(samples.par_chunks(CHUNK)).for_each(|(gamma, samples)| {
            self.renew_chunk(samples, gamma);
        });
    }

    fn renew_chunk(&self, samples: &[usize], gamma: &mut [f64]) -> Vec<Seen<'_>> {
        let seen: Vec<Seen> =
            (0..self.dictionaries.len()).map(|j| self.posterior(j, samples, gamma)).collect();
        let mut moments = Vec::with_capacity(seen.len());
        for (row, gamma) in gamma.chunks_exact_mut(self.prior.n_gamma()).enumerate() {
            moments.clear();
            moments.extend(seen.iter().map(|seen| seen.moments(row)));
            self.prior.update(gamma, &moments, self.gamma_step);
        }
        seen
    }

    fn chunk(&self, samples: &[usize], gamma: &mut [f64]) -> Stats {
        let seen = self.renew_chunk(samples, gamma);
        Stats {
            count: samples.len(),
            active: gamma.iter().filter(|gamma| **gamma > 0.0).count() as f64,
            modalities: seen.iter().map(|seen| seen.stats(self.learn)).collect(),
            cross: if self.cross { crosses(&seen, samples.len()) } else { Vec::new() },
        }
    }

    /// The E-step of modality `j` on those samples that have it.
    fn posterior(&self, j: usize, samples: &[usize], gamma: &[f64]) -> Seen<'_> {
        let modality = &self.data.modalities()[j];
        let (k, m) = (self.prior.n_gamma(), self.prior.n_atoms(j));
        let mut place = vec![None; samples.len()];
        let mut present = Vec::with_capacity(samples.len());
        for (row, &sample) in samples.iter().enumerate() {
            if modality.present()[sample] {
                place[row] = Some(present.len());
                present.push(sample);
            }
        }
        let n = modality.n_features();
        let (mut y, mut sum_y) = (Buffer::stale(present.len() * n), vec![0.0; n]);
        for (row, &sample) in y.chunks_exact_mut(n).zip(&present) {
            let values = modality.row(sample).iter().zip(self.dictionaries[j].offset());
            // Summed while it is at hand: the rows of many features leave the cache.
            for ((to, sum), (y, offset)) in row.iter_mut().zip(&mut sum_y).zip(values) {
                *to = y - offset;
                *sum += y;
            }
        }
        let mut v = Buffer::stale(present.len() * m);
        for (gamma, place) in gamma.chunks_exact(k).zip(&place) {
            if let Some(place) = *place {
                self.prior.variances(gamma, j, &mut v[place * m..(place + 1) * m]);
            }
        }
        let negligible = self.gamma_step.negligible();
        v.iter_mut().for_each(|v| *v = if *v > negligible { *v } else { 0.0 });
        let switches = matches!(self.gamma_step, GammaStep::Toggle(_) | GammaStep::Sharpen { .. });
        let want = Want { cov: self.learn, slopes: self.cross || switches };
        let plain = &self.dictionaries[j];
        let (answer, told) = match self.labels {
            None => (e_step(plain, y.rows(n), v.rows(m), want), None),
            Some(labels) => labels.e_step(j, plain, &present, y.rows(n), v.rows(m), want),
        };
        Seen { dictionary: plain, n, m, place, y, sum_y, v, answer, told }
    }
}

/// One modality's posteriors of a chunk.
struct Seen<'a> {
    dictionary: &'a Prepared,
    /// Where each sample of the chunk stands in the arrays below.
    place: Vec<Option<usize>>,
    n: usize,
    m: usize,
    /// Sum of y, offset included.
    sum_y: Vec<f64>,
    /// y without the offset, rows x N; the others are rows x M.
    y: Buffer,
    v: Buffer,
    answer: Answer,
    told: Option<Told<'a>>,
}

impl Seen<'_> {
    /// |mu| as it would be if every coefficient's own variance were `power`: shared
    /// hyperparameters make |mu| itself agree between columns that do not belong together.
    fn apart(&self, places: impl Iterator<Item = usize>, power: f64) -> Array2<f64> {
        let places: Vec<usize> = places.collect();
        let mut out = Array2::zeros((places.len(), self.m));
        for (mut row, &place) in out.rows_mut().into_iter().zip(&places) {
            let moments = self.at(place);
            for (k, x) in row.iter_mut().enumerate() {
                *x = moments.size_under(k, power);
            }
        }
        out
    }

    fn moments(&self, row: usize) -> Option<Moments<'_>> {
        self.place[row].map(|place| self.at(place))
    }

    fn at(&self, place: usize) -> Moments<'_> {
        let here = place * self.m..(place + 1) * self.m;
        Moments {
            v: &self.v[here.clone()],
            t: &self.answer.t[here.clone()],
            b: &self.answer.b[here],
        }
    }

    fn mu(&self) -> Buffer {
        let mut mu = Buffer::stale(self.v.len());
        mu.iter_mut().zip(&*self.v).zip(&*self.answer.t).for_each(|((mu, v), t)| *mu = v * t);
        mu
    }

    fn stats(&self, learn: bool) -> ModalityStats {
        let (n, m) = (self.n, self.m);
        let mut stats = ModalityStats::new(n, m);
        stats.count = self.place.iter().flatten().count();
        if stats.count == 0 {
            return stats;
        }
        let mu = if learn || self.told.is_some() { self.mu() } else { Buffer::default() };
        let mu = mu.rows(m);
        let moments = (0..stats.count).map(|place| self.at(place).used_and_fitted());
        let (mut vb, mut vtt): (Vec<f64>, Vec<f64>) = moments.unzip();
        let told = self.told.as_ref().map(|told| told.accounts(mu, &vb, &self.answer.cov));
        if let Some(told) = &told {
            told.take_off(&mut vb, &mut vtt);
        }
        for place in 0..stats.count {
            // |y - D mu|^2 = s (y^T S^-1 y - sum v t^2) and s tr S^-1 = N - sum v b. Both are
            // positive; rounding must not say otherwise.
            let residual = (self.dictionary.s() * (self.answer.quad[place] - vtt[place])).max(0.0);
            let free = (n as f64 - vb[place]).max(f64::EPSILON);
            stats.residual += residual;
            stats.free += free;
            stats.spread.add(residual / free);
            stats.log_likelihood -= 0.5
                * (n as f64 * (2.0 * PI).ln()
                    + self.answer.log_det[place]
                    + self.answer.quad[place]);
        }
        stats.log_likelihood += told.as_ref().map_or(0.0, |told| told.constants);
        if learn {
            self.add_moments(&mut stats, mu, told);
        }
        stats
    }

    /// The sums that the M-step needs.
    fn add_moments(&self, stats: &mut ModalityStats, mu: ArrayView2<f64>, told: Option<Accounts>) {
        let y = self.y.rows(self.n);
        match &told {
            // All samples have labels, so theirs are the sums.
            Some(told) if told.sums.count == stats.count => {
                (stats.c, stats.energy) = (told.sums.c.clone(), told.energy.clone());
            }
            _ => {
                stats.c = linalg::gram(mu);
                stats.energy = stats.c.diag().to_owned();
                stats.c.iter_mut().zip(&*self.answer.cov).for_each(|(c, cov)| *c += cov);
            }
        }
        stats.labels = told.map(|told| told.sums);
        linalg::set_product(stats.b.view_mut(), y.t(), mu);
        stats.mu = linalg::column_sums(mu);
        stats.y = self.sum_y.clone().into();
        // Sums are kept while the offset moves on, so they must not depend on it.
        for (n, &offset) in self.dictionary.offset().iter().enumerate() {
            stats.b.row_mut(n).scaled_add(offset, &stats.mu);
        }
    }
}

fn crosses(seen: &[Seen], rows: usize) -> Vec<Cross> {
    let mut all = Vec::new();
    for (p, left) in seen.iter().enumerate() {
        for right in &seen[p + 1..] {
            let both: Vec<(usize, usize)> =
                (0..rows).filter_map(|row| left.place[row].zip(right.place[row])).collect();
            let power = START_POWER / left.m as f64;
            let a = left.apart(both.iter().map(|x| x.0), power);
            let b = right.apart(both.iter().map(|x| x.1), power);
            let squares = |x: ArrayView2<f64>| x.mapv(|x| x * x).sum_axis(Axis(0));
            all.push(Cross {
                count: both.len() as f64,
                product: linalg::product(a.t(), b.view()),
                sums: [a.sum_axis(Axis(0)), b.sum_axis(Axis(0))],
                squares: [squares(a.view()), squares(b.view())],
            });
        }
    }
    all
}
