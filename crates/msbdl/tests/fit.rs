//! Fits small data sets whole: recovery, the promises a user relies on, odd shapes.

mod common;

use common::check_golden;
use msbdl::synth::{Recipe, Truth};
use msbdl::{
    Config, Data, Facts, Model, Next, PerModality, Posterior, Preset, Schedule, Silent, StopReason,
    fit, recovery,
};
use ndarray::Array2;
use proptest::prelude::*;

const PRESETS: [Preset; 6] =
    [Preset::Auto, Preset::Paper, Preset::Msbdl1, Preset::Msbdl2, Preset::Msbdl3, Preset::Msbdl4];

fn small(snr: &[f64], seed: u64) -> Truth {
    let sizes = Recipe {
        n_features: 10,
        n_atoms: 20,
        n_samples: 500,
        sparsity: 2,
        ..Recipe::paper(snr, seed)
    };
    sizes.draw().unwrap()
}

fn named(truth: &Truth) -> Vec<(String, Array2<f64>)> {
    truth.data.iter().enumerate().map(|(j, y)| (format!("mod{}", j + 1), y.clone())).collect()
}

fn learn(named: Vec<(String, Array2<f64>)>, config: &Config) -> Model {
    fit(&Data::new(named, true).unwrap(), config, &mut Silent).unwrap()
}

fn all_finite(model: &Model) -> bool {
    let history = model.history.iter();
    model
        .modalities
        .iter()
        .all(|x| x.dictionary.iter().chain(&x.mean).all(|v| v.is_finite()) && x.sigma2.is_finite())
        && history
            .flat_map(|facts| facts.sigma.iter().chain([&facts.log_likelihood]))
            .all(|v| v.is_finite())
}

#[test]
fn finds_dictionaries_and_noise() {
    let (mut clean, mut noisy) = (0.0, 0.0);
    let seeds = 4;
    for seed in 0..seeds {
        let truth = small(&[30.0, 10.0], seed);
        let model = learn(named(&truth), &Config { seed, ..Config::new(20) });
        let found = |j: usize| {
            let d = model.modalities[j].dictionary.view();
            100.0 * recovery::recovery(truth.dictionaries[j].view(), d) / seeds as f64
        };
        clean += found(0);
        noisy += found(1);
        for (x, sigma2) in model.modalities.iter().zip(&truth.sigma2) {
            assert!((0.7..1.3).contains(&(x.sigma2 / sigma2)), "noise of {}: {}", x.name, x.sigma2);
        }
        assert!(model.converged(), "seed {seed}: {:?}", model.stop_reason);
        let e_steps = model.history.last().unwrap().e_steps;
        assert!(e_steps <= 600.0, "{e_steps} E-steps");
    }
    assert!(clean >= 97.0, "30 dB: {clean} %");
    assert!(noisy >= 85.0, "10 dB: {noisy} %");
}

/// Well-posed data need some rounds of the eight, data that are noise take more.
#[test]
fn learning_ends_when_a_round_moves_no_atom() {
    let rounds = |snr: f64| {
        let model = learn(named(&small(&[snr, snr], 1)), &Config::new(20));
        let stages: Vec<_> = model.history.iter().map(|facts| facts.stage.as_str()).collect();
        assert_eq!((stages[0], stages[stages.len() - 1]), ("temper", "polish"));
        1 + stages.windows(2).filter(|pair| *pair == ["select", "temper"]).count()
    };
    let clear = rounds(30.0);
    assert!((3..8).contains(&clear));
    assert!(rounds(-20.0) > clear);
}

#[test]
fn learns_where_modalities_are_missing() {
    let mut found = 0.0;
    for seed in 0..3 {
        let recipe = Recipe {
            n_features: 10,
            n_atoms: 20,
            n_samples: 500,
            sparsity: 2,
            missing: vec![0.2, 0.4],
            ..Recipe::paper(&[30.0, 15.0], seed)
        };
        let truth = recipe.draw().unwrap();
        let model = learn(named(&truth), &Config { seed, ..Config::new(20) });
        let d = model.modalities[1].dictionary.view();
        found += 100.0 * recovery::recovery(truth.dictionaries[1].view(), d) / 3.0;
    }
    assert!(found >= 85.0, "{found} %");
}

