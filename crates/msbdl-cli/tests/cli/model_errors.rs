//! Checks that model files that are none, and samples that do not fit the model, are refused.

use std::fs;
use std::sync::OnceLock;

use insta::assert_snapshot;
use ndarray::Array2;
use serde_json::Value;

use crate::folder::{Folder, values};

/// The bytes of a small model of `a` (6 features) and `b` (5 features).
fn model() -> &'static [u8] {
    static MODEL: OnceLock<Vec<u8>> = OnceLock::new();
    MODEL.get_or_init(|| {
        let folder = Folder::new();
        let files = "--modality a=a.npy --modality b=b.npy";
        folder.ok(&format!("fit {files} --atoms 5 --max-iter 3 --out m.safetensors"));
        fs::read(folder.path("m.safetensors")).unwrap()
    })
}

/// A folder with that model, changed by `change`.
fn with(change: impl FnOnce(&[u8]) -> Vec<u8>) -> Folder {
    let folder = Folder::new();
    folder.file("m.safetensors", change(model()));
    folder
}

/// What every command that takes a model says about a changed one.
fn refused(change: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let folder = with(change);
    let info = folder.refused("info m.safetensors");
    let encode = "encode --model m.safetensors --modality a=a.npy --out out.npz";
    assert_eq!(folder.refused(encode), info);
    assert_eq!(folder.refused("recovery --model m.safetensors --truth none"), info);
    let problem = info.strip_prefix("m.safetensors: ");
    problem.expect("the file comes first").to_owned()
}

/// Rewrites the header (length, JSON, then the tensors) and the metadata entry inside it.
fn edited(bytes: &[u8], edit: impl FnOnce(&mut Value, &mut Value)) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let inner = header["__metadata__"]["msbdl"].as_str().unwrap();
    let mut inner: Value = serde_json::from_str(inner).unwrap();
    edit(&mut header, &mut inner);
    if let Some(metadata) = header.get_mut("__metadata__") {
        metadata["msbdl"] = Value::String(inner.to_string());
    }
    let header = header.to_string();
    let length = (header.len() as u64).to_le_bytes();
    [&length, header.as_bytes(), &bytes[8 + length_of(bytes)..]].concat()
}

fn length_of(bytes: &[u8]) -> usize {
    u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize
}

#[test]
fn the_editing_itself_leaves_a_model_readable() {
    with(|bytes| edited(bytes, |_, _| {})).ok("info m.safetensors");
}

#[test]
fn missing_model() {
    assert_snapshot!(Folder::new().refused("info none.safetensors"), @"none.safetensors: no such file");
}

#[test]
fn model_that_is_a_folder() {
    assert!(Folder::new().refused("info .").starts_with(".: "));
}

#[test]
fn empty_model() {
    assert_snapshot!(refused(|_| Vec::new()), @"not a complete model file (header too small)");
}

#[test]
fn model_cut_short() {
    assert_snapshot!(refused(|bytes| bytes[..bytes.len() - 8].to_vec()), @"not a complete model file (incomplete metadata, file not fully covered)");
    assert_snapshot!(refused(|bytes| bytes[..20].to_vec()), @"not a complete model file (invalid header length)");
}

#[test]
fn file_of_another_kind() {
    assert_snapshot!(refused(|_| b"1,2,3\n4,5,6\n".repeat(10)), @"not a complete model file (header too large)");
}

#[test]
fn safetensors_of_another_program() {
    let foreign = |bytes: &[u8]| {
        edited(bytes, |header, _| {
            header.as_object_mut().unwrap().remove("__metadata__");
        })
    };
    assert_snapshot!(refused(foreign), @"a safetensors file, but not a model: it has no entry 'msbdl'");
}

#[test]
fn newer_version() {
    let newer = |bytes: &[u8]| edited(bytes, |_, inner| inner["format_version"] = 2.into());
    assert_snapshot!(refused(newer), @"format version 2; this program reads versions up to 1");
}

#[test]
fn model_without_one_of_its_dictionaries() {
    let renamed = |bytes: &[u8]| {
        edited(bytes, |header, _| {
            let tensors = header.as_object_mut().unwrap();
            let tensor = tensors.remove("dictionary.a").unwrap();
            tensors.insert("dictionary.z".to_owned(), tensor);
        })
    };
    assert_snapshot!(refused(renamed), @"tensor 'dictionary.a' is missing");
}

#[test]
fn model_whose_sizes_contradict_each_other() {
    let transposed = |bytes: &[u8]| {
        edited(bytes, |header, _| {
            let shape = &mut header["dictionary.a"]["shape"];
            *shape = vec![shape[1].clone(), shape[0].clone()].into();
        })
    };
    assert_snapshot!(refused(transposed), @"tensor 'dictionary.a' is F64 [5, 6] instead of F64 [6, 5]");
}

#[test]
fn unknown_modality() {
    assert_snapshot!(
        with(<[u8]>::to_vec).refused("encode --model m.safetensors --modality c=a.npy --out out.npz"),
        @"a.npy: modality 'c' is not in the model; its modalities are a, b"
    );
}

#[test]
fn wrong_number_of_features() {
    assert_snapshot!(
        with(<[u8]>::to_vec).refused("encode --model m.safetensors --modality a=b.npy --out out.npz"),
        @"b.npy: modality 'a' has 5 features, but the model was learnt on 6"
    );
}

#[test]
fn sample_without_any_modality() {
    let folder = with(<[u8]>::to_vec);
    let mut data = values(4, 6, 1);
    data.row_mut(2).fill(f64::NAN);
    folder.npy("a.npy", &data);
    assert_snapshot!(
        folder.refused("encode --model m.safetensors --modality a=a.npy --out out.npz"),
        @"row 2: every modality is missing (counting from 0)"
    );
}

#[test]
fn infinite_values() {
    let folder = with(<[u8]>::to_vec);
    folder.npy("a.npy", &Array2::from_elem((4, 6), f64::INFINITY));
    assert_snapshot!(
        folder.refused("encode --model m.safetensors --modality a=a.npy --out out.npz"),
        @"a.npy: modality 'a', row 0, column 0: the value is infinite (counting from 0)"
    );
}

#[test]
fn codes_over_the_data() {
    let folder = with(<[u8]>::to_vec);
    folder.ok("encode --model m.safetensors --modality a=a.npy --out codes.npz");
    for spec in ["codes.npz:reconstruction.a", "./codes.npz:reconstruction.a"] {
        let line = format!("encode --model m.safetensors --modality a={spec} --out codes.npz");
        assert_eq!(folder.refused(&line), format!("--out: {spec} is the input"));
    }
}

#[test]
fn truth_of_other_modalities() {
    let folder = with(<[u8]>::to_vec);
    folder.ok("synth --recipe bimodal --samples 10 --seed 1 --out synth");
    assert_snapshot!(
        folder.refused("recovery --model m.safetensors --truth synth"),
        @"m.safetensors: modality 'a' is not in the truth, which has mod1, mod2"
    );
}

#[test]
fn truth_that_is_not_there() {
    assert_snapshot!(
        with(<[u8]>::to_vec).refused("recovery --model m.safetensors --truth ."),
        @"./truth.npz: no such file; --truth takes a folder of 'msbdl synth'"
    );
}
