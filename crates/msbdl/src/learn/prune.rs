//! Decides how many leaves every branch has, and drops the others.
//!
//! While coefficients are switched, the atoms of a branch are orthogonal and as long as the data
//! want them, so a leaf too many is a short one.

use std::sync::Arc;

use ndarray::{Array1, Array2, Axis};

use super::em::{Ask, Em};
use super::pair::assign;
use super::stats::Stats;
use crate::input::branches::Branches;
use crate::input::prior::{AtomToSubspace, GammaStep};
use crate::input::shape::End;
use crate::support::linalg;

/// |d|^2 of a leaf, as a share of that of the branch's longest, below which it is none.
pub(super) const CUT: f64 = 0.16;

/// Whether every column is long enough, beside the longest of its branch, to be wanted.
pub(super) fn long_leaves(d: &Array2<f64>, members: &[Vec<usize>]) -> Vec<bool> {
    let mut long = vec![true; d.ncols()];
    let length = |m: usize| d.column(m).dot(&d.column(m));
    for atoms in members.iter().filter(|atoms| atoms.len() > 1) {
        let longest = atoms.iter().map(|&m| length(m)).fold(0.0, f64::max);
        atoms.iter().for_each(|&m| long[m] = length(m) >= CUT * longest);
    }
    long
}

/// Keeps of every branch the leaves that the data want, or as many as were given; what is kept.
pub(crate) fn prune(em: &mut Em, end: &End, root: usize, last: bool) -> Branches {
    let lengths = Lengths::of(em, last);
    match end {
        End::Given(branches) => lengths.keep_given(em, branches),
        End::Learnt(n_atoms) => {
            let branches = lengths.branches(n_atoms, root);
            keep(em, &branches, &lengths.members, &identity(lengths.count));
            branches
        }
    }
}

/// Atoms of a branch with a larger |cosine| than this say the same (the paper's epsilon).
const SAME: f64 = 0.9;

/// The paper's pruning: of branches whose leaves are alike, the leaf that is used least goes;
/// then the leaves that are used least anywhere, down to the numbers of atoms. Of given branches,
/// those stay that are used most.
pub(crate) fn prune_as_the_paper(em: &mut Em, end: &End, root: usize) -> Branches {
    let ask = Ask { gamma: GammaStep::Keep, learn: true, cross: false };
    let stats = em.survey(ask);
    let n_atoms = match end {
        End::Given(branches) => return Lengths::of_use(em, &stats).keep_given(em, branches),
        End::Learnt(n_atoms) => n_atoms,
    };
    let mut kept = Vec::new();
    for (j, stats) in stats.modalities.iter().enumerate() {
        let cosines = linalg::gram(em.d[j].view()).mapv_into(f64::abs);
        let least = |atoms: &[usize]| {
            atoms.iter().copied().min_by(|&a, &b| stats.energy[a].total_cmp(&stats.energy[b]))
        };
        let alike = |atoms: &[usize]| {
            let pairs = atoms.iter().flat_map(|&a| atoms.iter().map(move |&b| (a, b)));
            pairs.filter(|(a, b)| a < b).map(|(a, b)| cosines[[a, b]]).fold(0.0, f64::max)
        };
        let mut branches = em.members(j);
        for _ in n_atoms[j].unwrap_or(em.d[j].ncols())..em.d[j].ncols() {
            let several = || (0..branches.len()).filter(|&k| branches[k].len() > 1);
            let most_alike = several()
                .max_by(|&a, &b| alike(&branches[a]).total_cmp(&alike(&branches[b])))
                .filter(|&k| alike(&branches[k]) > SAME);
            let found = match most_alike {
                Some(k) => least(&branches[k]).map(|m| (k, m)),
                None => {
                    let all: Vec<usize> =
                        several().flat_map(|k| branches[k].iter().copied()).collect();
                    least(&all).map(|m| (em.prior.branch_of(j, m), m))
                }
            };
            let Some((k, atom)) = found else { break };
            branches[k].retain(|m| *m != atom);
        }
        kept.push(branches);
    }
    let sizes = |branches: &Vec<Vec<usize>>| branches.iter().map(Vec::len).collect::<Vec<_>>();
    let atoms = kept.iter().map(|branches| number(&sizes(branches))).collect();
    let branches = Branches::flat(root, atoms);
    keep(em, &branches, &kept, &identity(branches.count()));
    branches
}

/// Makes the atoms those of `branches`: its branch k has the first of what `members` (modality ->
/// branch -> atoms) has under `order[k]`. They share a variance from here on.
fn keep(em: &mut Em, branches: &Branches, members: &[Vec<Vec<usize>>], order: &[usize]) {
    for (j, members) in members.iter().enumerate() {
        let mut from = vec![0; branches.n_atoms(j)];
        for (k, &old) in order.iter().enumerate() {
            for (&atom, &column) in branches.atoms(j, k).iter().zip(&members[old]) {
                from[atom] = column;
            }
        }
        em.permute(j, &from);
    }
    em.move_to(Arc::new(AtomToSubspace::new(branches.clone())), order);
}

