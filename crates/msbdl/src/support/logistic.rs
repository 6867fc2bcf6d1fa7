//! Fits logistic regressions: one class of several, or several tags each on its own.

use ndarray::{Array1, Array2, ArrayView2, Axis, s};

use super::lbfgs::minimise;
use super::linalg;
use super::logs::sum_of_logs;
use crate::input::labels::LabelKind;

/// Gradient, relative to the one at nought, at which a fit ends, and the most steps until then.
const TOLERANCE: f64 = 1e-5;
const STEPS: usize = 300;
/// Ridge on the constants, relative to the other's: only what keeps them finite.
const ON_CONSTANTS: f64 = 1e-3;

/// Scores A x + b.
#[derive(Clone, Debug, PartialEq)]
pub struct Affine {
    /// C x d.
    pub a: Array2<f64>,
    pub b: Array1<f64>,
}

impl Affine {
    pub fn zeros(c: usize, d: usize) -> Self {
        Affine { a: Array2::zeros((c, d)), b: Array1::zeros(c) }
    }

    /// Rows are samples.
    pub fn scores(&self, x: ArrayView2<f64>) -> Array2<f64> {
        linalg::product(x, self.a.t()) + &self.b
    }
}

/// Minimises sum_i weight_i loss_i + ridge/2 |A|^2, from `start`.
pub fn fit(
    x: ArrayView2<f64>,
    h: ArrayView2<f64>,
    weight: &Array1<f64>,
    kind: LabelKind,
    ridge: f64,
    start: &Affine,
) -> Affine {
    let (c, d) = start.a.dim();
    let unpack = |theta: &Array1<f64>| {
        let a = Array2::from_shape_fn((c, d), |(c, k)| theta[c * d + k]);
        Affine { a, b: theta.slice(s![c * d..]).to_owned() }
    };
    let pack = |at: &Affine| at.a.iter().chain(&at.b).copied().collect::<Array1<f64>>();
    let weights = weight.view().insert_axis(Axis(1));
    let value = |theta: &Array1<f64>| {
        let now = unpack(theta);
        let (losses, off) = judged(now.scores(x), h, kind);
        let off = off * weights;
        let penalty = now.a.iter().map(|a| a * a).sum::<f64>()
            + ON_CONSTANTS * now.b.iter().map(|b| b * b).sum::<f64>();
        let value = losses.dot(weight) + 0.5 * ridge * penalty;
        let a = linalg::product(off.t(), x) + &now.a * ridge;
        let b = off.sum_axis(Axis(0)) + &now.b * (ON_CONSTANTS * ridge);
        (value, pack(&Affine { a, b }))
    };
    // A start that is nearly right must not make the goal any finer.
    let (_, at_nought) = value(&Array1::zeros(c * d + c));
    let goal = TOLERANCE * at_nought.dot(&at_nought).sqrt();
    unpack(&minimise(pack(start), STEPS, goal, value))
}

/// -log p(h | scores) of each row, and p - h.
fn judged(
    mut scores: Array2<f64>,
    h: ArrayView2<f64>,
    kind: LabelKind,
) -> (Array1<f64>, Array2<f64>) {
    let rows = scores.rows_mut().into_iter().zip(h.rows());
    let losses = rows.map(|(mut z, h)| {
        let mut loss = -z.dot(&h);
        match kind {
            LabelKind::Tags => {
                loss += z.iter().map(|z| z.max(0.0)).sum::<f64>();
                loss += sum_of_logs(z.iter_mut().map(|z| {
                    let e = (-z.abs()).exp();
                    *z = if *z > 0.0 { 1.0 } else { e } / (1.0 + e);
                    1.0 + e
                }));
            }
            LabelKind::Classes => {
                let top = z.fold(f64::NEG_INFINITY, |a, &b| a.max(b));
                z.mapv_inplace(|z| (z - top).exp());
                let sum = z.sum();
                z /= sum;
                loss += top + sum.ln();
            }
        }
        z -= &h;
        loss
    });
    (losses.collect(), scores)
}

/// Softmax for classes, the logistic function for tags.
pub fn probabilities(scores: ArrayView2<f64>, kind: LabelKind) -> Array2<f64> {
    judged(scores.to_owned(), Array2::zeros(scores.dim()).view(), kind).1
}

/// -log p(h | scores) of each row; of tags, the sum over them.
pub fn losses(scores: ArrayView2<f64>, h: ArrayView2<f64>, kind: LabelKind) -> Array1<f64> {
    judged(scores.to_owned(), h, kind).0
}

