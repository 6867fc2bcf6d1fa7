//! Sums logarithms.

/// Sum of the logarithms of positive numbers, with few logarithms.
pub(crate) fn sum_of_logs(values: impl Iterator<Item = f64>) -> f64 {
    /// Products stay within these bounds and one more factor.
    const BOUNDS: std::ops::Range<f64> = 1e-100..1e100;
    let (mut sum, mut product) = (0.0, 1.0);
    for x in values {
        product *= x;
        if !BOUNDS.contains(&product) {
            sum += f64::ln(product);
            product = 1.0;
        }
    }
    sum + product.ln()
}
