//! Runs whole sessions: fit, info, encode, recovery.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use crate::folder::Folder;

/// A folder with small synthetic data in `s`, easy enough to be found.
fn synthetic() -> Folder {
    let folder = Folder::empty();
    let sizes = "--samples 300 --features 10 --atoms 15 --sparsity 2 --snr 30,20";
    folder.ok(&format!("synth --recipe bimodal {sizes} --missing 0,.2 --seed 1 --out s"));
    folder
}

const FIT: &str = "fit --modality mod1=s/mod1.npy --modality mod2=s/mod2.npy --atoms 15";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Replaces every number that may change with the machine or the library's version.
fn without_numbers(text: &str) -> String {
    let mut result = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        // A digit behind a letter belongs to a name.
        let in_name = result.chars().last().is_some_and(|c| c.is_alphanumeric());
        if !c.is_ascii_digit() || in_name {
            result.push(c);
            continue;
        }
        while chars.next_if(|c| c.is_ascii_digit() || *c == '.').is_some() {}
        result.push('#');
    }
    result
        .split_inclusive('\n')
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.join(" ") + "\n"
        })
        .collect()
}

#[test]
fn fit_info_encode_recovery() {
    let folder = synthetic();
    let summary = folder.ok(&format!("{FIT} --seed 7 --out m.safetensors"));
    assert_snapshot!("summary", without_numbers(&summary));
    let info = folder.ok("info m.safetensors");
    assert_eq!(without_seconds(&summary), info);

    let recovery = json(&folder.ok("recovery --model m.safetensors --truth s --json"));
    assert_eq!(keys(&recovery), ["modalities", "model", "truth"]);
    for part in recovery["modalities"].as_array().unwrap() {
        let number = |key: &str| part[key].as_f64().unwrap();
        assert!(number("recovery") > 0.9, "{part}");
        let ratio = number("sigma2_found") / number("sigma2_true");
        assert!((0.5..2.0).contains(&ratio), "{part}");
        assert!(part.get("limit").is_none());
    }
    let table = folder.ok("recovery --model m.safetensors --truth s --limit");
    let head: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["modality", "recovered", "limit", "sigma^2", "found", "sigma^2", "true"]);
    assert_eq!(table.lines().count(), 3);

    folder.ok("encode --model m.safetensors --modality mod1=s/mod1.npy --modality mod2=s/mod2.npy --out c.npz");
    let of =
        |name: &str| ["mean", "reconstruction", "variance"].map(|kind| format!("{kind}.{name}"));
    let mut expected =
        [vec!["gamma".into(), "log_evidence".into()], of("mod1").into(), of("mod2").into()]
            .concat();
    expected.sort();
    assert_eq!(folder.arrays("c.npz"), expected);
    assert_eq!(folder.array("c.npz", "gamma").dim(), (300, 15));
    assert_eq!(folder.array("c.npz", "log_evidence").dim(), (1, 300));
    for name in ["mod1", "mod2"] {
        assert_eq!(folder.array("c.npz", &format!("mean.{name}")).dim(), (300, 15));
        let variance = folder.array("c.npz", &format!("variance.{name}"));
        assert!(variance.iter().all(|x| *x >= 0.0));
        let rebuilt = folder.array("c.npz", &format!("reconstruction.{name}"));
        assert!(rebuilt.iter().all(|x| x.is_finite()));
    }
}

/// The summary without what `info` cannot know.
fn without_seconds(summary: &str) -> String {
    let (before, after) = summary.split_once(", E-steps ").unwrap();
    let (e_steps, after) = after.split_once(", ").unwrap();
    let (_seconds, after) = after.split_once(" s (").unwrap();
    format!("{before}, E-steps {e_steps} ({after}")
}

#[test]
fn a_modality_may_be_left_out_of_encoding() {
    let folder = synthetic();
    folder.ok(&format!("{FIT} --max-iter 20 --out m.safetensors"));
    folder.ok("encode --model m.safetensors --modality mod1=s/mod1.npy --out c.npz");
    let kinds = ["gamma", "log_evidence", "mean.mod1", "reconstruction.mod1", "variance.mod1"];
    assert_eq!(folder.arrays("c.npz"), kinds);
}

