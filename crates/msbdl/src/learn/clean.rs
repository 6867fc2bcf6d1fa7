//! Replaces atoms that are idle or twins of another, jointly in all modalities.

use ndarray::{Array1, Array2, Axis, s};

use super::e_step::{Posterior, Want, e_step};
use super::em::Em;
use super::partition::START_POWER;
use super::prune::CUT;
use super::regroup::{part, unite};
use super::span::share_within;
use super::stats::Stats;
use crate::input::prior::Moments;
use crate::support::linalg;

/// An atom with less than this share of the median energy is idle.
const IDLE: f64 = 0.15;
/// Atoms with a larger |cosine| than this are twins.
const TWIN: f64 = 0.9;
/// Columns replaced at once: more would tear down what is being built.
const AT_MOST: usize = 5;
/// Samples whose residuals are looked at.
const SURVEY: usize = 2000;

/// Reseeds idle atoms and twins along what the samples leave unexplained; how many.
///
/// An atom that is a twin in every modality, or idle, is replaced everywhere. One that is a
/// twin in a single modality is replaced there alone, by what belongs to its other columns. Where
/// leaves are told apart and their lengths show which are wanted, branches are regrouped first.
pub(crate) fn clean(em: &mut Em, stats: &Stats, told_apart: bool) -> usize {
    let energy = mean_energy(em, stats);
    let n_modalities = em.d.len();
    let overlaps: Vec<Array2<f64>> = (0..n_modalities).map(|j| overlaps(em, j)).collect();
    let twins = |j: usize, k: usize, l: usize| overlaps[j][[k, l]] > TWIN;
    // Of two twins the weaker goes; of two equals the earlier.
    let weaker = |k: usize, l: usize| l != k && (energy[k], k) < (energy[l], l);
    let m = energy.len();
    let median = median(energy.clone());
    let twin_everywhere =
        |k: usize| (0..m).any(|l| weaker(k, l) && (0..n_modalities).all(|j| twins(j, k, l)));
    let mut bad: Vec<usize> =
        (0..m).filter(|&k| energy[k] < IDLE * median || twin_everywhere(k)).collect();
    bad.sort_by(|&a, &b| energy[a].total_cmp(&energy[b]).then(a.cmp(&b)));
    bad.truncate(AT_MOST);
    let twin_of =
        |j: usize, k: usize| (0..m).find(|&l| weaker(k, l) && !bad.contains(&l) && twins(j, k, l));
    let mut half: Vec<(usize, usize, usize)> = (0..m)
        .filter(|k| n_modalities > 1 && !bad.contains(k))
        .flat_map(|k| (0..n_modalities).map(move |j| (j, k)))
        .filter_map(|(j, k)| Some((j, k, twin_of(j, k)?)))
        .collect();
    half.truncate(AT_MOST);
    if bad.is_empty() && half.is_empty() {
        return 0;
    }
    if told_apart {
        let mut touched = Vec::new();
        half.retain(|&(j, k, l)| {
            let may = em.d[j].ncols() == m && !touched.contains(&k) && !touched.contains(&l);
            if may && unite(em, k, l) {
                touched.extend([k, l]);
                bad.push(k);
            }
            !bad.contains(&k)
        });
    }
    let mut survey = Survey::take(em);
    let mut count = 0;
    for (j, branch, _) in half {
        count += usize::from(survey.reseed_one(em, j, branch));
    }
    for branch in bad {
        let parted = told_apart && part(em, &mut survey.apart, branch);
        count += usize::from(match parted {
            true => survey.reseed_roots(em, branch),
            false => survey.reseed_all(em, branch),
        });
    }
    count
}

/// Energy of every branch, averaged over samples, summed over modalities.
fn mean_energy(em: &Em, stats: &Stats) -> Vec<f64> {
    let mut sum = vec![0.0; em.prior.n_branches()];
    for (j, modality) in stats.modalities.iter().enumerate() {
        for (m, energy) in modality.energy.iter().enumerate() {
            sum[em.prior.branch_of(j, m)] += energy * (1.0 / modality.count.max(1) as f64);
        }
    }
    sum
}

/// Branch x branch: how much of the first lies in the span of the second; |cosine| for single atoms.
fn overlaps(em: &Em, j: usize) -> Array2<f64> {
    let members = em.members(j);
    if members.iter().all(|atoms| atoms.len() == 1) {
        let mut d = em.d[j].clone();
        linalg::normalise_columns(&mut d);
        return linalg::gram(d.view()).mapv_into(f64::abs);
    }
    let spans: Vec<Array2<f64>> =
        members.iter().map(|atoms| wanted_span(em.d[j].select(Axis(1), atoms))).collect();
    Array2::from_shape_fn((members.len(), members.len()), |(k, l)| {
        share_within(&em.d[j].select(Axis(1), &members[k]), &spans[l])
    })
}