/// Same seed, same bits, whatever the threads.
#[test]
fn threads_change_no_bit() {
    let truth = small(&[30.0, 10.0], 1);
    for preset in [Preset::Auto, Preset::Msbdl1] {
        let config = |threads| Config { threads, preset, ..Config::new(20) };
        let (one, two) = (learn(named(&truth), &config(1)), learn(named(&truth), &config(2)));
        for (a, b) in one.modalities.iter().zip(&two.modalities) {
            assert_eq!(a.dictionary, b.dictionary);
            assert_eq!(a.sigma2.to_bits(), b.sigma2.to_bits());
        }
        assert_eq!(strip(&one.history), strip(&two.history));
    }
}

fn strip(history: &[Facts]) -> Vec<Facts> {
    history.iter().map(|facts| Facts { seconds: 0.0, ..facts.clone() }).collect()
}

fn assert_same_atoms(a: &Model, b: &Model) {
    for x in &a.modalities {
        let y = b.modality(&x.name).unwrap();
        let cosines = recovery::cosines(x.dictionary.view(), y.dictionary.view());
        for (k, cosine) in cosines.diag().iter().enumerate() {
            assert!(*cosine > 1.0 - 1e-4, "{} atom {k}: {cosine}", x.name);
        }
    }
}

#[test]
fn scale_and_order_change_nothing() {
    let truth = small(&[30.0, 10.0], 2);
    let config = Config::new(20);
    let plain = learn(named(&truth), &config);
    let mut scaled = named(&truth);
    scaled[1].1.mapv_inplace(|x| 1000.0 * x);
    let scaled = learn(scaled, &config);
    assert_same_atoms(&plain, &scaled);
    let ratio = scaled.modalities[1].sigma2 / plain.modalities[1].sigma2;
    assert!((ratio / 1e6 - 1.0).abs() < 1e-6, "sigma2 changed by {ratio}");
    // What the observer sees is in the user's units as well.
    for (facts, other) in scaled.history.iter().zip(&plain.history) {
        assert!((facts.sigma[0] / other.sigma[0] - 1.0).abs() < 1e-6);
        assert!((facts.sigma[1] / other.sigma[1] / 1e3 - 1.0).abs() < 1e-6);
        let densities = other.log_likelihood - facts.log_likelihood;
        assert!((densities / (500.0 * 10.0 * 1e3_f64.ln()) - 1.0).abs() < 1e-6);
    }
    let mut reversed = named(&truth);
    reversed.reverse();
    assert_same_atoms(&plain, &learn(reversed, &config));
}

#[test]
fn a_stopped_fit_is_a_model() {
    let truth = small(&[30.0, 10.0], 3);
    let data = Data::new(named(&truth), true).unwrap();
    for preset in PRESETS {
        let mut observer =
            |facts: &Facts| if facts.iteration == 7 { Next::Stop } else { Next::Continue };
        let model = fit(&data, &Config { preset, ..Config::new(20) }, &mut observer).unwrap();
        assert_eq!(model.stop_reason, StopReason::Interrupted);
        assert!(!model.converged());
        assert_eq!(model.history.len(), 7);
        assert!(all_finite(&model));
        assert_eq!(model.encode(named(&truth)).unwrap().gamma.nrows(), 500);
    }
    let config = Config { max_iter: Some(5), ..Config::new(20) };
    let model = fit(&data, &config, &mut Silent).unwrap();
    assert_eq!((model.stop_reason, model.history.len()), (StopReason::MaxIterations, 5));
}

#[test]
fn history_and_summary_tell_what_happened() {
    let truth = small(&[30.0, 10.0], 4);
    let model = learn(named(&truth), &Config::new(20));
    for (index, facts) in model.history.iter().enumerate() {
        assert_eq!(facts.iteration, index + 1);
        assert_eq!((facts.sigma.len(), facts.dictionary_change.len()), (2, 2));
        assert!((0.0..=1.0).contains(&facts.progress), "{}", facts.progress);
    }
    let repaired: usize =
        model.history.iter().map(|facts| facts.columns_paired + facts.atoms_cleaned).sum();
    assert!(repaired > 0, "nothing was ever paired or cleaned");
    let summary = &model.summary;
    assert!((1.5..2.5).contains(&summary.atoms_per_sample), "{}", summary.atoms_per_sample);
    assert_eq!(summary.atoms_used(), 20);
    assert!(summary.modalities[0].variance_explained > 0.99);
    assert!((0.8..0.99).contains(&summary.modalities[1].variance_explained));
}

