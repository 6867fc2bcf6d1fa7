//! Prints what is in a model, as text or as JSON.

use std::collections::BTreeMap;
use std::io::{self, Write, stdout};
use std::path::Path;
use std::time::Duration;

use msbdl::{Classifier, Groups, LabelKind, Model, PriorKind, ReadOut, StopReason};
use serde::Serialize;

use crate::choices;
use crate::fail::{Fail, Result};

/// A model in a few numbers. The names are those of the JSON output: they stay.
#[derive(Serialize)]
pub struct Report {
    model: String,
    preset: String,
    prior: String,
    seed: u64,
    n_samples: usize,
    /// Of the root, if dictionaries have different sizes.
    n_atoms: usize,
    /// Atoms that at least one training sample uses.
    atoms_used: usize,
    atoms_per_sample: f64,
    converged: bool,
    stop_reason: StopReason,
    iterations: usize,
    /// Passes over all samples.
    e_steps: f64,
    /// How long the fit took; models do not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    modalities: Vec<ModalityReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    classifier: Option<ClassifierReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branches: Option<BranchReport>,
}

/// How labels are told.
#[derive(Serialize)]
struct ClassifierReport {
    kind: LabelKind,
    labels: Vec<String>,
    read_out: ReadOut,
    /// Samples whose labels were held back, and how they were told.
    n_validation: usize,
    accuracy: Option<f64>,
    calibration_error: Option<f64>,
}

impl ClassifierReport {
    fn new(classifier: &Classifier) -> Self {
        let report = classifier.validation.as_ref();
        let chosen = report.map(|report| match classifier.read_out {
            ReadOut::Projection => &report.projection,
            ReadOut::Logistic => &report.logistic,
        });
        ClassifierReport {
            kind: classifier.kind,
            labels: classifier.names.clone(),
            read_out: classifier.read_out,
            n_validation: report.map_or(0, |report| report.n_samples),
            accuracy: chosen.map(|report| report.accuracy),
            calibration_error: chosen.map(|report| report.calibration_error),
        }
    }

    fn text(&self) -> String {
        let (count, what) = (
            self.labels.len(),
            match self.kind {
                LabelKind::Classes => "classes",
                LabelKind::Tags => "tags",
            },
        );
        let judged = match (self.accuracy, self.calibration_error) {
            (Some(accuracy), Some(error)) => format!(
                "; {} right of {} held back, calibration error {error:.3}",
                percent(accuracy),
                self.n_validation
            ),
            _ => String::new(),
        };
        let how = match self.read_out {
            ReadOut::Projection => "W mu",
            ReadOut::Logistic => "logistic regression",
        };
        format!("labels   {count} {what}, told by {how}{judged}\n")
    }
}

/// What is known of the branches of a tree prior.
#[derive(Serialize)]
struct BranchReport {
    root: String,
    /// Branches whose atoms are identified.
    identified: usize,
    /// Branches of which only the subspaces are known.
    subspace_only: usize,
    groups: Groups,
    /// Per branch, whether its atoms are identified.
    atoms_identified: Vec<bool>,
}

impl BranchReport {
    fn new(model: &Model) -> Option<Self> {
        if model.prior == PriorKind::OneToOne {
            return None;
        }
        let identified = model.identified.iter().filter(|identified| **identified).count();
        Some(BranchReport {
            root: model.modalities[model.branches.root()].name.clone(),
            identified,
            subspace_only: model.n_branches() - identified,
            groups: model.groups(),
            atoms_identified: model.identified.clone(),
        })
    }

    /// How many branches have which number of atoms of each modality.
    fn text(&self, modalities: &[ModalityReport]) -> String {
        let mut text = format!("branches {}, rooted in {}\n", self.groups.len(), self.root);
        for modality in modalities.iter().filter(|modality| modality.name != self.root) {
            let mut sizes = BTreeMap::new();
            for branch in &self.groups {
                let size = branch.get(&modality.name).map_or(0, Vec::len);
                *sizes.entry(size).or_insert(0) += 1;
            }
            let sizes: Vec<String> =
                sizes.iter().map(|(size, count)| format!("{count} with {size}")).collect();
            text.push_str(&format!("         {}: {}\n", modality.name, sizes.join(", ")));
        }
        text.push_str(&format!(
            "         atoms identified in {}, subspace only in {}\n",
            self.identified, self.subspace_only
        ));
        text
    }
}

#[derive(Serialize)]
struct ModalityReport {
    name: String,
    n_features: usize,
    n_atoms: usize,
    /// Training samples that have it.
    n_samples: usize,
    /// Noise standard deviation, in the units of the data.
    sigma: f64,
    variance_explained: f64,
}

