//! Learns with labels as a user would: classes and tags, from whatever modalities there are.

mod common;

use common::{assert_close, check_golden, rng};
use msbdl::{
    Config, Data, Facts, LabelKind, Labels, Model, PerModality, Prediction, Preset, PriorKind,
    ReadOut, Schedule, Silent, TaskConfig, Validation, fit_task, score,
};
use ndarray::{Array2, Axis, s};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::StandardNormal;

type Views = Vec<(String, Array2<f64>)>;
const PRESETS: [Preset; 6] =
    [Preset::Auto, Preset::Paper, Preset::Msbdl1, Preset::Msbdl2, Preset::Msbdl3, Preset::Msbdl4];

/// Three classes, each a place in two views; the second view is the noisier one.
fn blobs(seed: u64, l: usize) -> (Views, Vec<usize>) {
    // The places are the same whatever the seed.
    let mut places = rng(1);
    let mut random = rng(seed + 100);
    let classes: Vec<usize> = (0..l).map(|i| i % 3).collect();
    let views = [("clear", 6, 0.35), ("noisy", 5, 1.8)].into_iter().map(|(name, n, noise)| {
        let centres = common::matrix(&mut places, 3, n) * 2.0;
        let y = Array2::from_shape_fn((l, n), |(i, k)| {
            centres[[classes[i], k]] + noise * random.sample::<f64, _>(StandardNormal)
        });
        (name.to_owned(), y)
    });
    (views.collect(), classes)
}

fn some<T: Copy>(values: &[T]) -> Vec<Option<T>> {
    values.iter().map(|x| Some(*x)).collect()
}

fn learn(views: &Views, labels: &Labels, task: &TaskConfig, config: &Config) -> Model {
    fit_task(&Data::new(views.clone(), true).unwrap(), labels, task, config, &mut Silent).unwrap()
}

fn quick() -> Config {
    Config { max_iter: Some(250), ..Config::new(6) }
}

fn learnt() -> Model {
    let (views, classes) = blobs(0, 180);
    learn(&views, &Labels::classes(&some(&classes)).unwrap(), &TaskConfig::default(), &quick())
}

fn accuracy(truth: &[usize], probability: &Array2<f64>) -> f64 {
    let best: Vec<usize> =
        probability.rows().into_iter().map(|row| score::ranked(row)[0]).collect();
    score::classes(truth, &best, 3).accuracy
}

#[test]
fn classes_are_told() {
    let model = learnt();
    let (test, truth) = blobs(1, 150);
    let told = model.predict(test.clone()).unwrap();
    let fused = accuracy(&truth, &told.probability);
    assert!(fused > 0.95, "{fused}");
    let alone = model.predict(vec![test[1].clone()]).unwrap();
    let alone = accuracy(&truth, &alone.probability);
    assert!((0.6..fused).contains(&alone), "{alone} by the noisy view alone");
    let report = model.classifier.as_ref().unwrap().validation.clone().unwrap();
    assert_eq!(report.n_samples, 36);
    assert!(report.logistic.accuracy > 0.9 && report.logistic.calibration_error < 0.15);
    assert!(report.logistic.log_loss < 0.4, "{report:?}");
}

#[test]
fn probabilities_sum_to_one_and_votes_are_there() {
    let model = learnt();
    let (mut test, _) = blobs(2, 30);
    test[0].1.row_mut(4).fill(f64::NAN);
    for read_out in [ReadOut::Logistic, ReadOut::Projection] {
        let told = model.predict_by(test.clone(), Some(read_out), 1).unwrap();
        assert_eq!(told.names, ["0", "1", "2"]);
        for row in told.probability.rows() {
            assert_close(row.sum(), 1.0, 1e-12, "sum of probabilities");
        }
        assert!(told.votes[0].probability.row(4).iter().all(|p| p.is_nan()));
        let one = told.votes[1].probability.row(4);
        assert_eq!(told.votes[1].modality, "noisy");
        for (fused, vote) in told.probability.row(4).iter().zip(one) {
            assert_close(*fused, *vote, 1e-12, "fused of one modality");
        }
        assert_eq!(told.top(2)[0].len(), 2);
        assert_eq!(told.top(1)[3], [told.best()[3]]);
    }
}

