//! Computes posteriors through S = s I + D V D^T, sample by sample with blocked matrix products:
//! right where those of several samples side by side would be slow or need too much memory.

use ndarray::{Array2, ShapeBuilder, s};

use super::{Answer, Task};
use crate::support::linalg;
use crate::support::logs::sum_of_logs;

/// Rows of Z that are gathered before Z^T Z is added to the sum: products of that depth run at
/// full speed.
const DEPTH: usize = 512;

/// Answers `task` for the samples in `rows`.
pub(super) fn run(task: &Task, rows: &[usize], out: &mut Answer) {
    if rows.is_empty() {
        return;
    }
    let (n, m) = (task.n(), task.m());
    let at_once = (DEPTH / n).clamp(1, rows.len());
    let learnt = if task.want.cov { m } else { 0 };
    // An atom, a row of X or Z, is contiguous: the solver and the products like columns.
    let atoms = task.d.t().as_standard_layout().into_owned();
    let mut scaled = Array2::zeros((m, n));
    let mut s = Array2::zeros((n, n).f());
    let mut x = Array2::zeros((m + 1, n));
    let mut z = Array2::zeros((learnt, at_once * n));
    let mut sum = Array2::zeros((learnt, learnt).f());
    for some in rows.chunks(at_once) {
        for (place, &row) in some.iter().enumerate() {
            let v = task.v_row(row);
            for ((mut scaled, atom), v) in scaled.rows_mut().into_iter().zip(atoms.rows()).zip(v) {
                let root = v.sqrt();
                scaled.zip_mut_with(&atom, |to, d| *to = d * root);
            }
            linalg::set_lower_gram(&mut s, scaled.t());
            s.diag_mut().iter_mut().for_each(|x| *x += task.s);
            linalg::cholesky(&mut s);
            x.slice_mut(s![..m, ..]).assign(&atoms);
            x.row_mut(m).iter_mut().zip(task.y_row(row)).for_each(|(to, y)| *to = *y);
            linalg::solve_lower(&s, &mut x);
            let w = x.row(m);
            out.quad[row] = w.dot(&w);
            out.log_det[row] = 2.0 * sum_of_logs(s.diag().iter().copied());
            for (k, x) in x.rows().into_iter().take(m).enumerate() {
                out.t[row * m + k] = x.dot(&w);
                out.b[row * m + k] = x.dot(&x);
            }
            for (k, mut z) in z.rows_mut().into_iter().enumerate() {
                let mut here = z.slice_mut(s![place * n..(place + 1) * n]);
                here.zip_mut_with(&x.row(k), |z, x| *z = x * v[k]);
                out.cov[k * m + k] += v[k];
            }
        }
        linalg::add_lower_gram(&mut sum, z.slice(s![.., ..some.len() * n]));
    }
    for row in 0..learnt {
        for column in 0..=row {
            out.cov[row * m + column] -= sum[[row, column]];
            if row != column {
                out.cov[column * m + row] -= sum[[row, column]];
            }
        }
    }
}
