//! Measures predictions against labels.

use ndarray::{Array2, ArrayView1, ArrayView2};
use serde::Serialize;

/// How well classes were told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassScores {
    pub n_samples: usize,
    pub accuracy: f64,
    /// Share of right answers per class, averaged over the classes that occur.
    pub balanced_accuracy: f64,
    /// 2 TP / (2 TP + FP + FN), averaged over the classes that occur or were predicted.
    pub macro_f1: f64,
    /// Rows are true classes, columns predicted ones.
    pub confusion: Vec<Vec<usize>>,
}

/// Compares places in a list of `n_classes` classes.
pub fn classes(truth: &[usize], predicted: &[usize], n_classes: usize) -> ClassScores {
    let mut confusion = vec![vec![0; n_classes]; n_classes];
    truth.iter().zip(predicted).for_each(|(&t, &p)| confusion[t][p] += 1);
    let right: usize = (0..n_classes).map(|c| confusion[c][c]).sum();
    let of = |c: usize| confusion[c].iter().sum::<usize>();
    let said = |c: usize| confusion.iter().map(|row| row[c]).sum::<usize>();
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let shares = (0..n_classes).filter(|&c| of(c) > 0);
    let shares = shares.map(|c| confusion[c][c] as f64 / of(c) as f64).collect();
    let f1 = (0..n_classes).filter(|&c| of(c) + said(c) > 0);
    let f1 = f1.map(|c| 2.0 * confusion[c][c] as f64 / (of(c) + said(c)) as f64).collect();
    ClassScores {
        n_samples: truth.len(),
        accuracy: right as f64 / truth.len().max(1) as f64,
        balanced_accuracy: mean(shares),
        macro_f1: mean(f1),
        confusion,
    }
}

/// How well tags were told.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TagScores {
    pub n_samples: usize,
    /// The paper's: the share of a sample's k tags that are among the k with the highest
    /// scores, averaged over the samples that have tags.
    pub recall: f64,
    /// Precision at the place of every true tag, samples ranked by score, averaged over those
    /// places and then over the tags that occur.
    pub mean_average_precision: f64,
}

/// Compares scores with a matrix of 0 and 1; rows are samples.
pub fn tags(h: ArrayView2<f64>, scores: ArrayView2<f64>) -> TagScores {
    let each = (0..h.ncols()).filter_map(|c| average_precision(h.column(c), scores.column(c)));
    let each: Vec<f64> = each.collect();
    TagScores {
        n_samples: h.nrows(),
        recall: recall(h, scores),
        mean_average_precision: each.iter().sum::<f64>() / each.len().max(1) as f64,
    }
}

/// The share of a sample's k labels among the k highest scores; for classes, the accuracy.
pub fn recall(h: ArrayView2<f64>, scores: ArrayView2<f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for (h, scores) in h.rows().into_iter().zip(scores.rows()) {
        let k = h.iter().filter(|x| **x == 1.0).count();
        if k > 0 {
            let found = ranked(scores).into_iter().take(k).filter(|&c| h[c] == 1.0).count();
            sum += found as f64 / k as f64;
            count += 1.0;
        }
    }
    if count > 0.0 { sum / count } else { 0.0 }
}

/// Places by falling value; equals in their order.
pub fn ranked(values: ArrayView1<f64>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
    order
}

fn average_precision(h: ArrayView1<f64>, scores: ArrayView1<f64>) -> Option<f64> {
    let (mut found, mut sum) = (0.0, 0.0);
    for (place, i) in ranked(scores).into_iter().enumerate() {
        if h[i] == 1.0 {
            found += 1.0;
            sum += found / (place + 1) as f64;
        }
    }
    (found > 0.0).then(|| sum / found)
}

/// |share of right answers - mean probability|, over bins of equal width of the probability,
/// weighted by their sizes. Of a class the probability of the answer counts; of tags each.
pub fn calibration_error(probability: &[f64], right: &[bool]) -> f64 {
    const BINS: usize = 15;
    let mut bins = [(0.0, 0.0); BINS];
    for (p, right) in probability.iter().zip(right) {
        let bin = ((p * BINS as f64) as usize).min(BINS - 1);
        bins[bin].0 += p - f64::from(u8::from(*right));
        bins[bin].1 += 1.0;
    }
    let off: f64 = bins.iter().map(|(off, _)| f64::abs(*off)).sum();
    off / probability.len().max(1) as f64
}

/// [`calibration_error`] of the most probable class of each row.
pub fn class_calibration_error(probability: &Array2<f64>, truth: &[usize]) -> f64 {
    let rows = probability.rows().into_iter();
    let top: Vec<usize> = rows.map(|row| ranked(row)[0]).collect();
    let sure: Vec<f64> = top.iter().enumerate().map(|(i, &c)| probability[[i, c]]).collect();
    let right: Vec<bool> = top.iter().zip(truth).map(|(top, truth)| top == truth).collect();
    calibration_error(&sure, &right)
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn classes_by_hand() {
        let found = classes(&[0, 0, 0, 1], &[0, 0, 1, 1], 3);
        assert_eq!(found.accuracy, 0.75);
        assert!((found.balanced_accuracy - (2.0 / 3.0 + 1.0) / 2.0).abs() < 1e-12);
        assert!((found.macro_f1 - (0.8 + 2.0 / 3.0) / 2.0).abs() < 1e-12);
        assert_eq!(found.confusion, [[2, 1, 0], [0, 1, 0], [0, 0, 0]]);
    }

    #[test]
    fn tags_by_hand() {
        let h = array![[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]];
        let scores = array![[0.9, 0.1, 0.5], [0.8, 0.7, 0.0], [0.1, 0.4, 0.3]];
        let found = tags(h.view(), scores.view());
        assert_eq!(found.recall, 0.25);
        // Tag 0: first of three. Tag 1: places 1 and 3, so (1 + 2/3) / 2. Tag 2 never occurs.
        let expected = (1.0 + (1.0 + 2.0 / 3.0) / 2.0) / 2.0;
        assert!((found.mean_average_precision - expected).abs() < 1e-12);
    }

    #[test]
    fn calibration_by_hand() {
        let (sure, right) = ([0.9, 0.9, 0.9, 0.9, 0.3], [true, true, true, false, false]);
        let expected = (4.0 * 0.15 + 0.3) / 5.0;
        assert!((calibration_error(&sure, &right) - expected).abs() < 1e-12);
        let probability = array![[0.7, 0.3], [0.2, 0.8]];
        assert!((class_calibration_error(&probability, &[0, 1]) - 0.25).abs() < 1e-12);
    }
}
