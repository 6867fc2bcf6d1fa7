//! Lets labels take part in learning from batches, and fits read-outs for what has been learnt.

use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};

use super::fit::on_threads;
use super::read_out::fit_read_outs;
use super::stats::Stats;
use super::stream::{Named, Stream};
use super::task::Task;
use crate::input::labels::Labels;
use crate::input::task::{NU, TaskConfig};
use crate::model::classifier::Classifier;
use crate::support::error::{Error, Result};

/// What a stream knows of labels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Taught {
    /// The classes or tags that may come.
    names: Vec<String>,
    /// Taken off the labels in all sums.
    mean: Array1<f64>,
    /// W_j, C x M_j.
    w: Vec<Array2<f64>>,
    beta2: Vec<f64>,
    /// Ridge on W; by default it grows with the labelled samples.
    nu: Option<f64>,
}

impl Taught {
    /// Labels that the classifier does not know yet have no weight.
    fn new(classifier: &Classifier, names: Vec<String>, nu: Option<f64>) -> Self {
        let known = |name: &String| classifier.names.iter().position(|other| other == name);
        let places: Vec<Option<usize>> = names.iter().map(known).collect();
        let spread = |w: &Array2<f64>| {
            Array2::from_shape_fn((names.len(), w.ncols()), |(c, k)| {
                places[c].map_or(0.0, |place| w[[place, k]])
            })
        };
        Taught {
            mean: places.iter().map(|at| at.map_or(0.0, |at| classifier.shares[at])).collect(),
            w: classifier.projection.weights.iter().map(spread).collect(),
            beta2: classifier.projection.beta2.clone(),
            nu,
            names,
        }
    }

    /// The labels of a batch but those of the rows held back, to be learnt after `others`.
    pub fn task(&self, labels: &Labels, held: &[usize], others: Option<&Stats>) -> Result<Task> {
        if labels.names() != self.names {
            let expected = format!("among {}", self.names.join(", "));
            return Err(Error::Setting {
                option: "labels",
                expected,
                found: labels.names().join(", "),
            });
        }
        let mut shown = labels.known().to_vec();
        for &row in held.iter().filter(|row| **row < labels.n_samples()) {
            shown[row] = false;
        }
        let before = others.into_iter().flat_map(|stats| &stats.modalities);
        let before = before.filter_map(|stats| stats.labels.as_ref()).map(|sums| sums.count).max();
        let count = before.unwrap_or(0) + shown.iter().filter(|shown| **shown).count();
        Ok(Task {
            h: labels.h() - &self.mean,
            shown,
            w: self.w.clone(),
            beta2: self.beta2.clone(),
            nu: self.nu.unwrap_or(NU * count as f64),
        })
    }

    pub fn keep(&mut self, task: Task) {
        self.w = task.w;
    }
}

impl Stream {
    /// From now on batches may have labels, of these classes or tags; the model must have been
    /// learnt with labels.
    pub fn teach(&mut self, names: Vec<String>, nu: Option<f64>) -> Result<()> {
        let classifier = self.model.classifier.as_ref().ok_or(Error::NoLabels)?;
        self.memory.taught = Some(Taught::new(classifier, names, nu));
        Ok(())
    }

