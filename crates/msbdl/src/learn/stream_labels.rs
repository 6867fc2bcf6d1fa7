//! Lets labels take part in learning from batches, and fits read-outs for what has been learnt.

use ndarray::{Array2, Axis};

use super::fit::on_threads;
use super::kept::{Drawn, Kept, Told};
use super::read_out::fit_read_outs;
use super::stats::Stats;
use super::stream::{Named, Stream};
use super::task::Task;
use crate::input::labels::Labels;
use crate::input::task::{NU, TaskConfig, Validation};
use crate::model::classifier::Classifier;
use crate::model::memory::Taught;
use crate::support::error::{Error, Result};

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
            kept: None,
        }
    }

    /// The labels of a batch but those of the rows held back, to be learnt after `others`.
    pub fn task(&self, labels: &Labels, held: &[usize], others: Option<&Stats>) -> Result<Task> {
        self.check(labels)?;
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
            takes_part: true,
        })
    }

    fn check(&self, labels: &Labels) -> Result<()> {
        if labels.names() == self.names {
            return Ok(());
        }
        let expected = format!("among {}", self.names.join(", "));
        Err(Error::Setting { option: "labels", expected, found: labels.names().join(", ") })
    }

    /// Takes over what a step has learnt, and what was drawn of the batch's samples.
    pub fn keep(&mut self, task: Option<Task>, name: Option<&str>, new: Option<(Told, Drawn)>) {
        if let Some(task) = task {
            self.w = task.w;
        }
        let Some(kept) = &mut self.kept else { return };
        let held = new.as_ref().map_or(Vec::new(), |((_, held), _)| held.to_vec());
        if let Some(name) = name {
            kept.blocks.entry(name.to_owned()).or_insert(held);
        }
        if let Some(((labels, _), drawn)) = new {
            kept.take(drawn, labels);
        }
    }
}

impl Stream {
    /// From now on batches may have labels, of these classes or tags; the model must have been
    /// learnt with labels. The samples that have one are kept for [`Stream::fit_read_out`].
    pub fn teach(&mut self, names: Vec<String>, nu: Option<f64>) -> Result<()> {
        let classifier = self.model.classifier.as_ref().ok_or(Error::NoLabels)?;
        let mut taught = Taught::new(classifier, names, nu);
        taught.kept = Some(Kept::new(classifier.kind, taught.names.len(), self.n_features()));
        self.memory_mut()?.taught = Some(taught);
        Ok(())
    }

    /// Keeps the labelled samples of the fit that the stream goes on from.
    pub fn keep(&mut self, batch: &Named, told: (&Labels, &[usize])) -> Result<()> {
        let (labels, widths) = (told.0, self.n_features());
        // Checked, and then taken as it is.
        let expected = self.data(batch.clone())?.n_samples();
        if labels.n_samples() != expected {
            return Err(Error::LabelCount { found: labels.n_samples(), expected });
        }
        let taught = self.memory_mut()?.taught.as_mut().ok_or(Error::NoLabels)?;
        taught.check(labels)?;
        taught.kept = Some(Kept::new(labels.kind(), taught.names.len(), widths));
        let drawn = self.draw(batch, told, None);
        if let Some(taught) = &mut self.memory_mut()?.taught {
            taught.keep(None, None, Some(told).zip(drawn));
        }
        Ok(())
    }

    /// The classes or tags that batches may have; none before [`Stream::teach`].
    pub fn labels(&self) -> Option<&[String]> {
        Some(&self.memory().ok()?.taught.as_ref()?.names)
    }

    /// Rows of a batch whose labels shall be held back: of every class the same share, evenly
    /// spread over all batches; those of before if the batch comes again.
    pub fn hold(&self, labels: &Labels, share: f64, name: Option<&str>) -> Result<Vec<usize>> {
        let taught = self.memory()?.taught.as_ref().ok_or(Error::NoLabels)?;
        taught.check(labels)?;
        let kept = taught.kept.as_ref().ok_or(Error::NoSamples)?;
        let earlier = name.and_then(|name| kept.blocks.get(name)).cloned();
        Ok(earlier.unwrap_or_else(|| kept.hold(labels, share)))
    }

