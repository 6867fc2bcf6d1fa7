//! Files that cannot be read are refused in one line that names them.

use insta::assert_snapshot;

use crate::folder::Folder;

/// Fits the good `a` and a file of another kind.
fn fit_with(folder: &Folder, file: &str) -> String {
    let line =
        format!("fit --modality a=a.npy --modality b={file} --atoms 5 --out out.safetensors");
    folder.refused(&line)
}

fn array(descr: &str, shape: &str) -> String {
    let folder = Folder::new();
    folder.raw_npy("x.npy", descr, shape, &[0; 24 * 8]);
    fit_with(&folder, "x.npy")
}

fn text(content: &str) -> String {
    let folder = Folder::new();
    folder.file("x.csv", content);
    fit_with(&folder, "x.csv")
}

#[test]
fn missing_file() {
    assert_snapshot!(fit_with(&Folder::new(), "x.npy"), @"x.npy: no such file");
}

#[test]
fn unknown_kind_of_file() {
    assert_snapshot!(
        fit_with(&Folder::new(), "x.h5"),
        @"x.h5: unknown kind of file; .npy, .npz, .csv and .tsv are supported"
    );
}

#[test]
fn text_arrays() {
    assert_snapshot!(
        array("<U3", "(4, 4)"),
        @"x.npy: the array has dtype '<U3' (text); float32, float64, integers and bool are supported"
    );
}

#[test]
fn object_arrays() {
    assert_snapshot!(
        array("|O", "(4, 4)"),
        @"x.npy: the array has dtype '|O' (Python objects); float32, float64, integers and bool are supported"
    );
}

#[test]
fn arrays_of_one_dimension() {
    assert_snapshot!(
        array("<f8", "(24,)"),
        @"x.npy: the array has shape (24,), two dimensions expected; a single feature must be a column: shape (24, 1)"
    );
}

#[test]
fn arrays_of_three_dimensions() {
    assert_snapshot!(
        array("<f8", "(2, 3, 4)"),
        @"x.npy: the array has shape (2, 3, 4), two dimensions expected"
    );
}

#[test]
fn arrays_without_rows() {
    assert_snapshot!(
        array("<f8", "(0, 3)"),
        @"x.npy: the array has no rows: its shape is (0, 3)"
    );
}

#[test]
fn truncated_array() {
    assert_snapshot!(
        array("<f8", "(25, 1)"),
        @"x.npy: the array is truncated: 24 of 25 values are there"
    );
}

#[test]
fn truncated_archive() {
    let folder = Folder::new();
    folder.file("x.npz", "PK\x03\x04 and no more");
    assert!(fit_with(&folder, "x.npz").starts_with("x.npz: not an npz archive, or truncated"));
}

#[test]
fn ragged_text() {
    assert_snapshot!(text("1,2\n3\n"), @"x.csv: line 2 has 1 cell, 2 expected");
}

#[test]
fn text_that_is_no_number() {
    assert_snapshot!(
        text("length,width\n1,2\n3,wide\n"),
        @r#"x.csv: line 3, column 2 ("width"): "wide" is not a number"#
    );
}

#[test]
fn text_without_rows() {
    assert_snapshot!(text("length,width\n"), @"x.csv: no rows below the header");
}

#[test]
fn ids_in_arrays() {
    assert_snapshot!(
        Folder::new().refused("fit --modality a=a.npy --ids --atoms 5 --out out.safetensors"),
        @"a.npy: sample ids need a csv or tsv file"
    );
}