/// The factor on the scores with the smallest loss; few rows hardly move it from one.
pub fn temperature(scores: ArrayView2<f64>, h: ArrayView2<f64>, kind: LabelKind) -> f64 {
    /// Range of the logarithm, and steps that narrow it to a hundredth.
    const RANGE: (f64, f64) = (-4.0, 5.0);
    const STEPS: usize = 15;
    let cost = |log: f64| losses((&scores * log.exp()).view(), h, kind).sum() + log * log;
    let (mut low, mut high) = RANGE;
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    for _ in 0..STEPS {
        let (left, right) = (high - golden * (high - low), low + golden * (high - low));
        if cost(left) < cost(right) {
            high = right;
        } else {
            low = left;
        }
    }
    ((low + high) / 2.0).exp()
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::support::random::{Purpose, stream};

    fn case(kind: LabelKind) -> (Array2<f64>, Array2<f64>) {
        let mut random = stream(1, Purpose::Codes);
        let x = Array2::from_shape_fn((60, 4), |_| random.random_range(-1.0..1.0));
        let mut h = Array2::zeros((60, 3));
        for (i, mut row) in h.rows_mut().into_iter().enumerate() {
            let noise = random.random_range(-0.5..0.5);
            let class = if x[[i, 0]] + noise > 0.3 { 0 } else { 1 + i % 2 };
            row[class] = 1.0;
            if kind == LabelKind::Tags && x[[i, 1]] + noise > 0.0 {
                row[2] = 1.0;
            }
        }
        (x, h)
    }

    /// At the fit, every partial derivative of the literal loss is nought.
    #[test]
    fn a_fit_is_stationary() {
        for kind in [LabelKind::Classes, LabelKind::Tags] {
            let (x, h) = case(kind);
            let weight = Array1::from_iter((0..60).map(|i| 0.5 + (i % 3) as f64));
            let ridge = 0.7;
            let found = fit(x.view(), h.view(), &weight, kind, ridge, &Affine::zeros(3, 4));
            let literal = |at: &Affine| {
                let mut sum = 0.5 * ridge * at.a.mapv(|a| a * a).sum()
                    + 0.5 * ridge * ON_CONSTANTS * at.b.mapv(|b| b * b).sum();
                for i in 0..60 {
                    let z: Vec<f64> =
                        (0..3).map(|c| at.a.row(c).dot(&x.row(i)) + at.b[c]).collect();
                    let total: f64 = z.iter().map(|z| z.exp()).sum();
                    for c in 0..3 {
                        let p = match kind {
                            LabelKind::Classes => z[c].exp() / total,
                            LabelKind::Tags => z[c].exp() / (1.0 + z[c].exp()),
                        };
                        sum -= weight[i] * h[[i, c]] * p.ln();
                        if kind == LabelKind::Tags {
                            sum -= weight[i] * (1.0 - h[[i, c]]) * (1.0 - p).ln();
                        }
                    }
                }
                sum
            };
            let step = 1e-5;
            for (c, k) in [(0, 0), (1, 3), (2, 2)] {
                let (mut up, mut down) = (found.clone(), found.clone());
                up.a[[c, k]] += step;
                down.a[[c, k]] -= step;
                let slope = (literal(&up) - literal(&down)) / (2.0 * step);
                assert!(slope.abs() < 1e-2, "{kind:?}: slope {slope} at A[{c},{k}]");
                let (mut up, mut down) = (found.clone(), found.clone());
                up.b[c] += step;
                down.b[c] -= step;
                let slope = (literal(&up) - literal(&down)) / (2.0 * step);
                assert!(slope.abs() < 1e-2, "{kind:?}: slope {slope} at b[{c}]");
            }
        }
    }

    #[test]
    fn scores_that_are_too_sure_are_cooled() {
        let (x, h) = case(LabelKind::Classes);
        let ones = Array1::ones(60);
        let good = fit(x.view(), h.view(), &ones, LabelKind::Classes, 1e-3, &Affine::zeros(3, 4));
        let scores = good.scores(x.view());
        for factor in [0.2, 1.0, 5.0] {
            let found = temperature((&scores * factor).view(), h.view(), LabelKind::Classes);
            assert!((found * factor - 1.0).abs() < 0.15, "{found} for {factor}");
        }
    }
}