fn identity(count: usize) -> Vec<usize> {
    (0..count).collect()
}

/// Per modality and branch: its atoms, the most wanted first, and how much they are wanted.
struct Lengths {
    count: usize,
    members: Vec<Vec<Vec<usize>>>,
    /// |d|^2 over that of the branch's longest, without what lies in the span of longer atoms of
    /// another branch: a leaf may be borrowed from where it belongs.
    share: Vec<Vec<Vec<f64>>>,
}

impl Lengths {
    fn of(em: &Em, last: bool) -> Self {
        Self::from(em, last, |j| em.d[j].map_axis(Axis(0), |d| d.dot(&d)))
    }

    /// The same of atoms of unit length, which are wanted as much as they are used.
    fn of_use(em: &Em, stats: &Stats) -> Self {
        Self::from(em, false, |j| stats.modalities[j].energy.clone())
    }

    fn from(em: &Em, last: bool, length: impl Fn(usize) -> Array1<f64>) -> Self {
        let count = em.prior.n_branches();
        let mut lengths = Lengths { count, members: Vec::new(), share: Vec::new() };
        for j in 0..em.d.len() {
            let length = length(j);
            let mut members = em.members(j);
            let mut shares = Vec::new();
            for k in 0..count {
                let longest = members[k].iter().fold(f64::MIN_POSITIVE, |a, &m| a.max(length[m]));
                let own = |m: usize| match length[m] < longest {
                    true if !last => length[m],
                    true => length[m] - borrowed(em, j, m, &length, &members),
                    false => longest,
                };
                let mut share: Vec<(f64, usize)> =
                    members[k].iter().map(|&m| (own(m) / longest, m)).collect();
                share.sort_by(|a, b| b.0.total_cmp(&a.0));
                shares.push(share);
            }
            members = shares.iter().map(|x| x.iter().map(|x| x.1).collect()).collect();
            lengths.members.push(members);
            lengths.share.push(shares.iter().map(|x| x.iter().map(|x| x.0).collect()).collect());
        }
        lengths
    }

    /// As many leaves as are long enough; as many in all as are wanted, where that is known.
    fn branches(&self, n_atoms: &[Option<usize>], root: usize) -> Branches {
        let mut atoms = Vec::new();
        for (j, share) in self.share.iter().enumerate() {
            let mut all: Vec<f64> = share.iter().flat_map(|x| x.iter().skip(1)).copied().collect();
            all.sort_by(|a, b| b.total_cmp(a));
            let cut = match n_atoms[j].map(|m| m - self.count) {
                Some(0) => f64::INFINITY,
                Some(more) => all.get(more - 1).copied().unwrap_or(0.0),
                None => CUT,
            };
            let size = |share: &Vec<f64>| share.iter().skip(1).filter(|x| **x >= cut).count() + 1;
            let sizes: Vec<usize> = share.iter().map(size).collect();
            atoms.push(number(&sizes));
        }
        Branches::flat(root, atoms)
    }

    /// Gives each of the given branches the atoms of the one that goes best with it.
    fn keep_given(&self, em: &mut Em, given: &Branches) -> Branches {
        keep(em, given, &self.members, &self.best_order(given));
        given.clone()
    }

    /// Which branch goes best with each of the given ones.
    fn best_order(&self, given: &Branches) -> Vec<usize> {
        let score = Array2::from_shape_fn((self.count, self.count), |(k, old)| {
            let worth = |j: usize| {
                let size = given.atoms(j, k).len();
                let kept = self.share[j][old].iter().take(size);
                kept.map(|share| share.max(1e-12).ln() - CUT.ln()).sum::<f64>()
            };
            (0..self.share.len()).map(worth).sum()
        });
        assign(&score)
    }
}

/// The most of |d|^2 of atom `m` that lies in the span of longer atoms of another branch.
fn borrowed(em: &Em, j: usize, m: usize, length: &Array1<f64>, members: &[Vec<usize>]) -> f64 {
    let inside = |(k, atoms): (usize, &Vec<usize>)| {
        let longer: Vec<usize> =
            atoms.iter().copied().filter(|&other| length[other] > length[m]).collect();
        if k == em.prior.branch_of(j, m) || longer.is_empty() {
            return 0.0;
        }
        let along = linalg::basis(em.d[j].select(Axis(1), &longer)).t().dot(&em.d[j].column(m));
        along.dot(&along)
    };
    members.iter().enumerate().map(inside).fold(0.0, f64::max)
}

/// Atoms for branches of these sizes: first every branch's first, then the second ones, ...
pub(crate) fn number(sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut atoms = vec![Vec::new(); sizes.len()];
    let most = sizes.iter().copied().max().unwrap_or(0);
    let places = (0..most).flat_map(|r| (0..sizes.len()).filter(move |&k| sizes[k] > r));
    places.enumerate().for_each(|(atom, k)| atoms[k].push(atom));
    atoms
}
