//! Checks that `msbdl synth` writes what it says, where it may.

use std::fs;

use insta::assert_snapshot;
use npyz::npz::NpzArchive;
use serde_json::Value;

use crate::folder::Folder;

const SMALL: &str = "--samples 30 --features 6 --atoms 8 --sparsity 2 --seed 3";

fn names(folder: &Folder, name: &str) -> Vec<String> {
    let entries = fs::read_dir(folder.path(name)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn data_truth_and_recipe_are_written() {
    let folder = Folder::empty();
    let told = folder.ok(&format!("synth --recipe trimodal {SMALL} --missing .2,.4,0 --out s"));
    assert_eq!(
        told,
        "wrote 30 samples of mod1, mod2, mod3 with 6 features, and their truth, to s\n"
    );
    let files = ["mod1.npy", "mod2.npy", "mod3.npy", "recipe.json", "truth.npz"];
    assert_eq!(names(&folder, "s"), files);

    let archive = NpzArchive::open(folder.path("s/truth.npz")).unwrap();
    let mut arrays: Vec<&str> = archive.array_names().collect();
    arrays.sort();
    let of = |kind: &str| (1..=3).map(|j| format!("{kind}.mod{j}")).collect::<Vec<_>>();
    let expected = [of("codes"), of("dictionary"), vec!["sigma2".to_owned()]].concat();
    assert_eq!(arrays, expected);

    let recipe = fs::read(folder.path("s/recipe.json")).unwrap();
    let recipe: Value = serde_json::from_slice(&recipe).unwrap();
    assert_eq!(recipe["recipe"], "trimodal");
    assert_eq!(recipe["missing"], serde_json::json!([0.2, 0.4, 0.0]));
    assert_eq!(recipe["seed"], 3);
}

#[test]
fn missing_shares_become_rows_of_nan() {
    let folder = Folder::empty();
    folder.ok(&format!("synth --recipe bimodal {SMALL} --missing .2,.4 --out s"));
    for (name, expected) in [("mod1", 6), ("mod2", 12)] {
        let bytes = fs::read(folder.path(&format!("s/{name}.npy"))).unwrap();
        let values = npyz::NpyFile::new(&bytes[..]).unwrap().into_vec::<f64>().unwrap();
        let missing = values.chunks(6).filter(|row| row.iter().all(|x| x.is_nan())).count();
        assert_eq!(missing, expected, "{name}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let folder = Folder::empty();
    for out in ["one", "two"] {
        folder.ok(&format!("synth --recipe bimodal {SMALL} --out {out}"));
    }
    for name in names(&folder, "one") {
        let bytes = |out: &str| fs::read(folder.path(&format!("{out}/{name}"))).unwrap();
        assert_eq!(bytes("one"), bytes("two"), "{name}");
    }
}

#[test]
fn a_folder_of_its_own_is_written_again() {
    let folder = Folder::empty();
    folder.ok(&format!("synth --recipe trimodal {SMALL} --out s"));
    folder.ok(&format!("synth --recipe bimodal {SMALL} --out s"));
    assert_eq!(names(&folder, "s"), ["mod1.npy", "mod2.npy", "recipe.json", "truth.npz"]);
}

#[test]
fn a_folder_with_other_files_is_refused() {
    let folder = Folder::empty();
    folder.ok(&format!("synth --recipe bimodal {SMALL} --out s"));
    folder.file("s/notes.txt", "mine");
    let before = fs::read(folder.path("s/mod1.npy")).unwrap();
    let line = "synth --recipe bimodal --seed 4 --out s";
    assert_snapshot!(
        folder.refused(line),
        @"--out: s holds other files already, such as notes.txt"
    );
    assert_eq!(fs::read(folder.path("s/mod1.npy")).unwrap(), before);
}

#[test]
fn data_of_someone_else_are_not_taken_for_its_own() {
    let folder = Folder::empty();
    fs::create_dir(folder.path("s")).unwrap();
    folder.file("s/mod1.npy", "mine");
    assert_snapshot!(
        folder.refused("synth --recipe bimodal --seed 4 --out s"),
        @"--out: s holds other files already, such as mod1.npy"
    );
    assert_eq!(fs::read(folder.path("s/mod1.npy")).unwrap(), b"mine");
}

#[test]
fn options_out_of_range_are_named() {
    for (options, problem) in [
        ("--snr 30", "--snr must give 2 numbers, one for each modality, not 1"),
        ("--snr 30,loud", "--snr must be a number, not 'loud'"),
        ("--snr nan,1", "--snr must be between -100 and 300 dB, not NaN"),
        ("--missing .2", "--missing must give 2 numbers, one for each modality, not 1"),
        ("--missing -.1,0", "--missing must be at least 0 and below 1, not -0.1"),
        ("--missing 1,0", "--missing must be at least 0 and below 1, not 1"),
        ("--missing .6,.6", "--missing must add up to at most 1: no sample lacks two modalities"),
        ("--samples 0", "--samples must be at least 1, not 0"),
        ("--features -1", "--features must be at least 1, not -1"),
        ("--atoms x", "--atoms must be a whole number, not 'x'"),
        ("--sparsity 51", "--sparsity must be at most --atoms, 50, not 51"),
        (
            "--samples 100000000",
            "--samples times --features must be at most 1000000000, not 100000000 times 20",
        ),
    ] {
        let line = format!("synth --recipe bimodal --seed 1 --out s {options}");
        assert_eq!(Folder::new().refused(&line), problem);
    }
}
