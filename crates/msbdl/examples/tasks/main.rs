//! Measures classification on real data: `tasks FOLDER [TASK ...] [KEY=VALUE ...]`.
//!
//! FOLDER holds the npz files (docs/math.md names them); tasks whose file is not there are left
//! out, and said to be. Every figure stands beside the share of the largest class and logistic
//! regression on the same features (and ridge regression, for tags). At the end, the weakest
//! modality of every task is compared with what it is when learnt alone. Tasks: mfeat leaves
//! wikipedia tcga tweet tweet-subspace tweet-hierarchical flickr. Keys: seed, preset, atoms (of
//! the one-to-one tasks), beta0, alpha-beta, nu.

mod baseline;
mod data;

use std::path::Path;
use std::time::Instant;

use baseline::{logistic_regression, ridge_regression};
use data::{Shape, Task, Views};
use msbdl::{
    Config, Data, LabelKind, Model, PerModality, Prediction, Preset, ReadOut, Silent, TaskConfig,
    Validation, fit_task, score,
};
use ndarray::{Array2, Axis};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (keys, words): (Vec<String>, Vec<String>) =
        words.into_iter().partition(|word| word.contains('='));
    let [folder, wanted @ ..] = words.as_slice() else {
        return Err("usage: tasks FOLDER [TASK ...] [KEY=VALUE ...]".into());
    };
    let key = |name: &str| {
        keys.iter().find_map(|key| key.split_once('=').filter(|(k, _)| *k == name).map(|x| x.1))
    };
    let seed = key("seed").unwrap_or("0").parse()?;
    let preset = match key("preset") {
        None | Some("auto") => Preset::Auto,
        Some("paper") => Preset::Paper,
        Some("msbdl-1") => Preset::Msbdl1,
        Some("msbdl-2") => Preset::Msbdl2,
        Some("msbdl-3") => Preset::Msbdl3,
        Some("msbdl-4") => Preset::Msbdl4,
        Some(other) => return Err(format!("no preset '{other}'").into()),
    };
    let atoms = key("atoms").map(str::parse).transpose()?;
    let number = |name: &str| key(name).map(str::parse::<f64>).transpose();
    let settings = TaskConfig {
        beta0: number("beta0")?.map(PerModality::Same),
        alpha_beta: number("alpha-beta")?,
        nu: number("nu")?,
        ..TaskConfig::default()
    };
    let mut summary = Vec::new();
    for name in data::TASKS {
        if !wanted.is_empty() && !wanted.iter().any(|word| word == name) {
            continue;
        }
        let Some(rounds) = data::load(Path::new(folder), name, seed)? else {
            println!("{name}: its file is not in {folder}");
            continue;
        };
        let mut table = Table::default();
        for mut task in rounds {
            if let (Shape::OneToOne(given), Some(atoms)) = (&mut task.shape, atoms) {
                *given = atoms;
            }
            let config = |shape: &Shape| Config { preset, seed, threads: 1, ..shape.config() };
            measure(&task, &config, settings.clone(), &mut table)?;
        }
        table.print(name);
        summary.extend(table.weakest(name));
    }
    println!("weakest modality: its vote, its vote without the others, learnt alone");
    summary.iter().for_each(|line| println!("  {line}"));
    Ok(())
}

/// Figures by name, averaged over the rounds of a task.
#[derive(Default)]
struct Table(Vec<(String, Vec<f64>)>);

impl Table {
    fn add(&mut self, name: String, value: f64) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(value),
            None => self.0.push((name, vec![value])),
        }
    }

    fn print(&self, task: &str) {
        println!("{task}");
        for (name, _) in &self.0 {
            println!("  {name:44} {:.3}", self.mean(name).unwrap_or(f64::NAN));
        }
    }

    fn mean(&self, name: &str) -> Option<f64> {
        let (_, values) = self.0.iter().find(|(known, _)| known == name)?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }

    /// The last measure of "NAME learnt alone" beside the same of the joint model.
    fn weakest(&self, task: &str) -> Option<String> {
        let (last, _) = self.0.iter().rfind(|(name, _)| name.contains(" learnt alone: "))?;
        let (name, measure) = last.split_once(" learnt alone: ")?;
        let of = |what: String| self.mean(&format!("{what}: {measure}"));
        let (vote, only) = (of(format!("vote of {name}"))?, of(format!("{name} by itself"))?);
        let alone = self.mean(last)?;
        let better = if vote > alone { "better" } else { "not better" };
        let what = format!("{task}, {name} ({measure})");
        Some(format!("{what:36} {vote:.3} {only:.3} {alone:.3}  {better}"))
    }
}