    /// Fits the model's classifier anew, for the dictionaries as they stand, on labelled samples
    /// of any batches. W is that of the stream; labels that no sample has are left out.
    pub fn fit_read_out(
        &mut self,
        samples: Named,
        labels: &Labels,
        task: &TaskConfig,
        threads: usize,
    ) -> Result<()> {
        let data = self.data(samples)?;
        let plan = task.check(&data, labels, self.model.preset, self.model.seed)?;
        let taught = self.memory.taught.as_ref().ok_or(Error::NoLabels)?;
        let rows: Vec<usize> = labels
            .names()
            .iter()
            .filter_map(|name| taught.names.iter().position(|other| other == name))
            .collect();
        let w = taught.w.iter().map(|w| w.select(Axis(0), &rows)).collect();
        let (model, beta2) = (&self.model, &taught.beta2);
        let classifier =
            on_threads(threads, || fit_read_outs(model, &data, labels, &plan, vec![w], beta2))?;
        self.model.classifier = Some(classifier);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::config::Config;
    use crate::input::data::Data;
    use crate::input::task::Validation;
    use crate::learn::fit::{fit, fit_task};
    use crate::learn::stream_laws::{self, Scheduled, batch};
    use crate::model::Model;
    use crate::support::observe::Silent;
    use crate::support::synth::Truth;

    const NU: Option<f64> = Some(0.1);

    fn truth() -> Truth {
        stream_laws::truth(200, &[0.2, 0.1])
    }

    /// The sign of something that both modalities show; every seventh sample has no label.
    fn labels(truth: &Truth, rows: &[usize], but: &[usize]) -> Labels {
        let class = |&row: &usize| {
            let name = if truth.codes[0].row(row).sum() > 0.0 { "up" } else { "down" };
            (row % 7 != 0 && !but.contains(&row)).then(|| name.to_owned())
        };
        let given: Vec<Option<String>> = rows.iter().map(class).collect();
        Labels::among(names(), &given).unwrap()
    }

    fn names() -> Vec<String> {
        vec!["down".into(), "up".into()]
    }

    fn first() -> Vec<usize> {
        (0..100).collect()
    }

    fn model(truth: &Truth) -> Model {
        let data = Data::new(batch(truth, &first()), true).unwrap();
        let config = Config { max_iter: Some(100), ..Config::new(12) };
        let labels = labels(truth, &first(), &[]);
        fit_task(&data, &labels, &TaskConfig::default(), &config, &mut Silent).unwrap()
    }

    fn stream(model: &Model) -> Stream {
        let mut stream = Stream::new(model.clone(), true);
        stream.teach(names(), NU).unwrap();
        stream
    }

    fn w(stream: &Stream) -> &[Array2<f64>] {
        &stream.memory.taught.as_ref().unwrap().w
    }

    /// k batches once are one pass of the incremental schedule, and k more are the next.
    #[test]
    fn labelled_batches_are_the_incremental_schedule() {
        let (truth, all) = (truth(), (0..200).collect::<Vec<_>>());
        let mut stream = stream(&model(&truth));
        let whole = stream.data(batch(&truth, &all)).unwrap();
        let mut expected = Scheduled::new(&whole, &stream.model);
        let taught = stream.memory.taught.clone().unwrap();
        expected.em.task = Some(taught.task(&labels(&truth, &all, &[]), &[], None).unwrap());
        for (pass, k) in (0..2).flat_map(|pass| (0..4).map(move |k| (pass, k))) {
            let own = expected.samples(k);
            expected.step((pass, k), batch(&truth, &own), &stream);
            let (told, name) = (labels(&truth, &own, &[]), k.to_string());
            stream.step_with_labels(batch(&truth, &own), (&told, &[]), Some(&name), 1).unwrap();
            let em = &expected.em;
            for j in 0..2 {
                let d = (&stream.model.modalities[j].dictionary - &em.d[j]).mapv(f64::abs);
                let w = (&w(&stream)[j] - &em.task.as_ref().unwrap().w[j]).mapv(f64::abs);
                assert!(d.sum() < 1e-9, "pass {pass}, batch {k}: D is off by {}", d.sum());
                assert!(w.sum() < 1e-9, "pass {pass}, batch {k}: W is off by {}", w.sum());
            }
        }
        let moved = (&w(&stream)[0] - &taught.w[0]).mapv(f64::abs).sum();
        assert!(moved > 1e-3, "W has moved by {moved}");
    }

    #[test]
    fn labels_that_are_held_back_say_nothing() {
        let (truth, rows) = (truth(), (100..150).collect::<Vec<_>>());
        let mut held = stream(&model(&truth));
        let mut without = held.clone();
        let told = labels(&truth, &rows, &[]);
        held.step_with_labels(batch(&truth, &rows), (&told, &[3, 9]), None, 1).unwrap();
        let told = labels(&truth, &rows, &[103, 109]);
        without.step_with_labels(batch(&truth, &rows), (&told, &[]), None, 1).unwrap();
        assert_eq!(held.memory().unwrap(), without.memory().unwrap());
        let parts = Stream::from_parts(held.model.clone(), &held.memory().unwrap()).unwrap();
        assert_eq!(parts.memory().unwrap(), held.memory().unwrap());
    }

    /// On the samples of the fit, the read-out is the fit's.
    #[test]
    fn a_read_out_is_fitted_as_in_a_fit() {
        let truth = truth();
        let model = model(&truth);
        let mut stream = stream(&model);
        let told = labels(&truth, &first(), &[]);
        let task = TaskConfig::default();
        stream.fit_read_out(batch(&truth, &first()), &told, &task, 1).unwrap();
        let samples = || batch(&truth, &(100..200).collect::<Vec<_>>());
        let (old, new) = (model.predict(samples()).unwrap(), stream.model.predict(samples()));
        let off = (old.probability - new.unwrap().probability).mapv(f64::abs).sum();
        assert!(off < 1e-3, "{off}");
    }

    #[test]
    fn bad_labels_change_nothing() {
        let truth = truth();
        let data = Data::new(batch(&truth, &first()), true).unwrap();
        let config = Config { max_iter: Some(5), ..Config::new(12) };
        let plain = fit(&data, &config, &mut Silent).unwrap();
        let error = Stream::new(plain, true).teach(names(), NU);
        assert_eq!(error.unwrap_err().to_string(), "no sample has a label");
        let mut stream = stream(&model(&truth));
        let before = stream.memory().unwrap();
        let rows: Vec<usize> = (100..150).collect();
        let told = labels(&truth, &first(), &[]);
        let error = stream.step_with_labels(batch(&truth, &rows), (&told, &[]), None, 1);
        assert_eq!(error.unwrap_err().to_string(), "there are 100 labels for 50 samples");
        let other = Labels::classes(&[Some("up"), Some("left")].repeat(25)).unwrap();
        let error = stream.step_with_labels(batch(&truth, &rows), (&other, &[]), None, 1);
        assert_eq!(error.unwrap_err().to_string(), "labels must be among down, up, not left, up");
        let task = TaskConfig { validation: Validation::Rows(vec![7]), ..TaskConfig::default() };
        let told = labels(&truth, &first(), &[]);
        let error = stream.fit_read_out(batch(&truth, &first()), &told, &task, 1);
        assert!(error.unwrap_err().to_string().starts_with("validation-rows must be rows with"));
        assert_eq!(stream.memory().unwrap(), before);
    }
}