/// Every prior learns with labels, and its classifier survives the file.
#[test]
fn trees_tell_classes_too() {
    let (views, classes) = blobs(0, 180);
    let labels = Labels::classes(&some(&classes)).unwrap();
    let (test, truth) = blobs(1, 150);
    for prior in [PriorKind::AtomToSubspace, PriorKind::Hierarchical, PriorKind::Tree] {
        for preset in [Preset::Auto, Preset::Paper] {
            let atoms = vec![("clear".to_owned(), 4), ("noisy".to_owned(), 6)];
            let config = Config {
                prior,
                preset,
                n_atoms: PerModality::ByName(atoms),
                root: Some("clear".to_owned()),
                max_iter: (preset == Preset::Paper).then_some(150),
                ..Config::new(4)
            };
            let model = learn(&views, &labels, &TaskConfig::default(), &config);
            let widths = model.classifier.as_ref().unwrap().projection.weights.iter();
            let widths: Vec<usize> = widths.map(|w| w.ncols()).collect();
            let atoms = model.modalities.iter().map(|x| x.dictionary.ncols());
            assert_eq!(widths, atoms.collect::<Vec<_>>());
            let told = model.predict(test.clone()).unwrap();
            let fused = accuracy(&truth, &told.probability);
            assert!(fused > 0.93, "{prior:?} {preset:?}: {fused}");
            let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
            assert_eq!(again.predict(test.clone()).unwrap().probability, told.probability);
            let one = model.predict(vec![test[1].clone()]).unwrap();
            let alone = accuracy(&truth, &one.probability);
            assert!((0.5..fused).contains(&alone), "{prior:?} {preset:?}: {alone} alone");
            assert_eq!(again.predict(vec![test[1].clone()]).unwrap().probability, one.probability);
        }
    }
}

/// A model of two modalities, given one of them, says what that one says.
#[test]
fn one_modality_decides_alone() {
    let model = learnt();
    let (test, _) = blobs(3, 20);
    for read_out in [ReadOut::Logistic, ReadOut::Projection] {
        let told = model.predict_by(vec![test[0].clone()], Some(read_out), 1).unwrap();
        for (fused, vote) in told.probability.iter().zip(&told.votes[0].probability) {
            assert_close(*fused, *vote, 1e-12, "fused");
        }
    }
}

/// Where too few atoms leave out what tells the classes, the values themselves are looked at too.
#[test]
fn values_help_where_codes_do_not_tell() {
    let (mut views, classes) = blobs(0, 180);
    let (mut test, truth) = blobs(1, 150);
    for views in [&mut views, &mut test] {
        // Louder than the classes, and of no use.
        let mut random = rng(5);
        let loud = Array2::from_shape_fn((views[0].1.nrows(), 8), |_| {
            20.0 * random.sample::<f64, _>(StandardNormal)
        });
        views[0].1 = ndarray::concatenate![Axis(1), views[0].1, loud];
    }
    let labels = Labels::classes(&some(&classes)).unwrap();
    let config = Config { max_iter: Some(60), ..Config::new(2) };
    let model = learn(&views, &labels, &TaskConfig::default(), &config);
    assert!(model.classifier.as_ref().unwrap().logistic.values);
    assert!(!learnt().classifier.unwrap().logistic.values);
    let told = model.predict(test.clone()).unwrap();
    assert!(accuracy(&truth, &told.probability) > 0.9);
    let file = std::env::temp_dir().join(format!("msbdl-values-{}", std::process::id()));
    model.save(&file).unwrap();
    let again = Model::load(&file).unwrap().predict(test).unwrap();
    assert_eq!(again.probability, told.probability);
    std::fs::remove_file(&file).unwrap();
}

/// Two classes, each with atoms of its own and coefficients of either sign: only the support tells
/// them apart, and a noisy view sees it through a clear one alone.
fn supports(seed: u64, l: usize, noises: &[f64]) -> (Views, Vec<usize>) {
    let mut atoms = rng(2);
    let mut random = rng(seed);
    let classes: Vec<usize> = (0..l).map(|i| i % 2).collect();
    let on = Array2::from_shape_fn((l, 8), |(i, k)| {
        if k / 4 == classes[i] && random.random_bool(0.5) { 1.0 } else { 0.0 }
    });
    let views = noises.iter().enumerate().map(|(j, &noise)| {
        let mut draw = |m| Array2::from_shape_fn((l, m), |_| random.sample(StandardNormal));
        let x: Array2<f64> = draw(8) * &on;
        (format!("view{j}"), x.dot(&common::matrix(&mut atoms, 8, 10)) + draw(10) * noise)
    });
    (views.collect(), classes)
}

