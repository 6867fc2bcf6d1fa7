//! Puts columns beside others, centred and of the same size, so that one ridge suits both.

use ndarray::{Array1, Array2, Axis, concatenate, s};

use crate::support::logistic::Affine;

pub(super) struct Beside {
    pub x: Array2<f64>,
    centre: Array1<f64>,
    factor: f64,
}

impl Beside {
    pub fn new(x: &Array2<f64>, others: Array2<f64>) -> Self {
        let centre = others.mean_axis(Axis(0)).unwrap_or_default();
        let others = others - &centre;
        let (to, from) = (size(x), size(&others));
        let factor = if to > 0.0 && from > 0.0 { to / from } else { 1.0 };
        Beside { x: concatenate![Axis(1), *x, others * factor], centre, factor }
    }

    /// The same regression for the other columns as they were.
    pub fn plain(&self, mut affine: Affine) -> Affine {
        let first = self.x.ncols() - self.centre.len();
        let mut a = affine.a.slice_mut(s![.., first..]);
        a *= self.factor;
        affine.b -= &a.dot(&self.centre);
        affine
    }
}

/// Root of the mean square.
pub(super) fn size(x: &Array2<f64>) -> f64 {
    (x.iter().map(|x| x * x).sum::<f64>() / x.len().max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::support::random::{Purpose, stream};

    #[test]
    fn scores_are_the_same_for_columns_as_they_were() {
        let mut random = stream(3, Purpose::Codes);
        let mut draw = |rows, columns, from: f64| {
            Array2::from_shape_fn((rows, columns), |_| random.random_range(from..from + 2.0))
        };
        let (x, others, a, b) =
            (draw(7, 3, -1.0), draw(7, 2, -9.0), draw(4, 5, -1.0), draw(4, 1, 0.0));
        let beside = Beside::new(&x, others.clone());
        let affine = Affine { a, b: b.column(0).to_owned() };
        let scores = affine.scores(beside.x.view());
        let added = beside.x.slice(s![.., 3..]).to_owned();
        assert!((size(&added) / size(&x) - 1.0).abs() < 1e-12);
        assert!(added.mean_axis(Axis(0)).unwrap().iter().all(|mean| mean.abs() < 1e-12));
        let plain = beside.plain(affine).scores(concatenate![Axis(1), x, others].view());
        assert!((scores - plain).iter().all(|off| off.abs() < 1e-12));
    }

    #[test]
    fn columns_that_never_change_do_no_harm() {
        let x = Array2::ones((4, 1));
        let beside = Beside::new(&x, Array2::from_elem((4, 2), 3.0));
        assert!(beside.x.iter().all(|x| x.is_finite()));
        assert!(
            Beside::new(&Array2::zeros((4, 1)), Array2::eye(4)).x.iter().all(|x| x.is_finite())
        );
    }
}
