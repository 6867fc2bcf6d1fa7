//! Codes new samples: from any subset of the modalities, in the user's units.

mod common;

use common::{assert_close, posterior};
use msbdl::synth::{Recipe, Truth};
use msbdl::{Config, Data, Model, Silent, fit};
use ndarray::{Array1, Array2, s};

fn truth() -> Truth {
    let sizes = Recipe {
        n_features: 10,
        n_atoms: 20,
        n_samples: 600,
        sparsity: 2,
        ..Recipe::paper(&[30.0, 10.0], 11)
    };
    sizes.draw().unwrap()
}

/// The data in units and with means of their own.
fn in_units(truth: &Truth) -> [(String, Array2<f64>); 2] {
    [
        ("a".into(), truth.data[0].mapv(|x| 100.0 * x + 7.0)),
        ("b".into(), truth.data[1].mapv(|x| 0.01 * x - 3.0)),
    ]
}

fn part(y: &[(String, Array2<f64>)], from: usize, to: usize) -> Vec<(String, Array2<f64>)> {
    y.iter().map(|(name, y)| (name.clone(), y.slice(s![from..to, ..]).to_owned())).collect()
}

fn learnt() -> (Truth, [(String, Array2<f64>); 2], Model) {
    let truth = truth();
    let y = in_units(&truth);
    let data = Data::new(part(&y, 0, 500), true).unwrap();
    let model = fit(&data, &Config::new(20), &mut Silent).unwrap();
    (truth, y, model)
}

#[test]
fn codes_are_posteriors_in_the_users_units() {
    let (_, y, model) = learnt();
    let new = part(&y, 500, 600);
    let codes = model.encode(new.clone()).unwrap();
    for (j, x) in codes.modalities.iter().enumerate() {
        let learnt = &model.modalities[j];
        let mut residual = 0.0;
        for i in 0..100 {
            let centred = &new[j].1.row(i) - &learnt.mean;
            let v = codes.gamma.row(i).mapv(|g| (g * learnt.scale.powi(2)).max(1e-300));
            let exact = posterior(&learnt.dictionary, learnt.sigma2, &centred, &v);
            let unit = learnt.scale;
            for k in 0..20 {
                assert_close(x.mean[[i, k]] / unit, exact.mu[k] / unit, 1e-6, "mean");
                let variance = exact.cov[[k, k]] / unit.powi(2);
                assert_close(x.variance[[i, k]] / unit.powi(2), variance, 1e-6, "variance");
            }
            let fitted = learnt.dictionary.dot(&x.mean.row(i)) + &learnt.mean;
            for (a, b) in fitted.iter().zip(x.reconstruction.row(i)) {
                assert_close(*b, *a, 1e-9, "reconstruction");
            }
            let off = &x.reconstruction.row(i) - &new[j].1.row(i);
            residual += off.dot(&off) / 1000.0;
        }
        // A reconstruction fits a little of the noise, but not half of it.
        let ratio = residual / learnt.sigma2;
        assert!((0.4..1.2).contains(&ratio), "{}: residual / noise {ratio}", x.name);
    }
    let found = codes.gamma.slice(s![.., ..]).iter().filter(|g| **g > 0.0).count() as f64 / 100.0;
    assert!((1.5..2.6).contains(&found), "{found} atoms per sample instead of 2");
}

#[test]
fn log_evidence_is_in_the_users_units() {
    let (_, y, model) = learnt();
    let new = part(&y, 500, 510);
    let codes = model.encode(new.clone()).unwrap();
    for i in 0..10 {
        let mut expected = 0.0;
        for (j, learnt) in model.modalities.iter().enumerate() {
            let centred: Array1<f64> = &new[j].1.row(i) - &learnt.mean;
            let v = codes.gamma.row(i).mapv(|g| (g * learnt.scale.powi(2)).max(1e-300));
            expected += posterior(&learnt.dictionary, learnt.sigma2, &centred, &v).log_likelihood;
        }
        assert_close(codes.log_evidence[i], expected, 1e-6, "log-evidence");
    }
}

#[test]
fn a_modality_left_out_is_a_modality_missing() {
    let (_, y, model) = learnt();
    let mut new = part(&y, 500, 530);
    let alone = model.encode(vec![new[0].clone()]).unwrap();
    new[1].1.fill(f64::NAN);
    let missing = model.encode(new).unwrap();
    assert_eq!(alone.modalities[0].mean, missing.modalities[0].mean);
    assert_eq!(alone.gamma, missing.gamma);
    assert_eq!(alone.log_evidence, missing.log_evidence);
    // Of a missing modality only the prior is known.
    let unseen = &missing.modalities[1];
    assert!(unseen.mean.iter().all(|x| *x == 0.0));
    let prior = missing.gamma[[0, 0]] * model.modalities[1].scale.powi(2);
    assert_close(unseen.variance[[0, 0]], prior, 1e-12, "prior variance");
    assert_eq!(unseen.reconstruction.row(3), model.modalities[1].mean);
}

#[test]
fn samples_are_coded_one_by_one() {
    let (_, y, model) = learnt();
    let all = model.encode(part(&y, 500, 600)).unwrap();
    let some = model.encode(part(&y, 550, 551)).unwrap();
    for (a, b) in all.gamma.row(50).iter().zip(some.gamma.row(0)) {
        assert_close(*a, *b, 1e-6, "gamma");
    }
}