impl Report {
    pub fn new(model: &Model, path: &Path, took: Option<Duration>) -> Self {
        let last = model.history.last();
        let summary = &model.summary;
        let modalities = model.modalities.iter().map(|modality| {
            let seen = summary.modalities.iter().find(|seen| seen.name == modality.name);
            ModalityReport {
                name: modality.name.clone(),
                n_features: modality.dictionary.nrows(),
                n_atoms: modality.dictionary.ncols(),
                n_samples: seen.map_or(0, |seen| seen.n_samples),
                sigma: modality.sigma2.sqrt(),
                variance_explained: seen.map_or(f64::NAN, |seen| seen.variance_explained),
            }
        });
        Report {
            model: path.display().to_string(),
            preset: choices::name(choices::Preset::from(model.preset)),
            prior: choices::name(choices::Prior::from(model.prior)),
            seed: model.seed,
            n_samples: summary.n_samples,
            n_atoms: model.n_branches(),
            atoms_used: summary.atoms_used(),
            atoms_per_sample: summary.atoms_per_sample,
            converged: model.converged(),
            stop_reason: model.stop_reason,
            iterations: last.map_or(0, |facts| facts.iteration),
            e_steps: last.map_or(0.0, |facts| facts.e_steps),
            seconds: took.map(|took| took.as_secs_f64()),
            modalities: modalities.collect(),
            classifier: model.classifier.as_ref().map(ClassifierReport::new),
            branches: BranchReport::new(model),
        }
    }

    pub fn text(&self) -> String {
        let head =
            ["modality", "features", "atoms", "samples", "noise sigma", "variance explained"];
        let rows = self.modalities.iter().map(|modality| {
            vec![
                modality.name.clone(),
                modality.n_features.to_string(),
                modality.n_atoms.to_string(),
                modality.n_samples.to_string(),
                significant(modality.sigma),
                percent(modality.variance_explained),
            ]
        });
        let took = self.seconds.map_or(String::new(), |seconds| format!(", {seconds:.1} s"));
        format!(
            "{table}\n\
             samples  {n_samples}\n\
             {unit} {n_atoms}, {used} of them in use; {per_sample:.1} per sample on average\n\
             {branches}\
             {labels}\
             fit      {stop}\n\
             \x20        iterations {iterations}, E-steps {e_steps:.0}{took} \
             (preset {preset}, seed {seed})\n\
             model    {model}\n",
            table = table(&head, rows),
            n_samples = self.n_samples,
            unit = if self.branches.is_some() { "roots   " } else { "atoms   " },
            branches = self.branches.as_ref().map_or(String::new(), |x| x.text(&self.modalities)),
            n_atoms = self.n_atoms,
            used = self.atoms_used,
            per_sample = self.atoms_per_sample,
            labels = self.classifier.as_ref().map_or(String::new(), ClassifierReport::text),
            stop = stop(self.stop_reason),
            iterations = self.iterations,
            e_steps = self.e_steps,
            preset = self.preset,
            seed = self.seed,
            model = self.model,
        )
    }
}

fn stop(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Converged => "converged: the noise of every modality has settled",
        StopReason::NotSettled => {
            "not-settled: all rounds were used, but the noise of some modality was still changing"
        }
        StopReason::MaxIterations => "max-iterations: ended before the procedure was complete",
        StopReason::Validated => "validated: the labels held back gained nothing any more",
        StopReason::Interrupted => "interrupted: the model is what was learnt so far",
    }
}

/// Lines up columns: the first to the left, numbers to the right.
pub fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let head = head.iter().map(|&title| title.to_owned()).collect();
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut text = String::new();
    for line in &lines {
        for (column, cell) in line.iter().enumerate() {
            let width = width(column);
            match column {
                0 => text.push_str(&format!("{cell:width$}")),
                _ => text.push_str(&format!("  {cell:>width$}")),
            }
        }
        text.push('\n');
    }
    text
}

/// Four significant digits.
pub fn significant(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return x.to_string();
    }
    let magnitude = x.abs().log10().floor();
    match (-4.0..6.0).contains(&magnitude) {
        true => format!("{x:.*}", (3.0 - magnitude).max(0.0) as usize),
        false => format!("{x:.3e}"),
    }
}

pub fn percent(share: f64) -> String {
    match share.is_finite() {
        // Adding nought makes -0.0 read as 0.0.
        true => format!("{:.1} %", (1000.0 * share).round() / 10.0 + 0.0),
        false => "-".to_owned(),
    }
}

pub fn json(value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(Fail::run)?;
    print(&format!("{text}\n"))
}

/// Prints to stdout; a reader that has seen enough is no error.
pub fn print(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Fail::run(format!("stdout: {error}")))
        }
        _ => Ok(()),
    }
}
