//! Makes a [`Data`] of the user's matrices: checked, centred, on one scale. There is no other way.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView1, Axis, s};

use crate::support::error::{Error, Result};

/// One kind of measurement of all samples, in the library's units.
#[derive(Clone, Debug)]
pub struct Modality {
    name: String,
    /// L x N; rows of missing samples are nought.
    y: Array2<f64>,
    present: Vec<bool>,
    mean: Array1<f64>,
    scale: f64,
}

/// Several modalities of the same samples.
///
/// Modalities are kept in the order of their names, so that the order in which they are given
/// changes nothing. Inside, y = (user's y - mean) / scale, with the scale such that the mean of
/// |y|^2 is one in every modality: hyperparameters are shared, so scales must agree.
#[derive(Clone, Debug)]
pub struct Data {
    modalities: Vec<Modality>,
    n_samples: usize,
    center: bool,
}

impl Data {
    /// Takes named matrices (rows are samples, a row of NaN is a missing modality).
    pub fn new(named: Vec<(String, Array2<f64>)>, center: bool) -> Result<Self> {
        let mut data = Self::checked(named)?;
        for modality in &mut data.modalities {
            modality.measure_and_scale(center)?;
        }
        data.center = center;
        Ok(data)
    }

    /// The same for new samples of modalities whose mean and scale are known.
    pub(crate) fn with_scales<'a>(
        named: Vec<(String, Array2<f64>)>,
        known: impl Fn(&str) -> Result<(ArrayView1<'a, f64>, f64)>,
    ) -> Result<Self> {
        let mut data = Self::checked(named)?;
        for modality in &mut data.modalities {
            let (mean, scale) = known(&modality.name)?;
            if mean.len() != modality.y.ncols() {
                return Err(Error::FeatureCount {
                    name: modality.name.clone(),
                    found: modality.y.ncols(),
                    expected: mean.len(),
                });
            }
            modality.apply(mean.to_owned(), scale);
        }
        Ok(data)
    }

    /// The same, with the mean to be learnt or not.
    pub(crate) fn centred(self, center: bool) -> Self {
        Data { center, ..self }
    }

    fn checked(named: Vec<(String, Array2<f64>)>) -> Result<Self> {
        let (first, n_samples) = match named.first() {
            Some((name, y)) => (name.clone(), y.nrows()),
            None => return Err(Error::NoModality),
        };
        let mut modalities = Vec::with_capacity(named.len());
        for (name, y) in named {
            if modalities.iter().any(|other: &Modality| other.name == name) {
                return Err(Error::DuplicateName { name });
            }
            for (size, what) in [(y.nrows(), "samples"), (y.ncols(), "features")] {
                if size == 0 {
                    return Err(Error::Empty { name, what });
                }
            }
            if y.nrows() != n_samples {
                let found = y.nrows();
                return Err(Error::SampleCounts { name, found, other: first, expected: n_samples });
            }
            modalities.push(Modality::checked(name, y)?);
        }
        for row in 0..n_samples {
            if !modalities.iter().any(|modality| modality.present[row]) {
                return Err(Error::NothingObserved { row });
            }
        }
        modalities.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Data { modalities, n_samples, center: false })
    }

    /// Some of the samples, as they are.
    pub(crate) fn part(&self, rows: Range<usize>) -> Self {
        let modalities = self.modalities.iter().map(|modality| Modality {
            name: modality.name.clone(),
            y: modality.y.slice(s![rows.clone(), ..]).to_owned(),
            present: modality.present[rows.clone()].to_vec(),
            mean: modality.mean.clone(),
            scale: modality.scale,
        });
        Data { modalities: modalities.collect(), n_samples: rows.len(), center: self.center }
    }

    /// Some of the samples and modalities, as they are.
    pub(crate) fn select(&self, rows: &[usize], modalities: &[usize]) -> Self {
        let modalities = modalities.iter().map(|&j| &self.modalities[j]).map(|modality| Modality {
            name: modality.name.clone(),
            y: modality.y.select(Axis(0), rows),
            present: rows.iter().map(|&row| modality.present[row]).collect(),
            mean: modality.mean.clone(),
            scale: modality.scale,
        });
        Data { modalities: modalities.collect(), n_samples: rows.len(), center: self.center }
    }

    pub fn n_samples(&self) -> usize {
        self.n_samples
    }

    /// Whether the mean is taken off (and learnt).
    pub fn center(&self) -> bool {
        self.center
    }

    pub fn modalities(&self) -> &[Modality] {
        &self.modalities
    }
}

