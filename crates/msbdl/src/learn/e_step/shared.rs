//! Computes posteriors of samples that all have the same variances, as when learning and coding
//! begin: there is one S, and what remains are products of matrices.

use ndarray::{Array2, Axis, ShapeBuilder, s};

use super::{Answer, Task};
use crate::support::linalg;
use crate::support::logs::sum_of_logs;

impl Task<'_> {
    /// Whether there is one S for several samples, and S is the smaller system.
    pub(super) fn shares_variances(&self) -> bool {
        let rows = || (0..self.v.nrows()).map(|row| self.v_row(row));
        self.n() <= self.m() && self.v.nrows() > 1 && rows().all(|v| v == self.v_row(0))
    }
}

/// Answers `task` for all its samples.
pub(super) fn run(task: &Task, out: &mut Answer) {
    let (n, m, count) = (task.n(), task.m(), task.v.nrows());
    let v = task.v_row(0);
    let scaled = Array2::from_shape_fn((m, n), |(k, p)| task.d[[p, k]] * v[k].sqrt());
    let mut s = Array2::zeros((n, n).f());
    linalg::set_lower_gram(&mut s, scaled.t());
    s.diag_mut().iter_mut().for_each(|x| *x += task.s);
    linalg::cholesky(&mut s);
    // Atoms and samples are rows: X = L^-1 D, W = L^-1 Y, both turned.
    let mut solved = Array2::zeros((m + count, n));
    solved.slice_mut(s![..m, ..]).assign(&task.d.t());
    solved.slice_mut(s![m.., ..]).assign(&task.y);
    linalg::solve_lower(&s, &mut solved);
    let (x, w) = solved.view().split_at(Axis(0), m);
    linalg::set_product(out.t.rows_mut(m), w, x.t());
    let b: Vec<f64> = x.rows().into_iter().map(|x| x.dot(&x)).collect();
    out.b.chunks_exact_mut(m).for_each(|to| to.copy_from_slice(&b));
    out.quad.iter_mut().zip(w.rows()).for_each(|(to, w)| *to = w.dot(&w));
    out.log_det.fill(2.0 * sum_of_logs(s.diag().iter().copied()));
    if task.want.cov {
        let explained = linalg::gram(x.t());
        for ((k, l), explained) in explained.indexed_iter() {
            let own = if k == l { v[k] } else { 0.0 };
            out.cov[k * m + l] = count as f64 * (own - v[k] * v[l] * explained);
        }
    }
}
