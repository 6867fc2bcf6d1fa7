//! Predicts labels of samples from files with a model.

use std::io::Write;
use std::path::Path;

use msbdl::{LabelKind, Prediction};
use ndarray::Array2;
use serde::Serialize;

use crate::args::Predict;
use crate::encode::{check_known, load};
use crate::fail::{Fail, Result};
use crate::input::Files;
use crate::{settings, show, write};

/// The JSON output; its names stay.
#[derive(Serialize)]
struct Report {
    predictions: String,
    model: String,
    n_samples: usize,
    /// Samples by their most probable label.
    counts: Vec<(String, usize)>,
}

pub fn run(args: &Predict) -> Result<()> {
    let common = &args.common;
    let files = Files::parse(&args.modality)?;
    let kind = args.out.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
    let kind = kind.to_ascii_lowercase();
    match kind.as_str() {
        "csv" | "npy" => write::check_file(&args.out, &kind)?,
        _ => {
            let shown = args.out.display();
            return Err(Fail::input(format!(
                "--out: the name must end in .csv or .npy, not {shown}"
            )));
        }
    }
    let top = args.top.as_deref().map(|text| settings::whole("--top", 1, text)).transpose()?;
    let model = load(&args.model)?;
    let Some(classifier) = &model.classifier else {
        return Err(Fail::input(format!(
            "{}: the model has no classifier: it was learnt without labels (see 'fit --labels')",
            args.model.display()
        )));
    };
    check_known(&files, &model, &args.out)?;
    if let Some(name) = &args.modality_only
        && !files.each().any(|(known, _)| known == name)
    {
        let problem = format!("--modality-only: '{name}' is not among the modalities given");
        return Err(Fail::input(problem));
    }
    if let Some(top) = top.filter(|top| *top > classifier.names.len()) {
        let most = classifier.names.len();
        return Err(Fail::input(format!(
            "--top must be at most the number of labels, {most}, not {top}"
        )));
    }
    let samples = files.read(common.ids)?;
    let note = samples.note();
    let predicted = model.predict(samples.tables);
    let told = predicted.map_err(|error| files.explain(&error, &samples.names))?;
    let probability = chosen(&told, args.modality_only.as_deref());

    if let Some(note) = note.filter(|_| !common.quiet) {
        eprintln!("{note}");
    }
    let answers = answers(&told, probability, top);
    match kind.as_str() {
        "csv" => {
            let ids = samples.names.ids.as_deref();
            save_csv(&told, probability, &answers, ids, &args.out)?;
        }
        _ => save_npy(&told, &answers, &args.out)?,
    }

    let count = |c: usize| answers.iter().filter(|answer| answer.contains(&c)).count();
    let report = Report {
        predictions: args.out.display().to_string(),
        model: args.model.display().to_string(),
        n_samples: answers.len(),
        counts: told.names.iter().enumerate().map(|(c, name)| (name.clone(), count(c))).collect(),
    };
    match (common.json, common.quiet) {
        (true, _) => show::json(&report),
        (false, false) => show::print(&report.text()),
        (false, true) => Ok(()),
    }
}

/// The probabilities that count: of all modalities, or one's own.
fn chosen<'a>(told: &'a Prediction, only: Option<&str>) -> &'a Array2<f64> {
    let vote = told.votes.iter().find(|vote| Some(vote.modality.as_str()) == only);
    vote.map_or(&told.probability, |vote| &vote.probability)
}

/// The labels of each sample: the most probable class or `top` labels; of tags those that are
/// more probable than not. None where a sample lacks the modality that was asked for.
fn answers(told: &Prediction, probability: &Array2<f64>, top: Option<usize>) -> Vec<Vec<usize>> {
    let rows = probability.rows().into_iter();
    rows.map(|row| {
        if row.iter().any(|p| p.is_nan()) {
            return Vec::new();
        }
        let ranked = msbdl::score::ranked(row);
        match (told.kind, top) {
            (_, Some(top)) => ranked[..top].to_vec(),
            (LabelKind::Classes, None) => ranked[..1].to_vec(),
            (LabelKind::Tags, None) => ranked.into_iter().filter(|&c| row[c] > 0.5).collect(),
        }
    })
    .collect()
}

/// row or id, label, the probability of every label, and each modality's own answer.
fn save_csv(
    told: &Prediction,
    probability: &Array2<f64>,
    answers: &[Vec<usize>],
    ids: Option<&[String]>,
    path: &Path,
) -> Result<()> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    let mut head = vec![if ids.is_some() { "id" } else { "row" }.to_owned(), "label".to_owned()];
    head.extend(told.names.iter().map(|name| format!("p.{name}")));
    head.extend(told.votes.iter().map(|vote| format!("vote.{}", vote.modality)));
    csv.write_record(&head).map_err(Fail::run)?;
    let named = |answer: &[usize]| {
        answer.iter().map(|&c| told.names[c].as_str()).collect::<Vec<_>>().join(";")
    };
    let votes: Vec<Vec<Vec<usize>>> =
        told.votes.iter().map(|vote| self::answers(told, &vote.probability, None)).collect();
    for (row, answer) in answers.iter().enumerate() {
        let id = ids.map_or(row.to_string(), |ids| ids[row].clone());
        let mut cells = vec![id, named(answer)];
        cells.extend(probability.row(row).iter().map(|p| match p.is_nan() {
            true => String::new(),
            false => format!("{p:.6}"),
        }));
        cells.extend(votes.iter().map(|vote| named(&vote[row])));
        csv.write_record(&cells).map_err(Fail::run)?;
    }
    let bytes = csv.into_inner().map_err(Fail::run)?;
    write::beside(path, |file| file.write_all(&bytes))?.place()
}

/// The labels alone: numbers if all are, else text; of tags, or of several labels, a 0/1 matrix.
fn save_npy(told: &Prediction, answers: &[Vec<usize>], path: &Path) -> Result<()> {
    let single = told.kind == LabelKind::Classes && answers.iter().all(|answer| answer.len() == 1);
    if !single {
        let mut matrix = Array2::zeros((answers.len(), told.names.len()));
        for (mut row, answer) in matrix.rows_mut().into_iter().zip(answers) {
            answer.iter().for_each(|&c| row[c] = 1.0);
        }
        return write::npy(path, &matrix)?.place();
    }
    let labels = answers.iter().map(|answer| told.names[answer[0]].as_str());
    let numbers: Option<Vec<i64>> = labels.clone().map(|label| label.parse().ok()).collect();
    match numbers {
        Some(numbers) => write::npy_numbers(path, &numbers)?.place(),
        None => {
            let texts: Vec<String> = labels.map(str::to_owned).collect();
            write::npy_texts(path, &texts)?.place()
        }
    }
}

impl Report {
    fn text(&self) -> String {
        let rows = self.counts.iter().map(|(name, count)| vec![name.clone(), count.to_string()]);
        format!(
            "{}\nsamples      {}\npredictions  {}\n",
            show::table(&["label", "predicted"], rows),
            self.n_samples,
            self.predictions
        )
    }
}
