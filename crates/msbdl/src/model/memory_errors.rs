//! Tests that files whose memory is not whole are refused with a reason.

use std::collections::HashMap;

use safetensors::tensor::{SafeTensors, TensorView};
use serde_json::{Value, json};

use super::Model;
use crate::input::config::Config;
use crate::input::data::Data;
use crate::input::labels::Labels;
use crate::input::task::TaskConfig;
use crate::learn::fit::fit_task;
use crate::learn::stream::Stream;
use crate::support::observe::Silent;
use crate::support::synth::Recipe;

/// A file with all parts: sums with a name and without, labels, samples.
fn file() -> Vec<u8> {
    let paper = Recipe::paper(&[30.0, 20.0], 1);
    let recipe = Recipe { n_atoms: 5, n_features: 4, sparsity: 2, n_samples: 30, ..paper };
    let truth = recipe.draw().unwrap();
    let views =
        || vec![("a".to_owned(), truth.data[0].clone()), ("b".to_owned(), truth.data[1].clone())];
    let data = Data::new(views(), true).unwrap();
    let classes: Vec<Option<usize>> = (0..30).map(|i| Some(i % 2)).collect();
    let labels = Labels::classes(&classes).unwrap();
    let config = Config { max_iter: Some(5), ..Config::new(5) };
    let task = TaskConfig::default();
    let model = fit_task(&data, &labels, &task, &config, &mut Silent).unwrap();
    let mut stream = Stream::resume(model).unwrap();
    stream.keep(&views(), (&labels, &[0, 1])).unwrap();
    stream.step_with_labels(views(), (&labels, &[]), Some("again"), 1).unwrap();
    stream.model().to_bytes().unwrap()
}

/// What is wrong with the file when its JSON is changed and a tensor left out.
fn problem(change: impl Fn(&mut Value), without: &str) -> String {
    let bytes = file();
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let text = &header.metadata().as_ref().unwrap()["msbdl"];
    let mut entry: Value = serde_json::from_str(text).unwrap();
    change(&mut entry["memory"]);
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let kept: Vec<(String, TensorView)> =
        tensors.tensors().into_iter().filter(|(name, _)| name != without).collect();
    let entries = HashMap::from([("msbdl".to_owned(), entry.to_string())]);
    let changed = safetensors::serialize(kept, Some(entries)).unwrap();
    Model::from_bytes(&changed).map(|_| String::new()).unwrap_or_else(|problem| problem)
}

#[test]
fn whole_files_are_read() {
    assert_eq!(problem(|_| (), ""), "");
}

#[test]
fn tensors_that_are_missing_are_named() {
    let parts = ["c", "b", "mu", "y", "energy", "labels.c", "labels.hmu"];
    let mut names: Vec<String> = parts.iter().map(|part| format!("sums.0.{part}.b")).collect();
    names.extend(["base.a", "sums.1.gamma", "weights.b", "samples.a", "labels"].map(Into::into));
    for name in names {
        assert_eq!(problem(|_| (), &name), format!("tensor '{name}' is missing"));
    }
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    let shape = problem(|memory| memory["sums"][1]["n_samples"] = json!(29), "");
    assert_eq!(shape, "tensor 'sums.1.gamma' is F64 [30, 5] instead of F64 [29, 5]");
    let other = "do not belong to these modalities";
    for (key, value) in [("active", json!(-1.0)), ("modalities", json!([]))] {
        let text = problem(|memory| memory["sums"][0][key] = value.clone(), "");
        assert_eq!(text, format!("sums 0 {other}"));
    }
    let text = problem(|memory| memory["sums"][0]["modalities"][1]["free"] = json!(-2.0), "");
    assert_eq!(text, format!("sums 0 {other}"));
    for key in ["names", "mean", "beta2"] {
        let text = problem(|memory| memory["taught"][key] = json!([]), "");
        assert!(!text.is_empty(), "{key}");
    }
    let text = problem(|memory| memory["taught"]["samples"]["counts"] = json!([1, 1]), "");
    assert_eq!(text, "the samples do not belong to these labels");
    let text = problem(|memory| memory["center"] = json!("yes"), "");
    assert!(text.starts_with("entry 'msbdl': invalid type"), "{text}");
}
