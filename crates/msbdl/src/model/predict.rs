//! Predicts the labels of new samples, from any subset of the modalities.

use ndarray::Array2;

use super::Model;
use super::classifier::ReadOut;
use crate::input::data::Data;
use crate::input::labels::LabelKind;
use crate::learn::fit::on_threads;
use crate::support::error::{Error, Result};
use crate::support::score::ranked;

/// What a model says of new samples; rows are samples, columns classes or tags.
#[derive(Clone, Debug)]
pub struct Prediction {
    pub kind: LabelKind,
    /// The classes or tags.
    pub names: Vec<String>,
    /// Of classes they sum to one; of tags each is on its own.
    pub probability: Array2<f64>,
    /// The decision function: log-odds, of classes up to a constant for each sample.
    pub decision: Array2<f64>,
    /// What the codes of each modality say, which the others that were given helped to make.
    pub votes: Vec<Vote>,
}

/// One modality's say; samples that lack it have NaN.
#[derive(Clone, Debug)]
pub struct Vote {
    pub modality: String,
    pub probability: Array2<f64>,
}

impl Prediction {
    /// The most probable class or tag of each sample, as a place in `names`.
    pub fn best(&self) -> Vec<usize> {
        self.probability.rows().into_iter().map(|row| ranked(row)[0]).collect()
    }

    /// The `k` most probable classes or tags of each sample.
    pub fn top(&self, k: usize) -> Vec<Vec<usize>> {
        let rows = self.probability.rows().into_iter();
        rows.map(|row| ranked(row).into_iter().take(k).collect()).collect()
    }
}

impl Model {
    /// Predicts labels by the read-out that validated best; a row of NaN is a missing modality,
    /// and whole modalities may be left out.
    pub fn predict(&self, named: Vec<(String, Array2<f64>)>) -> Result<Prediction> {
        self.predict_by(named, None, 0)
    }

    /// The same with a read-out of one's choice and on so many threads; nought means one per core.
    pub fn predict_by(
        &self,
        named: Vec<(String, Array2<f64>)>,
        read_out: Option<ReadOut>,
        threads: usize,
    ) -> Result<Prediction> {
        let classifier = self.classifier.as_ref().ok_or(Error::NoClassifier)?;
        let data = self.data("predict", named)?;
        let read_out = read_out.unwrap_or(classifier.read_out);
        let codes = on_threads(threads, || classifier.codes(self, &data, read_out))?;
        let place = |name: &str| self.modalities.iter().position(|known| known.name == name);
        let places: Vec<usize> =
            data.modalities().iter().filter_map(|modality| place(modality.name())).collect();
        let present: Vec<&[bool]> =
            data.modalities().iter().map(|modality| modality.present()).collect();
        let scores = classifier.scores(read_out, &codes, &places, &present);
        let votes = data.modalities().iter().zip(&scores.votes).map(|(modality, votes)| Vote {
            modality: modality.name().to_owned(),
            probability: classifier.probabilities(votes.view()),
        });
        Ok(Prediction {
            kind: classifier.kind,
            names: classifier.names.clone(),
            probability: classifier.probabilities(scores.fused.view()),
            votes: votes.collect(),
            decision: scores.fused,
        })
    }

    /// New samples in the library's units.
    pub(crate) fn data(
        &self,
        purpose: &'static str,
        named: Vec<(String, Array2<f64>)>,
    ) -> Result<Data> {
        let known = |name: &str| {
            let found = self.modality(name).ok_or_else(|| self.unknown(purpose, name))?;
            Ok((found.mean.view(), found.scale))
        };
        Data::with_scales(named, known)
    }

    pub(crate) fn unknown(&self, option: &'static str, name: &str) -> Error {
        let known: Vec<&str> = self.modalities.iter().map(|x| x.name.as_str()).collect();
        Error::UnknownModality { option, name: name.to_owned(), known: known.join(", ") }
    }
}
