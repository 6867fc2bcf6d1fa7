//! Outputs that cannot be written are refused before the work begins.

use std::fs;

use insta::assert_snapshot;

use crate::folder::{Folder, values};

/// Fits into a folder with a directory `taken.safetensors` and `full`, which holds a file.
fn fit_to(out: &str) -> String {
    let folder = Folder::new();
    fs::create_dir(folder.path("taken.safetensors")).unwrap();
    // The data do not exist: the output must be checked before they are read.
    folder.refused(&format!("fit --modality a=none.npy --atoms 5 --out {out}"))
}

#[test]
fn folder_that_does_not_exist() {
    assert_snapshot!(fit_to("none/m.safetensors"), @"--out: there is no folder none");
}

#[test]
fn folder_that_is_a_file() {
    assert_snapshot!(fit_to("a.npy/m.safetensors"), @"--out: a.npy is not a folder");
}

#[test]
fn output_that_is_a_folder() {
    assert_snapshot!(
        fit_to("taken.safetensors"),
        @"--out: taken.safetensors is a directory, a file is expected"
    );
}

#[test]
fn folder_that_cannot_be_written() {
    // Root may write anywhere but here.
    if cfg!(target_os = "linux") {
        let problem = fit_to("/proc/m.safetensors");
        assert!(problem.starts_with("--out: cannot write to folder /proc: "), "{problem}");
    }
}

#[test]
fn output_of_another_kind() {
    assert_snapshot!(fit_to("a.npy"), @"--out: the name must end in .safetensors, not a.npy");
    assert_snapshot!(
        Folder::new().refused("encode --model m.safetensors --modality a=a.npy --out codes.csv"),
        @"--out: the name must end in .npz, not codes.csv"
    );
}

#[test]
fn demo_into_a_file() {
    assert_snapshot!(Folder::new().refused("demo --out a.npy"), @"--out: a.npy is not a folder");
}

#[test]
fn demo_where_there_is_no_folder() {
    assert_snapshot!(Folder::new().refused("demo --out no/demo"), @"--out: there is no folder no");
}

/// Runs a command whose files may not grow beyond a few kilobytes, as on a full disk.
#[cfg(unix)]
fn on_a_full_disk(folder: &Folder, line: &str) -> String {
    let limited = format!("trap '' XFSZ; ulimit -f 4; exec {} {line}", env!("CARGO_BIN_EXE_msbdl"));
    let mut command = std::process::Command::new("sh");
    let output = command.args(["-c", &limited]).current_dir(folder.path("")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr
}

#[test]
#[cfg(unix)]
fn full_disk() {
    let folder = Folder::new();
    folder.npy("wide.npy", &values(40, 100, 1));
    let fit = "fit --modality a=wide.npy --atoms 30 --max-iter 2";
    folder.ok(&format!("{fit} --out m.safetensors"));
    let names = || {
        let entries = fs::read_dir(folder.path("")).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
    };
    let before = names();
    let problem = on_a_full_disk(&folder, &format!("{fit} --out out.safetensors"));
    assert!(problem.starts_with("msbdl: out.safetensors: "), "{problem}");
    let encode = "encode --model m.safetensors --modality a=wide.npy --out out.npz";
    let problem = on_a_full_disk(&folder, encode);
    assert!(problem.starts_with("msbdl: out.npz: cannot be written: "), "{problem}");
    assert_eq!(names(), before);
    for name in ["out.safetensors", "out.npz"] {
        assert_eq!(fs::read(folder.path(name)).unwrap(), b"an earlier result");
    }
}