fn measure(
    task: &Task,
    config: &dyn Fn(&Shape) -> Config,
    mut settings: TaskConfig,
    table: &mut Table,
) -> Outcome<()> {
    let data = Data::new(task.train.clone(), true)?;
    if let Some(rows) = &task.validation {
        settings.validation = Validation::Rows(rows.clone());
    }
    settings.balance = task.balance;
    let started = Instant::now();
    let model = fit_task(&data, &task.labels, &settings, &config(&task.shape), &mut Silent)?;
    table.add("seconds".into(), started.elapsed().as_secs_f64());
    table.add("seconds of EM".into(), model.history.last().map_or(0.0, |facts| facts.seconds));
    if task.labels.kind() == LabelKind::Classes {
        let shares = task.truth.h().mean_axis(Axis(0)).unwrap_or_default();
        table.add("largest class".into(), shares.fold(0.0, |a: f64, &b| a.max(b)));
    }
    let here: Vec<&str> = task.test.iter().map(|(name, _)| name.as_str()).collect();
    let sets = here.iter().map(|&name| (name, vec![name])).chain([("all", here.clone())]);
    for (what, names) in sets {
        let scores = logistic_regression(task, &names);
        judge(task, &scores, &format!("logistic regression, {what}"), table);
        if task.labels.kind() == LabelKind::Tags {
            let scores = ridge_regression(task, &names);
            judge(task, &scores, &format!("ridge regression, {what}"), table);
        }
    }
    let told = model.predict(task.test.clone())?;
    for vote in &told.votes {
        judge(task, &vote.probability, &format!("vote of {}", vote.modality), table);
    }
    judge(task, &told.probability, "fused", table);
    table.add("calibration error".into(), calibration_error(task, &told));
    let by = model.predict_by(task.test.clone(), Some(ReadOut::Projection), 0)?;
    for vote in &by.votes {
        judge(task, &vote.probability, &format!("W mu, {}", vote.modality), table);
    }
    judge(task, &by.probability, "W mu, fused", table);
    let classifier = model.classifier.as_ref().ok_or("no classifier")?;
    table.add("noise multiple".into(), classifier.logistic.noise);
    table.add(
        "beta^2, largest".into(),
        classifier.projection.beta2.iter().fold(0.0, |a: f64, &b| a.max(b)),
    );
    if here.len() > 2 {
        for name in &here {
            let told = model.predict(without(&task.test, name))?;
            judge(task, &told.probability, &format!("fused, {name} missing"), table);
        }
    }
    let name = task.weakest;
    let only = |views: &Views| -> Views {
        views.iter().filter(|(known, _)| known == name).cloned().collect()
    };
    let told = model.predict(only(&task.test))?;
    judge(task, &told.probability, &format!("{name} by itself"), table);
    let data = Data::new(only(&task.train), true)?;
    let config = config(&task.shape.of(name));
    let model: Model = fit_task(&data, &task.labels, &settings, &config, &mut Silent)?;
    let told = model.predict(only(&task.test))?;
    judge(task, &told.probability, &format!("{name} learnt alone"), table);
    Ok(())
}

fn without(views: &Views, name: &str) -> Views {
    views.iter().filter(|(known, _)| known != name).cloned().collect()
}

/// Adds what scores are worth under a name.
fn judge(task: &Task, scores: &Array2<f64>, name: &str, table: &mut Table) {
    let h = task.truth.h();
    match task.labels.kind() {
        LabelKind::Classes => {
            let places = |x: &Array2<f64>| -> Vec<usize> {
                x.rows().into_iter().map(|row| score::ranked(row)[0]).collect()
            };
            let found = score::classes(&places(h), &places(scores), h.ncols());
            table.add(format!("{name}: accuracy"), found.accuracy);
            if task.balance || task.name == "tcga" {
                table.add(format!("{name}: balanced"), found.balanced_accuracy);
            }
        }
        LabelKind::Tags => {
            let found = score::tags(h.view(), scores.view());
            table.add(format!("{name}: recall"), found.recall);
            table.add(format!("{name}: mAP"), found.mean_average_precision);
        }
    }
}

fn calibration_error(task: &Task, told: &Prediction) -> f64 {
    match task.labels.kind() {
        LabelKind::Classes => {
            let truth: Vec<usize> =
                (0..task.truth.n_samples()).filter_map(|i| task.truth.class(i)).collect();
            score::class_calibration_error(&told.probability, &truth)
        }
        LabelKind::Tags => {
            let right: Vec<bool> = task.truth.h().iter().map(|h| *h == 1.0).collect();
            let sure: Vec<f64> = told.probability.iter().copied().collect();
            score::calibration_error(&sure, &right)
        }
    }
}
