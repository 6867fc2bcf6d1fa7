//! Runs every `msbdl` line that the README shows, in order.

use crate::folder::{Folder, values};

#[test]
fn the_commands_of_the_readme_run() {
    let readme = include_str!("../../../../README.md");
    let blocks = readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines: Vec<&str> =
        blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("msbdl ")).collect();
    assert!(lines.len() >= 8, "the README shows {} commands", lines.len());
    let folder = Folder::empty();
    // What a reader would bring: two views of sixty things of two kinds.
    for (name, seed) in [("image.npy", 1), ("text.npy", 2)] {
        let mut data = values(60, 8, seed);
        data.rows_mut().into_iter().step_by(2).for_each(|mut row| row += 0.5);
        folder.npy(name, &data);
    }
    folder.file("classes.txt", "bird\nfish\n".repeat(30));
    let printed: Vec<String> = lines.into_iter().map(|line| folder.ok(line)).collect();
    assert!(printed.concat().contains("converged"), "{}", printed.concat());
    assert!(printed.concat().contains("balanced accuracy"), "{}", printed.concat());
}
