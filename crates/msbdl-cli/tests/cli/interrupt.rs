//! Ends a fit early with Ctrl-C and keeps what was learnt.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::folder::Folder;

/// A fit that would take long, once it has begun.
fn long_fit(folder: &Folder, size: &str) -> (Child, BufReader<std::process::ChildStderr>) {
    folder.ok(&format!("synth --recipe bimodal {size} --missing .1,.1 --seed 1 --out s"));
    let line =
        "fit --modality mod1=s/mod1.npy --modality mod2=s/mod2.npy --atoms 200 --out m.safetensors";
    let mut command = folder.command(line);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    // The note on missing modalities is the last line before the fit.
    assert!(next(&mut stderr).contains("lack"));
    std::thread::sleep(std::time::Duration::from_millis(500));
    (child, stderr)
}

fn next(stderr: &mut impl BufRead) -> String {
    let mut line = String::new();
    while line.trim().is_empty() {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "stderr ended");
    }
    line
}

fn interrupt(child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
}

#[test]
#[cfg(unix)]
fn once_the_model_so_far_is_written() {
    let folder = Folder::empty();
    let (child, mut stderr) = long_fit(&folder, "--samples 2000");
    interrupt(&child);
    assert!(next(&mut stderr).contains("stopping"));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let summary = String::from_utf8(output.stdout).unwrap();
    assert!(summary.contains("interrupted: the model is what was learnt so far"), "{summary}");
    let info: Value = serde_json::from_str(&folder.ok("info m.safetensors --json")).unwrap();
    assert_eq!(info["stop_reason"], "interrupted");
}

#[test]
#[cfg(unix)]
fn twice_ends_at_once() {
    let folder = Folder::empty();
    // Large enough for the second signal to come before the iteration ends.
    let (child, mut stderr) = long_fit(&folder, "--samples 20000 --features 50 --atoms 200");
    interrupt(&child);
    assert!(next(&mut stderr).contains("stopping"));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(!folder.path("m.safetensors").exists());
}
