//! Minimises smooth convex functions by L-BFGS with backtracking.
//!
//! Sixty lines do what is needed here; the crates that offer more bring a framework with them.

use ndarray::Array1;

/// Steps whose curvature is remembered.
const MEMORY: usize = 10;
/// Share of the slope that a step must gain.
const ARMIJO: f64 = 1e-4;
const HALVINGS: usize = 40;

/// Ends at a gradient of size `goal`, or after `steps` steps.
pub(crate) fn minimise(
    mut x: Array1<f64>,
    steps: usize,
    goal: f64,
    mut value: impl FnMut(&Array1<f64>) -> (f64, Array1<f64>),
) -> Array1<f64> {
    let (mut f, mut gradient) = value(&x);
    let mut pairs: Vec<(Array1<f64>, Array1<f64>)> = Vec::new();
    for _ in 0..steps {
        if norm(&gradient) <= goal {
            break;
        }
        let mut direction = descent(&gradient, &pairs);
        let mut slope = direction.dot(&gradient);
        if slope >= 0.0 {
            // Rounding has spoilt the memory.
            pairs.clear();
            direction = -&gradient;
            slope = -gradient.dot(&gradient);
        }
        let mut length = if pairs.is_empty() { 1.0 / norm(&gradient).max(1.0) } else { 1.0 };
        let mut found = None;
        for _ in 0..HALVINGS {
            let next = &x + &(&direction * length);
            let (f_next, gradient_next) = value(&next);
            if f_next <= f + ARMIJO * length * slope {
                found = Some((next, f_next, gradient_next));
                break;
            }
            length *= 0.5;
        }
        let Some((next, f_next, gradient_next)) = found else { break };
        let (step, change) = (&next - &x, &gradient_next - &gradient);
        if step.dot(&change) > 1e-12 * step.dot(&step) {
            if pairs.len() == MEMORY {
                pairs.remove(0);
            }
            pairs.push((step, change));
        }
        (x, f, gradient) = (next, f_next, gradient_next);
    }
    x
}

/// - H g with the inverse Hessian that the remembered steps tell of (two-loop recursion).
fn descent(gradient: &Array1<f64>, pairs: &[(Array1<f64>, Array1<f64>)]) -> Array1<f64> {
    let mut q = -gradient;
    let mut weights = Vec::with_capacity(pairs.len());
    for (step, change) in pairs.iter().rev() {
        let weight = step.dot(&q) / step.dot(change);
        q.scaled_add(-weight, change);
        weights.push(weight);
    }
    if let Some((step, change)) = pairs.last() {
        q *= step.dot(change) / change.dot(change);
    }
    for ((step, change), weight) in pairs.iter().zip(weights.into_iter().rev()) {
        let back = change.dot(&q) / step.dot(change);
        q.scaled_add(weight - back, step);
    }
    q
}

fn norm(x: &Array1<f64>) -> f64 {
    x.dot(x).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A long narrow valley, whose floor is known.
    #[test]
    fn finds_the_lowest_point() {
        let scales = Array1::from_iter((0..20).map(|k| 10f64.powf(k as f64 / 10.0)));
        let goal = Array1::from_iter((0..20).map(|k| k as f64 - 10.0));
        let found = minimise(Array1::zeros(20), 200, 1e-7, |x| {
            let off = x - &goal;
            let gradient = &off * &scales + off.mapv(|x| x.powi(3));
            let value = 0.5 * off.dot(&(&off * &scales)) + off.mapv(|x| x.powi(4)).sum() / 4.0;
            (value, gradient)
        });
        for (found, goal) in found.iter().zip(&goal) {
            assert!((found - goal).abs() < 1e-5, "{found} instead of {goal}");
        }
    }
}