#[test]
fn json_has_stable_keys() {
    let folder = synthetic();
    let fit = json(&folder.ok(&format!("{FIT} --max-iter 20 --json --quiet --out m.safetensors")));
    let expected = [
        "atoms_per_sample",
        "atoms_used",
        "converged",
        "e_steps",
        "iterations",
        "modalities",
        "model",
        "n_atoms",
        "n_samples",
        "preset",
        "prior",
        "seconds",
        "seed",
        "stop_reason",
    ];
    assert_eq!(keys(&fit), expected);
    let part = &fit["modalities"][0];
    assert_eq!(
        keys(part),
        ["n_atoms", "n_features", "n_samples", "name", "sigma", "variance_explained"]
    );
    assert_eq!(part["name"], "mod1");
    assert_eq!(part["n_samples"], 300);
    assert_eq!(fit["stop_reason"], "max-iterations");
    assert_eq!(fit["converged"], false);
    assert_eq!(fit["preset"], "auto");

    let info = json(&folder.ok("info m.safetensors --json"));
    let mut without = fit.clone();
    without.as_object_mut().unwrap().remove("seconds");
    assert_eq!(info, without);

    let line = "encode --model m.safetensors --modality mod1=s/mod1.npy --modality mod2=s/mod2.npy --out c.npz --json";
    let encode = json(&folder.ok(line));
    let expected = ["codes", "mean_log_evidence", "modalities", "model", "n_atoms", "n_samples"];
    assert_eq!(keys(&encode), expected);
    assert_eq!(encode["modalities"][1], serde_json::json!({"name": "mod2", "n_samples": 240}));
}

#[test]
fn quiet_prints_nothing() {
    let folder = synthetic();
    for line in [
        &format!("{FIT} --max-iter 5 --quiet --out m.safetensors")[..],
        "encode --model m.safetensors --modality mod1=s/mod1.npy --modality mod2=s/mod2.npy --out c.npz --quiet",
    ] {
        let output = folder.run(line);
        assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
    }
}

#[test]
fn missing_modalities_are_told() {
    let folder = synthetic();
    let output = folder.run(&format!("{FIT} --max-iter 5 --out m.safetensors"));
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(told, "300 samples: 60 lack 'mod2'\n");
}

#[test]
fn the_same_seed_gives_the_same_files_for_any_number_of_threads() {
    let folder = synthetic();
    for (name, threads) in [("one", 1), ("two", 2)] {
        folder.ok(&format!("{FIT} --max-iter 20 --threads {threads} --out {name}.safetensors"));
        folder.ok(&format!("encode --model {name}.safetensors --modality mod1=s/mod1.npy --modality mod2=s/mod2.npy --out {name}.npz"));
    }
    for kind in ["safetensors", "npz"] {
        let bytes = |name: &str| fs::read(folder.path(&format!("{name}.{kind}"))).unwrap();
        assert!(bytes("one") == bytes("two"), "{kind}");
    }
}

#[test]
fn an_earlier_output_is_replaced() {
    let folder = synthetic();
    folder.file("m.safetensors", "an earlier result");
    folder.ok(&format!("{FIT} --max-iter 5 --out m.safetensors"));
    folder.ok("info m.safetensors");
}

#[test]
fn every_preset_and_override_runs() {
    let folder = synthetic();
    for options in [
        "--preset paper --sigma0 1 --sigma-inf 0.1 --alpha 0.9",
        "--preset paper --sigma0 mod1=1 --sigma0 mod2=1.5",
        "--preset msbdl-1",
        "--preset msbdl-2",
        "--preset msbdl-3 --batch-size 100",
        "--preset msbdl-4",
        "--schedule incremental --posterior approximate --no-center",
    ] {
        folder.ok(&format!("{FIT} --max-iter 10 {options} --out m.safetensors"));
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let folder = synthetic();
    folder.ok(&format!("{FIT} --max-iter 5 --out m.safetensors"));
    let mut command = folder.command("info m.safetensors");
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
}
