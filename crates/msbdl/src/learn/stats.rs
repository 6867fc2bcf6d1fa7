//! Adds up what a set of samples says of the parameters; sums merge in a fixed order.

use ndarray::{Array1, Array2};

use super::task::LabelSums;

/// One modality's sums over a set of samples.
#[derive(Clone, Debug)]
pub struct ModalityStats {
    /// Samples that have the modality.
    pub count: usize,
    /// C = sum of mu mu^T + Sigma, M x M.
    pub c: Array2<f64>,
    /// B = sum of y mu^T, N x M.
    pub b: Array2<f64>,
    /// Sum of mu.
    pub mu: Array1<f64>,
    /// Sum of y.
    pub y: Array1<f64>,
    /// Sum of mu^2 per atom.
    pub energy: Array1<f64>,
    /// Sum of log p(y).
    pub log_likelihood: f64,
    /// Sum of |y - D mu|^2 = s^2 |S^-1 y|^2.
    pub residual: f64,
    /// Sum of the degrees of freedom that the codes leave, N - sum v b = s tr S^-1.
    pub free: f64,
    /// Samples by residual per degree of freedom.
    pub spread: Histogram,
    /// What labelled samples say of W; none without labels.
    pub(crate) labels: Option<LabelSums>,
}

impl ModalityStats {
    pub fn new(n: usize, m: usize) -> Self {
        ModalityStats {
            count: 0,
            c: Array2::zeros((m, m)),
            b: Array2::zeros((n, m)),
            mu: Array1::zeros(m),
            y: Array1::zeros(n),
            energy: Array1::zeros(m),
            log_likelihood: 0.0,
            residual: 0.0,
            free: 0.0,
            spread: Histogram::new(),
            labels: None,
        }
    }

    /// d log p / d s = -1/2 sum (tr S^-1 - |S^-1 y|^2): negative if less noise would be likelier.
    pub fn slope(&self, s: f64) -> f64 {
        0.5 * (self.residual / s - self.free) / s
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.c += &other.c;
        self.b += &other.b;
        self.mu += &other.mu;
        self.y += &other.y;
        self.energy += &other.energy;
        self.log_likelihood += other.log_likelihood;
        self.residual += other.residual;
        self.free += other.free;
        self.spread.merge(&other.spread);
        LabelSums::merge(&mut self.labels, &other.labels);
    }
}

/// Counts positive numbers in eighths of octaves, for a median that merges.
#[derive(Clone, Debug)]
pub struct Histogram(Vec<u32>);

impl Histogram {
    const PER_OCTAVE: f64 = 8.0;
    /// log2 of the smallest number told apart from nought, and octaves above it.
    const LOWEST: f64 = -60.0;
    const OCTAVES: usize = 80;

    fn new() -> Self {
        Histogram(vec![0; Self::OCTAVES * Self::PER_OCTAVE as usize])
    }

    pub fn add(&mut self, x: f64) {
        let place = (x.max(f64::MIN_POSITIVE).log2() - Self::LOWEST) * Self::PER_OCTAVE;
        let last = self.0.len() - 1;
        self.0[place.clamp(0.0, last as f64) as usize] += 1;
    }

    /// To within a few per cent; nought if nothing was counted.
    pub fn median(&self) -> f64 {
        let half = f64::from(self.0.iter().sum::<u32>()) / 2.0;
        let mut below = 0.0;
        for (place, &count) in self.0.iter().enumerate() {
            let count = f64::from(count);
            if count > 0.0 && below + count >= half {
                let place = place as f64 + (half - below) / count;
                return (place / Self::PER_OCTAVE + Self::LOWEST).exp2();
            }
            below += count;
        }
        0.0
    }

    fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine += theirs);
    }
}

/// Sums of two modalities' coefficients over the samples that have both, for correlations.
#[derive(Clone, Debug)]
pub struct Cross {
    pub count: f64,
    pub product: Array2<f64>,
    pub sums: [Array1<f64>; 2],
    pub squares: [Array1<f64>; 2],
}

impl Cross {
    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.product += &other.product;
        for side in 0..2 {
            self.sums[side] += &other.sums[side];
            self.squares[side] += &other.squares[side];
        }
    }

    /// Correlation of coefficient k of the first with coefficient l of the second modality.
    pub fn correlation(&self) -> Array2<f64> {
        let spread = |side: usize| {
            let mean = &self.sums[side] / self.count;
            (&self.squares[side] / self.count - &mean * &mean).mapv(|x| x.max(0.0).sqrt())
        };
        let (left, right) = (spread(0), spread(1));
        Array2::from_shape_fn(self.product.dim(), |(k, l)| {
            let centred = self.product[[k, l]] / self.count
                - self.sums[0][k] * self.sums[1][l] / (self.count * self.count);
            let scale = left[k] * right[l];
            if scale > 0.0 { centred / scale } else { 0.0 }
        })
    }
}

/// What a set of samples says of all modalities.
#[derive(Clone, Debug)]
pub struct Stats {
    pub count: usize,
    /// Hyperparameters above nought after the update, summed over the samples.
    pub active: f64,
    pub modalities: Vec<ModalityStats>,
    /// For modalities (p, q), p < q, in lexical order; empty unless asked for.
    pub cross: Vec<Cross>,
}

impl Stats {
    /// Adds the sums of other samples.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.active += other.active;
        for (mine, theirs) in self.modalities.iter_mut().zip(&other.modalities) {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.cross.iter_mut().zip(&other.cross) {
            mine.merge(theirs);
        }
    }
}