    /// The same for a batch that is fitted before there is a stream.
    pub fn hold_first(labels: &Labels, share: f64) -> Vec<usize> {
        Kept::new(labels.kind(), labels.names().len(), Vec::new()).hold(labels, share)
    }

    /// Fits the model's classifier anew, for the dictionaries as they stand, on the labelled
    /// samples that were kept. W is that of the stream; classes that none of them has are left out.
    pub fn fit_read_out(&mut self, task: &TaskConfig, threads: usize) -> Result<()> {
        let taught = self.memory()?.taught.as_ref().ok_or(Error::NoLabels)?;
        let kept = taught.kept.as_ref().ok_or(Error::NoSamples)?;
        let (labels, rows) = kept.labels(&taught.names)?;
        let parts = self.model.modalities.iter().zip(&kept.samples);
        let data = self
            .data(parts.map(|(part, y)| (part.name.clone(), y.select(Axis(0), &rows))).collect())?;
        let held = (0..rows.len()).filter(|&place| !kept.shown[rows[place]]).collect();
        let task = TaskConfig { validation: Validation::Rows(held), ..task.clone() };
        let plan = task.check(&data, &labels, self.model.preset, self.model.seed)?;
        let known = labels.names().iter();
        let known: Vec<usize> =
            known.filter_map(|name| taught.names.iter().position(|other| other == name)).collect();
        let w = taught.w.iter().map(|w| w.select(Axis(0), &known)).collect();
        let (model, beta2) = (&self.model, &taught.beta2);
        let classifier =
            on_threads(threads, || fit_read_outs(model, &data, &labels, &plan, vec![w], beta2))?;
        self.model.classifier = Some(classifier);
        Ok(())
    }

    /// What to keep of a batch that comes for the first time; nothing if it is not as it should be.
    pub(super) fn draw(&self, batch: &Named, told: Told, name: Option<&str>) -> Option<Drawn> {
        let kept = self.memory().ok()?.taught.as_ref()?.kept.as_ref()?;
        let known = name.is_some_and(|name| kept.blocks.contains_key(name));
        let complete = batch.iter().all(|(_, y)| y.nrows() == told.0.n_samples());
        let names: Vec<&str> = self.model.modalities.iter().map(|x| x.name.as_str()).collect();
        (complete && !known).then(|| kept.draw(batch, &names, told, self.model.seed))
    }