#[test]
fn the_papers_annealing_ends_by_itself() {
    let truth = small(&[30.0, 10.0], 5);
    let sigma0 = vec![("mod1".to_owned(), 1.0), ("mod2".to_owned(), 10f64.sqrt())];
    let config = Config {
        preset: Preset::Paper,
        sigma0: Some(PerModality::ByName(sigma0)),
        alpha: Some(0.97),
        ..Config::new(20)
    };
    let model = learn(named(&truth), &config);
    assert!(model.converged());
    let falling = |j: usize| model.history.windows(2).all(|w| w[1].sigma[j] <= w[0].sigma[j]);
    assert!(falling(0) && falling(1));
    assert!((model.history[0].sigma[1] - 10f64.sqrt()).abs() < 1e-9);
    let d = model.modalities[0].dictionary.view();
    assert!(recovery::recovery(truth.dictionaries[0].view(), d) > 0.7);
}

/// Every preset on a small case, against what it gave before (UPDATE_GOLDEN=1 writes anew).
#[test]
fn presets_are_as_they_were() {
    let truth = small(&[30.0, 10.0], 6);
    let mut found = String::new();
    for preset in PRESETS {
        let config = Config { preset, max_iter: Some(40), ..Config::new(20) };
        let model = learn(named(&truth), &config);
        for x in &model.modalities {
            let sum: f64 =
                x.dictionary.indexed_iter().map(|((n, k), v)| v * ((n + 2 * k) as f64).sin()).sum();
            found += &format!("{preset:?} {} {:.9e} {sum:.9e}\n", x.name, x.sigma2);
        }
    }
    check_golden("presets.txt", &found, 1e-6);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    /// No panic and no NaN from any shape, 1 x 1 included.
    #[test]
    fn any_shape_gives_a_finite_model(
        seed in 0u64..1000, l in 1usize..12, n1 in 1usize..5, n2 in 1usize..5, preset in 0usize..6,
    ) {
        let mut rng = 0.5 + seed as f64;
        let mut draw = |_| { rng = (rng * 997.13).sin() * 10.0; rng };
        let named = vec![
            ("a".to_owned(), Array2::from_shape_fn((l, n1), &mut draw)),
            ("b".to_owned(), Array2::from_shape_fn((l, n2), &mut draw)),
        ];
        let data = Data::new(named.clone(), false).unwrap();
        let config = Config { preset: PRESETS[preset], max_iter: Some(300), ..Config::new(l.min(3)) };
        let model = fit(&data, &config, &mut Silent).unwrap();
        prop_assert!(all_finite(&model));
        let codes = model.encode(named).unwrap();
        prop_assert!(codes.log_evidence.iter().chain(&codes.gamma).all(|x| x.is_finite()));
        for x in &codes.modalities {
            prop_assert!(x.mean.iter().chain(&x.variance).chain(&x.reconstruction).all(|v| v.is_finite()));
            prop_assert!(x.variance.iter().all(|v| *v >= 0.0));
        }
    }
}

/// Many features, few atoms: the Gram form alone can do it.
#[test]
fn more_features_than_atoms() {
    let recipe = Recipe {
        n_features: 400,
        n_atoms: 10,
        n_samples: 120,
        sparsity: 2,
        ..Recipe::paper(&[20.0, 10.0], 1)
    };
    let truth = recipe.draw().unwrap();
    let model = learn(named(&truth), &Config::new(10));
    let d = model.modalities[0].dictionary.view();
    let found = recovery::recovery(truth.dictionaries[0].view(), d);
    assert!(found >= 0.8, "{found}");
}

#[test]
fn options_override_the_preset() {
    let truth = small(&[30.0, 10.0], 7);
    let config = Config {
        schedule: Some(Schedule::Incremental),
        batch_size: Some(100),
        posterior: Some(Posterior::Approximate),
        max_iter: Some(10),
        ..Config::new(20)
    };
    let model = learn(named(&truth), &config);
    let e_steps = model.history.last().unwrap().e_steps;
    assert!((e_steps - 2.0).abs() < 1e-9, "ten blocks of a fifth are two passes, not {e_steps}");
}
