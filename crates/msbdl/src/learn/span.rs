//! Turns the atoms of a branch inside the subspace that they span.
//!
//! Atoms that share a variance matter only through the sum of d d^T, so they may be turned into
//! one another. Orthogonal ones, of any length, can be switched on and off one by one without
//! counting anything twice, and their lengths tell how many leaves a branch has; atoms of unit
//! length are what the paper's EM and users want.

use ndarray::{Array2, Axis};

use super::em::Em;
use crate::support::linalg;

/// Leaves below this share of the longest one's |d|^2 have no direction worth keeping.
const SHORT: f64 = 0.1;

/// Orthogonal atoms in every branch, the longest first.
pub(crate) fn principal_axes(em: &mut Em) {
    for j in 0..em.d.len() {
        turn(em, j, |gram| Some(linalg::eigen(gram.view())?.1));
    }
}

/// Atoms of unit length; |d|^2 as it was on average. In branches with short atoms they are first
/// turned to the same length, so that an atom too many becomes a twin and not a stray.
pub(crate) fn unit_atoms(em: &mut Em) -> f64 {
    let mut mean = 0.0;
    for j in 0..em.d.len() {
        turn(em, j, |gram| {
            let (least, most) =
                gram.diag().iter().fold((f64::INFINITY, 0.0), |(a, b), &x| (x.min(a), x.max(b)));
            (least < SHORT * most).then(|| equal_lengths(gram))
        });
        let lengths = em.d[j].map_axis(Axis(0), |d| d.dot(&d).sqrt());
        let longest = lengths.fold(0.0, |a: f64, &b| a.max(b));
        let lengths = lengths.mapv(|x| if x > 1e-12 * longest { x } else { 1.0 });
        let m = lengths.len();
        mean += lengths.mapv(|x| x * x).sum() / (m * em.d.len()) as f64;
        let diagonal = |f: &dyn Fn(f64) -> f64| Array2::from_diag(&lengths.mapv(f));
        em.transform(j, &diagonal(&|x| 1.0 / x), &diagonal(&|x| x));
    }
    mean
}

/// Root of the share of the atoms' |d|^2 that lies in the span of an orthonormal basis: |cosine| for
/// single atoms.
pub(crate) fn share_within(atoms: &Array2<f64>, basis: &Array2<f64>) -> f64 {
    let square = |a: &Array2<f64>| a.iter().map(|x| x * x).sum::<f64>();
    let (inside, all) = (square(&basis.t().dot(atoms)), square(atoms));
    if all > 0.0 { (inside / all).sqrt() } else { 0.0 }
}

/// Applies, per branch, the rotation that `choose` reads off the Gram matrix of its atoms.
fn turn(em: &mut Em, j: usize, choose: impl Fn(&Array2<f64>) -> Option<Array2<f64>>) {
    let m = em.d[j].ncols();
    let mut rotation = Array2::<f64>::eye(m);
    let mut turned = false;
    for atoms in em.members(j).into_iter().filter(|atoms| atoms.len() > 1) {
        let gram = linalg::gram(em.d[j].select(Axis(1), &atoms).view());
        let Some(q) = choose(&gram) else { continue };
        turned = true;
        for (row, &a) in atoms.iter().enumerate() {
            for (column, &b) in atoms.iter().enumerate() {
                rotation[[a, b]] = q[[row, column]];
            }
        }
    }
    if turned {
        let inverse = rotation.t().to_owned();
        em.transform(j, &rotation, &inverse);
    }
}

/// A rotation Q for which Q^T G Q has equal diagonal entries.
///
/// One plane rotation after the other gives one entry the mean: between an entry below and one
/// above it there is an angle that does.
fn equal_lengths(gram: &Array2<f64>) -> Array2<f64> {
    let n = gram.nrows();
    let mean = gram.diag().sum() / n as f64;
    let (mut g, mut q) = (gram.clone(), Array2::<f64>::eye(n));
    let mut open: Vec<usize> = (0..n).collect();
    while open.len() > 1 {
        open.sort_by(|&a, &b| g[[a, a]].total_cmp(&g[[b, b]]));
        let (low, high) = (open[0], open[open.len() - 1]);
        let (a, b, c) = (g[[low, low]], g[[high, high]], g[[low, high]]);
        // a cos^2 + b sin^2 + 2 c sin cos = mean, a quadratic in the tangent.
        let (below, above) = (a - mean, b - mean);
        let root = (c * c - below * above).max(0.0).sqrt();
        let tangent = match above > 0.0 {
            true => (-c + root) / above,
            false => 0.0,
        };
        let cos = 1.0 / (1.0 + tangent * tangent).sqrt();
        let sin = tangent * cos;
        let mut plane = Array2::<f64>::eye(n);
        plane[[low, low]] = cos;
        plane[[high, high]] = cos;
        plane[[high, low]] = sin;
        plane[[low, high]] = -sin;
        g = plane.t().dot(&g).dot(&plane);
        q = q.dot(&plane);
        open.remove(0);
    }
    q
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn lengths_become_equal_by_a_rotation() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        for n in 1..6 {
            for _ in 0..20 {
                let d = Array2::from_shape_fn((7, n), |_| rng.random_range(-1.0..1.0));
                let q = equal_lengths(&linalg::gram(d.view()));
                let turned = linalg::gram(d.dot(&q).view());
                let mean = turned.diag().sum() / n as f64;
                assert!(turned.diag().iter().all(|x| (x - mean).abs() < 1e-9 * mean));
                assert!((q.t().dot(&q) - Array2::<f64>::eye(n)).iter().all(|x| x.abs() < 1e-12));
            }
        }
    }
}