    fn n_features(&self) -> Vec<usize> {
        self.model.modalities.iter().map(|part| part.mean.len()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::config::Config;
    use crate::input::data::Data;
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
        &stream.memory().unwrap().taught.as_ref().unwrap().w
    }

    /// k batches once are one pass of the incremental schedule, and k more are the next.
    #[test]
    fn labelled_batches_are_the_incremental_schedule() {
        let (truth, all) = (truth(), (0..200).collect::<Vec<_>>());
        let mut stream = stream(&model(&truth));
        let whole = stream.data(batch(&truth, &all)).unwrap();
        let mut expected = Scheduled::new(&whole, stream.model());
        let taught = stream.memory().unwrap().taught.clone().unwrap();
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
        let learnt = |stream: Stream| stream.into_model().without_samples().to_bytes();
        assert_eq!(learnt(held), learnt(without));
    }

    /// From a file learning goes on with the same bits, labels, samples and read-outs included.
    #[test]
    fn files_make_the_same_stream_with_labels() {
        let truth = truth();
        let model = model(&truth);
        let mut fitted = Stream::resume(model.clone()).unwrap();
        fitted.keep(&batch(&truth, &first()), (&labels(&truth, &first(), &[]), &[1, 8])).unwrap();
        for mut stream in [fitted, stream(&model)] {
            for (start, name) in [(100, Some("a")), (150, None), (100, Some("a"))] {
                let bytes = stream.model().to_bytes().unwrap();
                let mut copy = Stream::resume(Model::from_bytes(&bytes).unwrap()).unwrap();
                let rows: Vec<usize> = (start..start + 50).collect();
                let told = labels(&truth, &rows, &[]);
                for each in [&mut stream, &mut copy] {
                    let held = each.hold(&told, 0.2, name).unwrap();
                    assert!((7..=9).contains(&held.len()));
                    each.step_with_labels(batch(&truth, &rows), (&told, &held), name, 1).unwrap();
                    each.fit_read_out(&TaskConfig::default(), 1).unwrap();
                }
                assert_eq!(stream.model().to_bytes(), copy.model().to_bytes());
            }
        }
    }

    /// After a fit, the sums of labels and W are its own.
    #[test]
    fn a_fit_keeps_what_labels_say() {
        let truth = truth();
        let model = model(&truth);
        let memory = model.memory.as_ref().unwrap();
        let taught = memory.taught.as_ref().unwrap();
        let task = TaskConfig::default();
        let told = labels(&truth, &first(), &[]);
        let held = task.held_rows(&told, model.seed).unwrap();
        let shown = (0..100).filter(|row| told.known()[*row] && !held.contains(row)).count();
        for (j, stats) in memory.past.as_ref().unwrap().modalities.iter().enumerate() {
            let sums = stats.labels.as_ref().unwrap();
            assert!(sums.count > 0 && sums.count <= shown);
            // The fit has settled, so W is what its own sums say to within a few per cent.
            let mut c = sums.c.clone();
            c.diag_mut().mapv_inplace(|x| x + super::NU * shown as f64);
            let w = crate::support::linalg::right_divide(sums.hmu.clone(), c.view()).unwrap();
            let off = (&w - &taught.w[j]).mapv(|x| x * x).sum().sqrt();
            let size = w.mapv(|x| x * x).sum().sqrt();
            assert!(off < 0.05 * size, "{off} of {size}");
        }
        let mut stream = Stream::resume(model).unwrap();
        assert_eq!(stream.labels().unwrap(), names());
        let rows: Vec<usize> = (100..150).collect();
        let told = labels(&truth, &rows, &[]);
        let error = stream.hold(&told, 0.2, None).unwrap_err().to_string();
        assert!(error.starts_with("the model has no labelled samples"), "{error}");
        stream.step_with_labels(batch(&truth, &rows), (&told, &[]), None, 1).unwrap();
        let error = stream.fit_read_out(&task, 1).unwrap_err().to_string();
        assert!(error.starts_with("the model has no labelled samples"), "{error}");
    }

    /// On the samples of the fit, the read-out is the fit's.
    #[test]
    fn a_read_out_is_fitted_as_in_a_fit() {
        let truth = truth();
        let model = model(&truth);
        let mut stream = stream(&model);
        let told = labels(&truth, &first(), &[]);
        let task = TaskConfig::default();
        let held = task.held_rows(&told, model.seed).unwrap();
        stream.keep(&batch(&truth, &first()), (&told, &held)).unwrap();
        stream.fit_read_out(&task, 1).unwrap();
        let samples = || batch(&truth, &(100..200).collect::<Vec<_>>());
        let (old, new) = (model.predict(samples()).unwrap(), stream.model().predict(samples()));
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
        let before = stream.model().to_bytes();
        let rows: Vec<usize> = (100..150).collect();
        let told = labels(&truth, &first(), &[]);
        let error = stream.step_with_labels(batch(&truth, &rows), (&told, &[]), None, 1);
        assert_eq!(error.unwrap_err().to_string(), "there are 100 labels for 50 samples");
        let other = Labels::classes(&[Some("up"), Some("left")].repeat(25)).unwrap();
        let error = stream.step_with_labels(batch(&truth, &rows), (&other, &[]), None, 1);
        assert_eq!(error.unwrap_err().to_string(), "labels must be among down, up, not left, up");
        assert!(stream.hold(&other, 0.2, None).is_err());
        assert!(stream.keep(&batch(&truth, &rows), (&other, &[])).is_err());
        let error = stream.fit_read_out(&TaskConfig::default(), 1);
        assert_eq!(error.unwrap_err().to_string(), "no sample has a label");
        let error = stream.keep(&batch(&truth, &rows), (&told, &[]));
        assert_eq!(error.unwrap_err().to_string(), "there are 100 labels for 50 samples");
        assert_eq!(stream.model().to_bytes(), before);
    }
}
