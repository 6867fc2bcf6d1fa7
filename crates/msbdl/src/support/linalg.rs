//! Wraps the dense linear algebra that the library needs; the only file that names faer.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::triangular_solve::solve_lower_triangular_in_place;
use faer::prelude::*;
use faer::{Accum, MatMut, MatRef, Par, Side};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2, Axis};

fn view<'a>(a: &'a ArrayView2<f64>) -> MatRef<'a, f64> {
    let (rows, columns) = a.dim();
    let strides = a.strides();
    // SAFETY: the pointer, shape and strides describe the live view `a`.
    unsafe { MatRef::from_raw_parts(a.as_ptr(), rows, columns, strides[0], strides[1]) }
}

fn view_mut(a: &mut Array2<f64>) -> MatMut<'_, f64> {
    from_view_mut(a.view_mut())
}

fn from_view_mut(mut a: ArrayViewMut2<'_, f64>) -> MatMut<'_, f64> {
    let (rows, columns) = a.dim();
    let (down, right) = (a.strides()[0], a.strides()[1]);
    // SAFETY: the pointer, shape and strides describe `a`, which is borrowed mutably.
    unsafe { MatMut::from_raw_parts_mut(a.as_mut_ptr(), rows, columns, down, right) }
}

/// A B
pub(crate) fn product(a: ArrayView2<f64>, b: ArrayView2<f64>) -> Array2<f64> {
    let mut out = Array2::zeros((a.nrows(), b.ncols()));
    set_product(out.view_mut(), a, b);
    out
}

/// Sets `out`, whatever it holds, to A B.
pub(crate) fn set_product(out: ArrayViewMut2<f64>, a: ArrayView2<f64>, b: ArrayView2<f64>) {
    matmul(from_view_mut(out), Accum::Replace, view(&a), view(&b), 1.0, Par::Seq);
}

/// The sum of the rows.
pub(crate) fn column_sums(a: ArrayView2<f64>) -> Array1<f64> {
    let mut sums = Array1::zeros(a.ncols());
    a.rows().into_iter().for_each(|row| sums += &row);
    sums
}

/// A^T A, symmetric to the last bit.
pub(crate) fn gram(a: ArrayView2<f64>) -> Array2<f64> {
    let m = a.ncols();
    let mut out = Array2::zeros((m, m));
    set_lower_gram(&mut out, a.t());
    for i in 0..m {
        for j in 0..i {
            out[[j, i]] = out[[i, j]];
        }
    }
    out
}

/// Sets the lower triangle of `out` to that of A A^T.
pub(crate) fn set_lower_gram(out: &mut Array2<f64>, a: ArrayView2<f64>) {
    lower_product(out, Accum::Replace, a, a.t());
}

/// Adds the lower triangle of A A^T to that of `out`.
pub(crate) fn add_lower_gram(out: &mut Array2<f64>, a: ArrayView2<f64>) {
    lower_product(out, Accum::Add, a, a.t());
}

fn lower_product(out: &mut Array2<f64>, accum: Accum, a: ArrayView2<f64>, b: ArrayView2<f64>) {
    let (lower, whole) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
    triangular::matmul(
        view_mut(out),
        lower,
        accum,
        view(&a),
        whole,
        view(&b),
        whole,
        1.0,
        Par::Seq,
    );
}

/// L with L L^T = A in place of the lower triangle of A, which must be positive definite.
pub(crate) fn cholesky(a: &mut Array2<f64>) {
    let mut memory =
        MemBuffer::new(cholesky_in_place_scratch::<f64>(a.nrows(), Par::Seq, Default::default()));
    let stack = MemStack::new(&mut memory);
    let options = (Default::default(), Default::default());
    let done = cholesky_in_place(view_mut(a), options.0, Par::Seq, stack, options.1);
    // Only numbers that are not finite could fail; the M-step refuses what comes of them.
    debug_assert!(done.is_ok(), "s I + D V D^T is positive definite");
}

/// Replaces every row x of X by L^-1 x.
pub(crate) fn solve_lower(l: &Array2<f64>, x: &mut Array2<f64>) {
    let l = l.view();
    solve_lower_triangular_in_place(view(&l), view_mut(x).transpose_mut(), Par::Seq);
}

/// B C^-1 in place of B for a symmetric positive definite C; None if it is not.
pub(crate) fn right_divide(mut b: Array2<f64>, c: ArrayView2<f64>) -> Option<Array2<f64>> {
    let factor = view(&c).llt(Side::Lower).ok()?;
    factor.solve_in_place(view_mut(&mut b).transpose_mut());
    Some(b)
}

/// log N(x; 0, C) without the constant; None if C is not positive definite.
pub(crate) fn log_normal(x: ArrayView1<f64>, c: ArrayView2<f64>) -> Option<f64> {
    let factor = view(&c).llt(Side::Lower).ok()?;
    let mut solution = x.to_owned().insert_axis(Axis(1));
    factor.solve_in_place(view_mut(&mut solution));
    let log_det: f64 = factor.L().diagonal().column_vector().iter().map(|l| 2.0 * l.ln()).sum();
    Some(-0.5 * (log_det + x.dot(&solution.column(0))))
}

/// Eigenvalues, largest first, and eigenvectors of a symmetric matrix; None if that fails.
pub(crate) fn eigen(a: ArrayView2<f64>) -> Option<(Vec<f64>, Array2<f64>)> {
    let n = a.nrows();
    let found = view(&a).self_adjoint_eigen(Side::Lower).ok()?;
    let values: Vec<f64> = (0..n).rev().map(|i| found.S()[i]).collect();
    let vectors = Array2::from_shape_fn((n, n), |(i, k)| found.U()[(i, n - 1 - k)]);
    values.iter().chain(&vectors).all(|x| x.is_finite()).then_some((values, vectors))
}

/// Orthonormal columns with the span of A's; nought where A's columns depend on each other.
pub(crate) fn basis(mut a: Array2<f64>) -> Array2<f64> {
    for k in 0..a.ncols() {
        let before = a.column(k).dot(&a.column(k)).sqrt();
        // Twice, since once leaves rounding errors along the earlier columns.
        for l in (0..k).chain(0..k) {
            let along = a.column(k).dot(&a.column(l));
            let earlier = a.column(l).to_owned();
            a.column_mut(k).scaled_add(-along, &earlier);
        }
        let norm = a.column(k).dot(&a.column(k)).sqrt();
        let scale = if norm > 1e-10 * before { 1.0 / norm } else { 0.0 };
        a.column_mut(k).mapv_inplace(|x| x * scale);
    }
    a
}

/// The determinant of a square matrix.
pub(crate) fn determinant(a: ArrayView2<f64>) -> f64 {
    view(&a).determinant()
}

/// The unit vector u with the largest |A u|; None if A is nought or the decomposition fails.
pub(crate) fn top_direction(a: ArrayView2<f64>) -> Option<Array1<f64>> {
    if a.iter().all(|x| *x == 0.0) {
        return None;
    }
    let gram = gram(a);
    let eigen = view(&gram.view()).self_adjoint_eigen(Side::Lower).ok()?;
    let u: Array1<f64> = eigen.U().col(a.ncols() - 1).iter().copied().collect();
    u.iter().all(|x| x.is_finite()).then_some(u)
}

/// Scales every column to unit length; columns of length nought are left alone.
pub(crate) fn normalise_columns(d: &mut Array2<f64>) {
    // Row by row, as they lie in memory.
    let mut norms = Array1::<f64>::zeros(d.ncols());
    d.rows().into_iter().for_each(|row| norms.zip_mut_with(&row, |sum, x| *sum += x * x));
    norms.mapv_inplace(|square| if square > 0.0 { square.sqrt() } else { 1.0 });
    d.rows_mut().into_iter().for_each(|mut row| row /= &norms);
}
