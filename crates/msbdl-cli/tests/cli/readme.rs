//! Runs every `msbdl` line that the README shows, in order.

use crate::folder::Folder;

#[test]
fn the_commands_of_the_readme_run() {
    let readme = include_str!("../../../../README.md");
    let shown = readme.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next());
    let lines: Vec<&str> = shown
        .into_iter()
        .flat_map(str::lines)
        .filter_map(|line| line.strip_prefix("msbdl "))
        .collect();
    assert!(lines.len() >= 5, "the README shows {} commands", lines.len());
    let folder = Folder::empty();
    let printed: Vec<String> = lines.into_iter().map(|line| folder.ok(line)).collect();
    assert!(printed.concat().contains("converged"), "{}", printed.concat());
}