#[test]
fn variances_tell_what_the_company_asks_for() {
    for seed in 0..3 {
        let (views, classes) = supports(seed, 600, &[0.05, 1.0]);
        let labels = Labels::classes(&some(&classes)).unwrap();
        let model = learn(&views, &labels, &TaskConfig::default(), &Config::new(8));
        let (test, truth) = supports(seed + 10, 300, &[0.05, 1.0]);
        let told = |model: &Model, views: Views| {
            let told = model.predict_by(views, Some(ReadOut::Logistic), 1).unwrap();
            (told.votes.last().unwrap().probability.clone(), told.probability)
        };
        let (vote, fused) = told(&model, test.clone());
        let (_, alone) = told(&model, vec![test[1].clone()]);
        let [by_vote, by_all, by_itself] =
            [&vote, &fused, &alone].map(|probability| accuracy(&truth, probability));
        assert!(by_all > 0.8, "{by_all}");
        assert!(by_vote > 0.8 && by_vote > by_itself + 0.1, "{by_vote}, alone {by_itself}");
        let read = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(told(&read, test), (vote, fused));
    }
}

#[test]
fn variances_say_nothing_of_samples_that_lack_a_modality() {
    let noises = [0.05, 0.3, 1.0];
    let (views, classes) = supports(0, 600, &noises);
    let labels = Labels::classes(&some(&classes)).unwrap();
    let with = learn(&views, &labels, &TaskConfig::default(), &Config::new(8));
    let mut without = with.clone();
    without.classifier.as_mut().unwrap().logistic.heads.retain(|head| !head.variances);
    let (mut test, _) = supports(10, 20, &noises);
    test[0].1.slice_mut(s![..10, ..]).fill(f64::NAN);
    let [with, without] = [with, without]
        .map(|model| model.predict_by(test.clone(), Some(ReadOut::Logistic), 1).unwrap());
    let votes = |told: &Prediction| told.votes[2].probability.clone();
    for (with, without) in
        [(votes(&with), votes(&without)), (with.probability, without.probability)]
    {
        assert_eq!(with.slice(s![..10, ..]), without.slice(s![..10, ..]));
        assert_ne!(with.slice(s![10.., ..]), without.slice(s![10.., ..]));
    }
}

/// Labels that mean nothing are told no better than by chance.
#[test]
fn shuffled_labels_are_told_at_chance() {
    let mut mean = 0.0;
    for seed in 0..3 {
        let (views, mut classes) = blobs(seed, 240);
        classes.shuffle(&mut rng(seed));
        let labels = Labels::classes(&some(&classes)).unwrap();
        let model = learn(&views, &labels, &TaskConfig::default(), &Config { seed, ..quick() });
        let (test, mut truth) = blobs(seed + 50, 240);
        truth.shuffle(&mut rng(seed + 50));
        mean += accuracy(&truth, &model.predict(test).unwrap().probability) / 3.0;
        let held = model.classifier.unwrap().validation.unwrap();
        assert!(held.logistic.accuracy < 0.6, "validation {}", held.logistic.accuracy);
    }
    assert!((0.22..0.45).contains(&mean), "{mean} instead of a third");
}

#[test]
fn a_few_labels_teach_many_samples() {
    let (views, classes) = blobs(4, 240);
    let labels: Vec<Option<usize>> =
        classes.iter().enumerate().map(|(i, c)| (i < 30).then_some(*c)).collect();
    let model = learn(&views, &Labels::classes(&labels).unwrap(), &TaskConfig::default(), &quick());
    let (test, truth) = blobs(5, 150);
    let found = accuracy(&truth, &model.predict(test).unwrap().probability);
    assert!(found > 0.9, "{found}");
}

#[test]
fn tags_are_told() {
    let (views, classes) = blobs(6, 200);
    // Tag 0: class 0 or 1. Tag 1: class 1 or 2. Tag 2: never with class 0.
    let h = |classes: &[usize]| {
        Array2::from_shape_fn((classes.len(), 3), |(i, t)| {
            let has = [classes[i] < 2, classes[i] > 0, classes[i] > 0 && i % 2 == 0][t];
            f64::from(u8::from(has))
        })
    };
    let mut given = h(&classes);
    given.row_mut(7).fill(f64::NAN);
    let names = ["low", "high", "odd"].map(str::to_owned).to_vec();
    let labels = Labels::tags(Some(names.clone()), given).unwrap();
    assert!(!labels.known()[7]);
    let model = learn(&views, &labels, &TaskConfig::default(), &quick());
    let (test, truth) = blobs(7, 150);
    let told = model.predict(test).unwrap();
    assert_eq!((told.kind, &told.names), (LabelKind::Tags, &names));
    let found = score::tags(h(&truth).view(), told.probability.view());
    assert!(found.recall > 0.8 && found.mean_average_precision > 0.8, "{found:?}");
}