impl Modality {
    fn checked(name: String, mut y: Array2<f64>) -> Result<Self> {
        if !y.is_standard_layout() {
            y = y.as_standard_layout().into_owned();
        }
        let mut present = vec![true; y.nrows()];
        for (row, mut values) in y.rows_mut().into_iter().enumerate() {
            if let Some(column) = values.iter().position(|x| x.is_infinite()) {
                return Err(Error::Infinite { name, row, column });
            }
            let missing = values.iter().filter(|x| x.is_nan()).count();
            if missing == values.len() {
                present[row] = false;
                values.fill(0.0);
            } else if missing > 0 {
                let n_features = values.len();
                return Err(Error::PartlyMissing { name, row, missing, n_features });
            }
        }
        let mean = Array1::zeros(y.ncols());
        Ok(Modality { name, y, present, mean, scale: 1.0 })
    }

    fn measure_and_scale(&mut self, center: bool) -> Result<()> {
        let count = self.n_present();
        let name = || self.name.clone();
        if count == 0 {
            return Err(Error::AllMissing { name: name() });
        }
        let largest = self.y.iter().fold(0.0, |a: f64, x| a.max(x.abs()));
        if largest == 0.0 {
            return Err(Error::Constant { name: name(), what: "nought" });
        }
        // Dividing by the largest value first keeps squares of huge or tiny data finite.
        let mean = self.y.map(|x| x / largest).sum_axis(Axis(0)) / count as f64;
        let spread = self.energy(|n, x| x / largest - mean[n]) / count as f64;
        // Sums of equal numbers are exact to about this much.
        if spread.sqrt() < 1e-12 && (center || count > 1) {
            return Err(Error::Constant { name: name(), what: "the same" });
        }
        let size = self.energy(|_, x| x / largest) / count as f64;
        let scale = largest * if center { spread } else { size }.sqrt();
        // The noise variance, many orders below the scale's square, must be a number too.
        if !(1e-120..1e120).contains(&scale) {
            return Err(Error::Magnitude { name: name(), size: largest });
        }
        let mean = if center { mean * largest } else { Array1::zeros(self.y.ncols()) };
        self.apply(mean, scale);
        Ok(())
    }

    fn energy(&self, value: impl Fn(usize, f64) -> f64) -> f64 {
        let rows = self.y.rows().into_iter().zip(&self.present).filter(|(_, seen)| **seen);
        rows.map(|(row, _)| row.iter().enumerate().map(|(n, &x)| value(n, x).powi(2)).sum::<f64>())
            .sum()
    }

    fn apply(&mut self, mean: Array1<f64>, scale: f64) {
        for (mut row, seen) in self.y.rows_mut().into_iter().zip(&self.present) {
            if *seen {
                row.zip_mut_with(&mean, |x, mean| *x = (*x - mean) / scale);
            }
        }
        self.mean = mean;
        self.scale = scale;
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn n_features(&self) -> usize {
        self.y.ncols()
    }

    /// Centred and scaled values; nought where missing.
    pub fn y(&self) -> &Array2<f64> {
        &self.y
    }

    /// One sample's values.
    pub(crate) fn row(&self, sample: usize) -> &[f64] {
        let n = self.n_features();
        // The gate makes it standard.
        self.y.as_slice().map_or(&[], |all| &all[sample * n..(sample + 1) * n])
    }

    pub fn present(&self) -> &[bool] {
        &self.present
    }

    pub fn n_present(&self) -> usize {
        self.present.iter().filter(|seen| **seen).count()
    }

    pub fn mean(&self) -> &Array1<f64> {
        &self.mean
    }

    pub fn scale(&self) -> f64 {
        self.scale
    }
}
