//! Makes [`Labels`] of the user's classes or tags: checked, and some samples may have none.

use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};

use crate::support::error::{Error, Result};

/// Whether a sample has exactly one of the names, or any number of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LabelKind {
    Classes,
    Tags,
}

/// What names are in a language that has more than text for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NameType {
    Text,
    Integer,
    Boolean,
}

/// What is known of the samples: a class each, or tags.
#[derive(Clone, Debug, PartialEq)]
pub struct Labels {
    kind: LabelKind,
    names: Vec<String>,
    /// L x C, 1 where a sample has the label; nought where it is not known.
    h: Array2<f64>,
    known: Vec<bool>,
}

impl Labels {
    /// One class a sample, by name; `None` is a sample without a label.
    ///
    /// The classes are put in order: by value if all are whole numbers, else as text.
    pub fn classes<T: ToString>(given: &[Option<T>]) -> Result<Self> {
        let given: Vec<Option<String>> =
            given.iter().map(|label| label.as_ref().map(ToString::to_string)).collect();
        let mut names: Vec<String> = given.iter().flatten().cloned().collect();
        names.sort();
        names.dedup();
        let numbers: Option<Vec<i64>> = names.iter().map(|name| name.parse().ok()).collect();
        if let Some(numbers) = numbers {
            let mut pairs: Vec<(i64, String)> = numbers.into_iter().zip(names).collect();
            pairs.sort();
            names = pairs.into_iter().map(|(_, name)| name).collect();
        }
        if let [only] = names.as_slice() {
            return Err(Error::OneClass { name: only.clone() });
        }
        Self::among(names, &given)
    }

    /// The same where the classes are known already, as when predictions are scored.
    pub fn among(names: Vec<String>, given: &[Option<String>]) -> Result<Self> {
        let mut h = Array2::zeros((given.len(), names.len()));
        for (row, label) in given.iter().enumerate() {
            let Some(label) = label else { continue };
            let class = names.iter().position(|name| name == label);
            let class = class.ok_or_else(|| Error::UnknownLabel {
                row,
                name: label.clone(),
                known: shortened(&names),
            })?;
            h[[row, class]] = 1.0;
        }
        let known = given.iter().map(Option::is_some).collect();
        Self::with_some_known(LabelKind::Classes, names, h, known)
    }

    /// Any number of tags a sample: a column for each, 1 where a sample has it and 0 where not;
    /// a row of NaN is a sample whose tags are not known.
    pub fn tags(names: Option<Vec<String>>, mut given: Array2<f64>) -> Result<Self> {
        let names = names.unwrap_or_else(|| (0..given.ncols()).map(|c| c.to_string()).collect());
        if names.len() != given.ncols() {
            return Err(Error::TagNames { names: names.len(), columns: given.ncols() });
        }
        let mut known = vec![true; given.nrows()];
        for (row, mut values) in given.rows_mut().into_iter().enumerate() {
            if values.iter().all(|x| x.is_nan()) {
                known[row] = false;
                values.fill(0.0);
            } else if let Some(column) = values.iter().position(|x| *x != 0.0 && *x != 1.0) {
                return Err(Error::TagValue { row, column, value: values[column] });
            }
        }
        Self::with_some_known(LabelKind::Tags, names, given, known)
    }

    /// Labels of samples that all have one.
    pub(crate) fn table(kind: LabelKind, names: Vec<String>, h: Array2<f64>) -> Result<Self> {
        let known = vec![true; h.nrows()];
        Self::with_some_known(kind, names, h, known)
    }

    fn with_some_known(
        kind: LabelKind,
        names: Vec<String>,
        h: Array2<f64>,
        known: Vec<bool>,
    ) -> Result<Self> {
        if !known.contains(&true) || names.is_empty() {
            return Err(Error::NoLabels);
        }
        Ok(Labels { kind, names, h, known })
    }

    pub fn kind(&self) -> LabelKind {
        self.kind
    }

    /// The classes or tags, in the order of the columns of [`Labels::h`].
    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub fn n_samples(&self) -> usize {
        self.known.len()
    }

    /// Which samples have a label.
    pub fn known(&self) -> &[bool] {
        &self.known
    }

    /// L x C, 1 where a sample has the label.
    pub fn h(&self) -> &Array2<f64> {
        &self.h
    }

    /// The class of a sample, as a place in [`Labels::names`]; none if it is not known.
    pub fn class(&self, row: usize) -> Option<usize> {
        let has = |class: &f64| *class == 1.0;
        (self.kind == LabelKind::Classes).then(|| self.h.row(row).iter().position(has))?
    }

    /// How many of `rows` have each label, over their number.
    pub(crate) fn shares(&self, rows: &[usize]) -> Array1<f64> {
        let mut sum = Array1::zeros(self.names.len());
        rows.iter().for_each(|&row| sum += &self.h.row(row));
        sum / rows.len().max(1) as f64
    }
}

/// At most ten names, for messages.
fn shortened(names: &[String]) -> String {
    const MOST: usize = 10;
    let shown = names.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > MOST { format!("{shown}, ...") } else { shown }
}