/// Every preset and schedule learns with labels, and all numbers are finite.
#[test]
fn every_preset_learns_with_labels() {
    let (views, classes) = blobs(8, 90);
    let labels = Labels::classes(&some(&classes)).unwrap();
    let mut golden = String::new();
    for preset in PRESETS {
        let config = Config { preset, max_iter: Some(400), ..Config::new(5) };
        let model = learn(&views, &labels, &TaskConfig::default(), &config);
        let classifier = model.classifier.as_ref().unwrap();
        for w in &classifier.projection.weights {
            assert!(w.iter().all(|x| x.is_finite()) && w.iter().any(|x| *x != 0.0));
        }
        let facts = model.history.last().unwrap();
        assert!(facts.beta.iter().all(|beta| beta.is_finite() && *beta > 0.0));
        let (test, _) = blobs(9, 9);
        let sum: f64 = model.predict(test).unwrap().probability.column(0).sum();
        golden += &format!("{preset:?} {sum:.6} {:.6}\n", facts.beta[0]);
    }
    check_golden("task.txt", &golden, 1e-3);
}

/// Labels take part after one round, and a round in which no more of those held back are told is the
/// last; without any held back, the dictionaries alone decide.
#[test]
fn labels_join_late_and_end_early() {
    let (views, classes) = blobs(14, 120);
    let labels = Labels::classes(&some(&classes)).unwrap();
    let run = |share| {
        let task = TaskConfig { validation: Validation::Share(share), ..TaskConfig::default() };
        learn(&views, &labels, &task, &Config::new(5)).history
    };
    let (judged, unjudged) = (run(0.2), run(0.0));
    let first = judged.iter().position(|facts| facts.validation.is_some()).unwrap();
    let new_round = |pair: &&[Facts]| pair[0].stage == "select" && pair[1].stage == "temper";
    assert_eq!(judged[..=first].windows(2).filter(new_round).count(), 1);
    let tempered =
        |history: &[Facts]| history.iter().filter(|facts| facts.stage == "temper").count();
    assert!(tempered(&judged) < tempered(&unjudged));
    assert_eq!(judged.last().unwrap().stage, "polish");
}

#[test]
fn threads_and_files_change_no_bit() {
    let (views, classes) = blobs(10, 90);
    let labels = Labels::classes(&some(&classes)).unwrap();
    let config = |threads| Config { threads, schedule: Some(Schedule::Incremental), ..quick() };
    let one = learn(&views, &labels, &TaskConfig::default(), &config(1));
    let two = learn(&views, &labels, &TaskConfig::default(), &config(2));
    let (test, _) = blobs(11, 40);
    let told = one.predict(test.clone()).unwrap();
    assert_eq!(told.probability, two.predict(test.clone()).unwrap().probability);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    one.save(&path).unwrap();
    let again = Model::load(&path).unwrap();
    assert_eq!(told.decision, again.predict(test).unwrap().decision);
    let (a, b) = (one.classifier.unwrap(), again.classifier.unwrap());
    assert_eq!(a.validation, b.validation);
    assert_eq!(a.projection.weights, b.projection.weights);
}

#[test]
fn rows_of_ones_choice_validate() {
    let (views, classes) = blobs(12, 60);
    let labels = Labels::classes(&some(&classes)).unwrap();
    for (validation, expected) in [
        (Validation::Rows((0..12).collect()), Some(12)),
        (Validation::Share(0.0), None),
        (Validation::Share(0.5), Some(30)),
    ] {
        let task = TaskConfig { validation, ..TaskConfig::default() };
        let config = Config { max_iter: Some(20), ..Config::new(5) };
        let model = learn(&views, &labels, &task, &config);
        let report = model.classifier.unwrap().validation;
        assert_eq!(report.map(|report| report.n_samples), expected);
    }
}

/// Balance lets a rare class be named more often.
#[test]
fn balance_hears_the_rare_class() {
    let (views, classes) = blobs(13, 300);
    let rows: Vec<usize> = (0..300).filter(|&i| classes[i] != 2 || i % 5 == 0).collect();
    let noisy: Views = vec![("noisy".into(), views[1].1.select(Axis(0), &rows))];
    let labels: Vec<Option<usize>> = rows.iter().map(|&i| Some(classes[i])).collect();
    let labels = Labels::classes(&labels).unwrap();
    let named = |balance: bool| {
        let task = TaskConfig { balance, ..TaskConfig::default() };
        let model = learn(&noisy, &labels, &task, &quick());
        let (test, _) = blobs(14, 150);
        let told = model.predict_by(vec![test[1].clone()], Some(ReadOut::Logistic), 1).unwrap();
        told.best().iter().filter(|&&c| c == 2).count()
    };
    assert!(named(true) > named(false));
}
