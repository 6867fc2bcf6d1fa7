//! Compares predictions with labels.

use msbdl::{Labels, score};
use ndarray::{Array2, Axis};
use serde::Serialize;

use crate::args::Score;
use crate::fail::{Fail, Result};
use crate::read::{self, Given, Samples};
use crate::show;

/// What the file of predictions says.
struct Told {
    ids: Option<Vec<String>>,
    labels: Vec<String>,
    names: Vec<String>,
    probability: Array2<f64>,
}

/// The JSON output; its names stay.
#[derive(Serialize)]
struct ClassReport {
    labels: Vec<String>,
    #[serde(flatten)]
    scores: score::ClassScores,
    calibration_error: f64,
}

#[derive(Serialize)]
struct TagReport {
    labels: Vec<String>,
    #[serde(flatten)]
    scores: score::TagScores,
    calibration_error: f64,
}

pub fn run(args: &Score) -> Result<()> {
    let path = args.predictions.display().to_string();
    let told = read_predictions(&path)?;
    let samples = Samples { count: told.labels.len(), ids: told.ids.as_deref() };
    let problem = |error: msbdl::Error| Fail::input(format!("{}: {error}", args.labels));
    match read::labels(&args.labels, samples)? {
        Given::Classes(given) => {
            let truth = Labels::among(told.names.clone(), &given).map_err(problem)?;
            classes(args, told, &truth)
        }
        Given::Tags { names, values } => {
            let other = names.iter().flatten().find(|name| !told.names.contains(name));
            if let Some(name) = other {
                return Err(Fail::input(format!(
                    "{}: tag '{name}' is not one of the labels {}",
                    args.labels,
                    told.names.join(", ")
                )));
            }
            let values = in_order(values, names.as_deref(), &told.names);
            if values.ncols() != told.names.len() {
                return Err(Fail::input(format!(
                    "{}: there are {} tags, but {path} has {}",
                    args.labels,
                    values.ncols(),
                    told.names.len()
                )));
            }
            let truth = Labels::tags(Some(told.names.clone()), values).map_err(problem)?;
            tags(args, told, &truth)
        }
    }
}

/// Columns in the order of the predictions, where tags have names.
fn in_order(values: Array2<f64>, names: Option<&[String]>, wanted: &[String]) -> Array2<f64> {
    let places = |names: &[String]| -> Option<Vec<usize>> {
        wanted.iter().map(|name| names.iter().position(|known| known == name)).collect()
    };
    match names.and_then(places) {
        Some(places) => values.select(Axis(1), &places),
        None => values,
    }
}

fn classes(args: &Score, told: Told, truth: &Labels) -> Result<()> {
    let place = |label: &str| told.names.iter().position(|name| name == label);
    let (mut known, mut answers) = (Vec::new(), Vec::new());
    for (row, label) in told.labels.iter().enumerate() {
        // No answer where a sample lacks the modality that was asked for.
        if !truth.known()[row] || label.is_empty() {
            continue;
        }
        // Of several labels the most probable one is first.
        let first = label.split(';').next().unwrap_or_default();
        let answer = place(label).or_else(|| place(first)).ok_or_else(|| {
            let path = args.predictions.display();
            Fail::input(format!("{path}: row {row}: no column has the probability of '{label}'"))
        })?;
        known.push(row);
        answers.push(answer);
    }
    let right: Vec<usize> = known.iter().filter_map(|&i| truth.class(i)).collect();
    let probability = told.probability.select(Axis(0), &known);
    let report = ClassReport {
        calibration_error: score::class_calibration_error(&probability, &right),
        scores: score::classes(&right, &answers, told.names.len()),
        labels: told.names,
    };
    if args.json {
        return show::json(&report);
    }
    let scores = &report.scores;
    let mut head = vec!["true \\ predicted"];
    head.extend(report.labels.iter().map(String::as_str));
    let rows = report.labels.iter().zip(&scores.confusion).map(|(name, row)| {
        let counts = row.iter().map(ToString::to_string);
        std::iter::once(name.clone()).chain(counts).collect()
    });
    show::print(&format!(
        "samples            {}\naccuracy           {:.4}\nbalanced accuracy  {:.4}\n\
         macro F1           {:.4}\ncalibration error  {:.4}\n\n{}",
        scores.n_samples,
        scores.accuracy,
        scores.balanced_accuracy,
        scores.macro_f1,
        report.calibration_error,
        show::table(&head, rows)
    ))
}

fn tags(args: &Score, told: Told, truth: &Labels) -> Result<()> {
    let known: Vec<usize> = (0..told.labels.len())
        .filter(|&i| truth.known()[i] && told.probability.row(i).iter().all(|p| !p.is_nan()))
        .collect();
    let h = truth.h().select(Axis(0), &known);
    let probability = told.probability.select(Axis(0), &known);
    let right: Vec<bool> = h.iter().map(|h| *h == 1.0).collect();
    let sure: Vec<f64> = probability.iter().copied().collect();
    let report = TagReport {
        calibration_error: score::calibration_error(&sure, &right),
        scores: score::tags(h.view(), probability.view()),
        labels: told.names,
    };
    if args.json {
        return show::json(&report);
    }
    show::print(&format!(
        "samples                 {}\nrecall at k             {:.4}\n\
         mean average precision  {:.4}\ncalibration error       {:.4}\n",
        report.scores.n_samples,
        report.scores.recall,
        report.scores.mean_average_precision,
        report.calibration_error
    ))
}

/// Reads what `msbdl predict` wrote.
fn read_predictions(path: &str) -> Result<Told> {
    let bad = |problem: String| Fail::input(format!("{path}: {problem}"));
    let file = std::fs::File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => bad("no such file".into()),
        _ => bad(format!("cannot be read: {error}")),
    })?;
    let mut reader = csv::Reader::from_reader(file);
    let foreign = || bad("not a csv file of 'msbdl predict'".into());
    let head = reader.headers().map_err(|_| foreign())?.clone();
    let first = head.get(0).unwrap_or_default().to_owned();
    if !["row", "id"].contains(&first.as_str()) || head.get(1) != Some("label") {
        return Err(foreign());
    }
    let columns: Vec<usize> = (2..head.len()).filter(|&k| head[k].starts_with("p.")).collect();
    let names: Vec<String> = columns.iter().map(|&k| head[k][2..].to_owned()).collect();
    let (mut ids, mut labels, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for record in reader.records() {
        let record = record.map_err(|error| bad(error.to_string()))?;
        ids.push(record[0].to_owned());
        labels.push(record[1].to_owned());
        for &k in &columns {
            let value = match &record[k] {
                "" => f64::NAN,
                text => text.parse().map_err(|_| bad(format!("'{text}' is not a probability")))?,
            };
            values.push(value);
        }
    }
    let probability = Array2::from_shape_vec((labels.len(), names.len()), values);
    let probability = probability.map_err(|error| bad(error.to_string()))?;
    Ok(Told { ids: (first == "id").then_some(ids), labels, names, probability })
}
