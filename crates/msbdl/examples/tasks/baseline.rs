//! Tells labels straight from the features, for comparison.

use msbdl::support::logistic::{self, Affine};
use ndarray::{Array1, Array2, Axis, concatenate};

use crate::data::{Task, Views};

/// Scores of logistic regression with a ridge of one on features of unit size; every class weighs
/// the same where the task asks for it.
pub fn logistic_regression(task: &Task, names: &[&str]) -> Array2<f64> {
    let (train, test) = side_by_side(task, names);
    let h = task.labels.h();
    let start = Affine::zeros(h.ncols(), train.ncols());
    let weight = match task.balance {
        true => h.dot(&h.sum_axis(Axis(0)).mapv(|count| h.nrows() as f64 / count)),
        false => Array1::ones(train.nrows()),
    };
    let kind = task.labels.kind();
    logistic::fit(train.view(), h.view(), &weight, kind, 1.0, &start).scores(test.view())
}

/// Scores of least squares with a ridge of one on features of unit size.
pub fn ridge_regression(task: &Task, names: &[&str]) -> Array2<f64> {
    let (train, test) = side_by_side(task, names);
    let h = task.labels.h();
    let mean = h.mean_axis(Axis(0)).unwrap_or_default();
    let mut c = train.t().dot(&train);
    c.diag_mut().mapv_inplace(|x| x + 1.0);
    test.dot(&solved(c, train.t().dot(&(h - &mean)))) + &mean
}

/// C^-1 B of a positive definite C, by elimination.
fn solved(mut c: Array2<f64>, mut b: Array2<f64>) -> Array2<f64> {
    let n = c.nrows();
    for k in 0..n {
        let (pivot, right) = (c.row(k).to_owned(), b.row(k).to_owned());
        for i in (0..n).filter(|&i| i != k) {
            let factor = c[[i, k]] / pivot[k];
            c.row_mut(i).scaled_add(-factor, &pivot);
            b.row_mut(i).scaled_add(-factor, &right);
        }
    }
    let diagonal = c.diag().to_owned().insert_axis(Axis(1));
    b / diagonal
}

fn side_by_side(task: &Task, names: &[&str]) -> (Array2<f64>, Array2<f64>) {
    let mut parts = (Vec::new(), Vec::new());
    for name in names {
        let find = |views: &Views| views.iter().find(|(known, _)| known == name).cloned();
        if let (Some((_, train)), Some((_, test))) = (find(&task.train), find(&task.test)) {
            let mean = train.mean_axis(Axis(0)).unwrap_or_default();
            let size = (&train - &mean).mapv(|x| x * x).mean().unwrap_or(1.0).sqrt();
            parts.0.push((train - &mean) / size);
            parts.1.push((test - &mean) / size);
        }
    }
    let join = |parts: &[Array2<f64>]| {
        let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
        concatenate(Axis(1), &views).unwrap_or_default()
    };
    (join(&parts.0), join(&parts.1))
}