/// Orthonormal directions in which the atoms of a branch are long: in the others, which a leaf too
/// many leaves, any atom might lie by chance.
fn wanted_span(atoms: Array2<f64>) -> Array2<f64> {
    let Some((lengths, axes)) = linalg::eigen(linalg::gram(atoms.view()).view()) else {
        return linalg::basis(atoms);
    };
    let count = lengths.iter().take_while(|length| **length >= CUT * lengths[0]).count();
    linalg::basis(atoms.dot(&axes.slice(s![.., ..count])))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// What some samples leave unexplained.
struct Survey {
    /// Per modality: y - D mu, rows x N; nought where missing.
    residuals: Vec<Array2<f64>>,
    /// Per modality: |mu| as it would be under one variance for all, rows x M.
    apart: Vec<Array2<f64>>,
    /// How much of each sample is not explained, 0..1.
    unexplained: Vec<f64>,
    /// Modalities, the one with the worst misfits first.
    worst_first: Vec<usize>,
}

impl Survey {
    fn take(em: &mut Em) -> Self {
        let rows = em.some_rows(SURVEY);
        let mut misfits = vec![(0.0, 0.0); rows.len()];
        let mut high = Vec::new();
        let mut survey = Survey {
            residuals: Vec::new(),
            apart: Vec::new(),
            unexplained: Vec::new(),
            worst_first: (0..em.d.len()).collect(),
        };
        for j in 0..em.d.len() {
            let (residual, apart) = leftovers(em, j, &rows);
            let scale = em.s[j] * residual.ncols() as f64;
            let mut here = Vec::new();
            for (i, &row) in rows.iter().enumerate() {
                if em.data.modalities()[j].present()[em.sample(row)] {
                    let misfit = residual.row(i).dot(&residual.row(i)) / scale;
                    misfits[i] = (misfits[i].0 + misfit, misfits[i].1 + 1.0);
                    here.push(misfit);
                }
            }
            here.sort_by(f64::total_cmp);
            high.push(here.get(here.len() * 19 / 20).copied().unwrap_or(0.0));
            survey.residuals.push(residual);
            survey.apart.push(apart);
        }
        // A misfit of one is what the noise accounts for.
        let share = |(sum, count): &(f64, f64)| (1.0 - count / sum.max(*count)).max(0.0);
        survey.unexplained = misfits.iter().map(share).collect();
        survey.worst_first.sort_by(|&a, &b| high[b].total_cmp(&high[a]));
        em.e_steps += rows.len() as f64 / em.data.n_samples() as f64;
        survey
    }

    /// The direction in which weighted residuals of modality `j` are largest.
    fn direction(&self, j: usize, weight: &[f64]) -> Option<Array1<f64>> {
        let mut scaled = self.residuals[j].clone();
        for (mut row, weight) in scaled.rows_mut().into_iter().zip(weight) {
            row *= weight.sqrt();
        }
        linalg::top_direction(scaled.view())
    }

    /// Puts `u` into D_j, takes it out of the residuals, and returns how much each had of it.
    fn replace(&mut self, em: &mut Em, j: usize, atom: usize, u: &Array1<f64>) -> Vec<f64> {
        em.d[j].column_mut(atom).assign(u);
        let take_out = |mut row: ndarray::ArrayViewMut1<f64>| {
            let along = row.dot(u);
            row.scaled_add(-along, u);
            along * along
        };
        self.residuals[j].rows_mut().into_iter().map(take_out).collect()
    }

    fn reseed_all(&mut self, em: &mut Em, branch: usize) -> bool {
        let mut weight = self.unexplained.clone();
        for (place, j) in self.worst_first.clone().into_iter().enumerate() {
            for atom in em.members(j).swap_remove(branch) {
                let Some(u) = self.direction(j, &weight) else { return false };
                let along = self.replace(em, j, atom, &u);
                if place == 0 {
                    weight = along;
                }
            }
        }
        begin_anew(em, branch);
        true
    }

    /// Replaces the atoms that are no leaves by what goes with the leaves.
    fn reseed_roots(&mut self, em: &mut Em, branch: usize) -> bool {
        let m = em.prior.n_branches();
        let roots: Vec<usize> = (0..em.d.len()).filter(|&j| em.d[j].ncols() == m).collect();
        let done = roots.into_iter().all(|j| self.reseed_one(em, j, branch));
        begin_anew(em, branch);
        done
    }

    fn reseed_one(&mut self, em: &mut Em, j: usize, branch: usize) -> bool {
        let mut weight = vec![0.0; self.unexplained.len()];
        for other in (0..self.apart.len()).filter(|&other| other != j) {
            for atom in em.members(other).swap_remove(branch) {
                for (weight, size) in weight.iter_mut().zip(self.apart[other].column(atom)) {
                    *weight += size.powi(2);
                }
            }
        }
        for atom in em.members(j).swap_remove(branch) {
            let Some(u) = self.direction(j, &weight) else { return false };
            self.replace(em, j, atom, &u);
        }
        em.forget(branch);
        true
    }
}

/// Residuals of modality `j`, and its coefficients without their own variances.
fn leftovers(em: &Em, j: usize, rows: &[usize]) -> (Array2<f64>, Array2<f64>) {
    let modality = &em.data.modalities()[j];
    let (k, m) = (em.prior.n_gamma(), em.d[j].ncols());
    let samples: Vec<usize> = rows.iter().map(|&row| em.sample(row)).collect();
    let y = modality.y().select(Axis(0), &samples) - &em.offset[j];
    let mut v = vec![0.0; rows.len() * m];
    for (v, &row) in v.chunks_exact_mut(m).zip(rows) {
        em.prior.variances(&em.gamma[row * k..(row + 1) * k], j, v);
    }
    let variances = ndarray::ArrayView2::from_shape((rows.len(), m), &v);
    // The shape is that of the vector by construction.
    let Ok(variances) = variances else { return (y, Array2::zeros((rows.len(), m))) };
    let prepared = em.prepared(Posterior::Exact);
    let want = Want { cov: false, slopes: true };
    let answer = e_step(&prepared[j], y.view(), variances, want);
    let mut mu = Array2::zeros((rows.len(), m));
    let mut apart = Array2::zeros((rows.len(), m));
    let mut residual = y;
    let power = START_POWER / m as f64;
    for (i, &sample) in samples.iter().enumerate() {
        if !modality.present()[sample] {
            residual.row_mut(i).fill(0.0);
            continue;
        }
        let here = i * m..(i + 1) * m;
        let moments =
            Moments { v: &v[here.clone()], t: &answer.t[here.clone()], b: &answer.b[here] };
        for atom in 0..m {
            mu[[i, atom]] = moments.v[atom] * moments.t[atom];
            apart[[i, atom]] = moments.size_under(atom, power);
        }
    }
    residual -= &linalg::product(mu.view(), em.d[j].t());
    (residual, apart)
}

/// A new branch begins with the gamma of new ones, and without a past.
fn begin_anew(em: &mut Em, branch: usize) {
    let value = fresh_gamma(em);
    for gamma in em.gamma.chunks_exact_mut(em.prior.n_gamma()) {
        em.prior.set(gamma, branch, value);
    }
    em.forget(branch);
}

/// gamma of a new atom: off where coefficients are switched, small but alive where they are not.
fn fresh_gamma(em: &Em) -> f64 {
    if em.gamma.contains(&0.0) {
        return 0.0;
    }
    let rows = em.gamma.chunks_exact(em.prior.n_gamma());
    0.1 * median(rows.map(|row| row.iter().fold(0.0, |a: f64, &b| a.max(b))).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ndarray::array;

    use super::*;
    use crate::input::data::Data;
    use crate::input::prior::OneToOne;
    use crate::learn::em::Schedule;
    use crate::learn::laws::common::{matrix, rng};
    use crate::learn::tree_laws::with_three_branches;

    /// While lengths are free, twins are twins however long they are.
    #[test]
    fn overlaps_are_cosines() {
        let data = Data::new(vec![("m".into(), matrix(&mut rng(1), 4, 2))], false).unwrap();
        let prior = Arc::new(OneToOne { n_atoms: 2 });
        let mut em = Em::new(&data, prior, Posterior::Exact, Schedule::Full, 4, 1);
        em.d = vec![array![[0.1, 6.0], [0.0, 8.0]]];
        let found = overlaps(&em, 0);
        assert!((found[[0, 1]] - 0.6).abs() < 1e-12, "{found}");
        assert!((found[[1, 1]] - 1.0).abs() < 1e-12);
    }

    /// What a leaf too many has of another branch by chance makes them no twins.
    #[test]
    fn short_directions_make_no_twins() {
        with_three_branches(|em| {
            // Branch 1 has leaf 1 twice, branch 0 leaf 0 twice and a tenth of leaf 1.
            em.d[1].column_mut(4).assign(&array![0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
            em.d[1].column_mut(3).assign(&array![1.0, 0.1, 0.0, 0.0, 0.0, 0.0]);
            let found = overlaps(em, 1)[[1, 0]];
            assert!(found < 0.1, "{found}");
            em.d[1].column_mut(3).assign(&array![0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
            let found = overlaps(em, 1)[[1, 0]];
            assert!((found - 1.0).abs() < 1e-12, "{found}");
        });
    }
}
