//! Fits with labels, predicts and scores; labels that do not fit are refused.

use std::fs;

use insta::assert_snapshot;
use ndarray::Array2;
use serde_json::Value;

use crate::folder::{Folder, values};

/// `a` and `b` of 40 samples in two classes that are apart, and files with the classes.
fn folder() -> Folder {
    let folder = Folder::new();
    for (name, columns, seed) in [("a.npy", 6, 1), ("b.npy", 5, 2)] {
        let mut data = values(40, columns, seed);
        data.rows_mut().into_iter().step_by(2).for_each(|mut row| row += 1.0);
        folder.npy(name, &data);
    }
    folder.file("y.txt", classes(|i| if i % 2 == 0 { "cat" } else { "dog" }));
    folder
}

fn classes(name: impl Fn(usize) -> &'static str) -> String {
    (0..40).map(|i| format!("{}\n", name(i))).collect()
}

const FIT: &str = "fit --modality a=a.npy --modality b=b.npy --atoms 4 --max-iter 20";
const PREDICT: &str = "predict --model m.safetensors --modality a=a.npy --modality b=b.npy";

#[test]
fn fit_predict_score() {
    let folder = folder();
    let summary = folder.ok(&format!("{FIT} --labels y.txt --out m.safetensors"));
    assert!(summary.contains("labels   2 classes, told by "), "{summary}");
    assert!(folder.ok("info m.safetensors").contains("held back, calibration error"));
    folder.ok(&format!("{PREDICT} --out p.csv"));
    let text = fs::read_to_string(folder.path("p.csv")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next().unwrap(), "row,label,p.cat,p.dog,vote.a,vote.b");
    let first: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!((first[0], first[1], first[4]), ("0", "cat", "cat"));
    let sum: f64 = first[2].parse::<f64>().unwrap() + first[3].parse::<f64>().unwrap();
    assert!((sum - 1.0).abs() < 1e-5);
    let scores: Value =
        serde_json::from_str(&folder.ok("score --predictions p.csv --labels y.txt --json"))
            .unwrap();
    assert!(scores["accuracy"].as_f64().unwrap() > 0.9, "{scores}");
    let shown = folder.ok("score --predictions p.csv --labels y.txt");
    for word in
        ["accuracy", "balanced accuracy", "macro F1", "calibration error", "true \\ predicted"]
    {
        assert!(shown.contains(word), "{shown}");
    }
    folder.ok(&format!("{PREDICT} --modality-only b --top 2 --out p.csv"));
    let text = fs::read_to_string(folder.path("p.csv")).unwrap();
    assert!(text.lines().nth(1).unwrap().contains(";"), "{text}");
    // Of several labels the first one is scored.
    let scores = folder.ok("score --predictions p.csv --labels y.txt --json");
    let scores: Value = serde_json::from_str(&scores).unwrap();
    assert_eq!(scores["n_samples"], 40);
    assert!(scores["accuracy"].as_f64().unwrap() > 0.8, "{scores}");
    folder.ok(&format!("{PREDICT} --out p.npy"));
    let bytes = fs::read(folder.path("p.npy")).unwrap();
    let labels: Vec<String> = npyz::NpyFile::new(&bytes[..]).unwrap().into_vec().unwrap();
    assert_eq!(labels[..2], ["cat", "dog"]);
}

#[test]
fn labels_go_with_trees() {
    let folder = folder();
    let fit = "fit --modality a=a.npy --modality b=b.npy --labels y.txt --max-iter 20";
    let tree = "--atoms a=3 --atoms b=5 --root a --out m.safetensors";
    for prior in ["atom-to-subspace", "hierarchical", "tree"] {
        folder.ok(&format!("{fit} --prior {prior} {tree}"));
        folder.ok(&format!("{PREDICT} --out p.csv"));
        let scores = folder.ok("score --predictions p.csv --labels y.txt --json");
        let scores: Value = serde_json::from_str(&scores).unwrap();
        assert!(scores["accuracy"].as_f64().unwrap() > 0.8, "{prior}: {scores}");
    }
}

#[test]
fn numbers_and_tags_from_npy_and_csv() {
    let folder = folder();
    let numbers: Vec<i64> = (0..40).map(|i| 3 + i % 2).collect();
    npyz::to_file_1d(folder.path("y.npy"), numbers).unwrap();
    folder.ok(&format!("{FIT} --labels y.npy --out m.safetensors"));
    folder.ok(&format!("{PREDICT} --out p.npy"));
    let bytes = fs::read(folder.path("p.npy")).unwrap();
    let labels: Vec<i64> = npyz::NpyFile::new(&bytes[..]).unwrap().into_vec().unwrap();
    assert_eq!(labels[..2], [3, 4]);

    let tags = (0..40).map(|i| format!("{},{}\n", i % 2, u8::from(i % 4 > 0)));
    folder.file("t.csv", format!("odd,most\n{}", tags.collect::<String>()));
    folder.ok(&format!("{FIT} --labels t.csv --out m.safetensors"));
    folder.ok(&format!("{PREDICT} --out p.csv"));
    let head = fs::read_to_string(folder.path("p.csv")).unwrap();
    assert!(head.starts_with("row,label,p.odd,p.most,vote.a,vote.b\n"), "{head}");
    let shown = folder.ok("score --predictions p.csv --labels t.csv");
    assert!(shown.contains("recall at k") && shown.contains("mean average precision"), "{shown}");
    // Columns of tags are matched by name.
    let turned = (0..40).map(|i| format!("{},{}\n", u8::from(i % 4 > 0), i % 2));
    folder.file("turned.csv", format!("most,odd\n{}", turned.collect::<String>()));
    assert_eq!(folder.ok("score --predictions p.csv --labels turned.csv"), shown);
    folder.file("other.csv", format!("odd,blue\n{}", "0,1\n".repeat(40)));
    assert_snapshot!(folder.refused("score --predictions p.csv --labels other.csv"), @"other.csv: tag 'blue' is not one of the labels odd, most");
}

#[test]
fn labels_are_matched_by_id() {
    let folder = folder();
    let data = values(40, 3, 3);
    let rows = (0..40).map(|i| {
        format!("s{i},{},{},{}\n", data[[i, 0]] + (i % 2) as f64, data[[i, 1]], data[[i, 2]])
    });
    folder.file("a.csv", format!("id,x,y,z\n{}", rows.collect::<String>()));
    let labels = (0..39).rev().map(|i| format!("s{i},{}\n", ["even", "odd"][i % 2]));
    folder.file("y.csv", format!("id,what\n{}", labels.collect::<String>()));
    folder.file("v.txt", "s0\ns1\ns2\ns3\n");
    folder.ok("fit --modality a=a.csv --ids --labels y.csv --validation-rows v.txt --atoms 3 \
         --max-iter 20 --out m.safetensors");
    folder.ok("predict --model m.safetensors --modality a=a.csv --ids --out p.csv");
    let scores = folder.ok("score --predictions p.csv --labels y.csv --json");
    let scores: Value = serde_json::from_str(&scores).unwrap();
    assert_eq!(scores["n_samples"], 39);
    assert!(scores["accuracy"].as_f64().unwrap() > 0.8, "{scores}");
}

fn refused(labels: &str) -> String {
    folder().refused(&format!("{FIT} {labels} --out out.safetensors"))
}

#[test]
fn bad_labels() {
    let folder = folder();
    let fit = |labels: &str| folder.refused(&format!("{FIT} {labels} --out out.safetensors"));
    folder.file("short.txt", "a\nb\n");
    folder.file("one.txt", classes(|_| "cat"));
    folder.file("rare.txt", classes(|i| if i == 7 { "cat" } else { "dog" }));
    folder.file("none.txt", classes(|_| "NA"));
    folder.npy("half.npy", &Array2::from_elem((40, 2), 0.5));
    assert_snapshot!(fit("--labels short.txt"), @"short.txt: there are 2 labels for 40 samples");
    assert_snapshot!(fit("--labels one.txt"), @"one.txt: every label is 'cat': there is nothing to tell apart");
    assert_snapshot!(fit("--labels rare.txt"), @"class 'cat' has a single sample, which cannot be both learnt from and set aside for validation; leave the class out or validate on no sample");
    assert_snapshot!(fit("--labels none.txt"), @"none.txt: no sample has a label");
    assert_snapshot!(fit("--labels half.npy"), @"half.npy: tags, row 0, column 0: the value is 0.5 instead of 0 or 1");
    assert_snapshot!(fit("--labels no.txt"), @"no.txt: no such file");
    assert_snapshot!(fit("--labels a.json"), @"a.json: unknown kind of file; labels are .npy, .npz, .csv, .tsv or .txt");
    folder.file("rows.txt", "1\nx\n");
    assert_snapshot!(fit("--labels y.txt --validation-rows rows.txt"), @"rows.txt: line 2: 'x' is not a row");
}

#[test]
fn bad_options() {
    assert_snapshot!(refused("--beta0 1"), @"--beta0 needs --labels");
    assert_snapshot!(refused("--labels y.txt --validation 1"), @"--validation must be at least 0 and below 1, not 1");
    assert_snapshot!(refused("--labels y.txt --alpha-beta 2"), @"--alpha-beta must be between 0 and 1, not 2");
    assert_snapshot!(refused("--labels y.txt --nu x"), @"--nu must be a number, not 'x'");
    assert_snapshot!(refused("--labels y.txt --validate-every 0"), @"--validate-every must be at least 1, not 0");
    assert_snapshot!(refused("--labels y.txt --beta0 z=1"), @"--beta0: unknown modality 'z'; the modalities are a, b");
}

#[test]
fn bad_predictions() {
    let folder = folder();
    folder.ok(&format!("{FIT} --out m.safetensors"));
    assert_snapshot!(folder.refused(&format!("{PREDICT} --out p.csv")), @"m.safetensors: the model has no classifier: it was learnt without labels (see 'fit --labels')");
    folder.ok(&format!("{FIT} --labels y.txt --out m.safetensors"));
    assert_snapshot!(folder.refused(&format!("{PREDICT} --out p.txt")), @"--out: the name must end in .csv or .npy, not p.txt");
    assert_snapshot!(folder.refused(&format!("{PREDICT} --top 3 --out p.csv")), @"--top must be at most the number of labels, 2, not 3");
    assert_snapshot!(folder.refused(&format!("{PREDICT} --modality-only c --out p.csv")), @"--modality-only: 'c' is not among the modalities given");
    folder.ok(&format!("{PREDICT} --out p.csv"));
    folder.file("z.txt", classes(|i| if i == 3 { "cow" } else { "dog" }));
    assert_snapshot!(folder.refused("score --predictions p.csv --labels z.txt"), @"z.txt: label 3: 'cow' is not one of the labels cat, dog");
    assert_snapshot!(folder.refused("score --predictions y.txt --labels y.txt"), @"y.txt: not a csv file of 'msbdl predict'");
    folder.npy("p.npy", &Array2::zeros((40, 2)));
    assert_snapshot!(folder.refused("score --predictions p.npy --labels y.txt"), @"p.npy: not a csv file of 'msbdl predict'");
    assert_snapshot!(folder.refused("score --predictions no.csv --labels y.txt"), @"no.csv: no such file");
}
