//! Gives each test a folder of its own, and runs the binary in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use ndarray::Array2;
use npyz::WriterBuilder;
use npyz::npz::NpzArchive;

/// What the outputs hold before a command runs.
const EARLIER: &[u8] = b"an earlier result";

pub struct Folder(tempfile::TempDir);

impl Folder {
    /// An empty folder.
    pub fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A folder with two good modalities `a` and `b` of 40 samples, and earlier results.
    pub fn new() -> Self {
        let folder = Self::empty();
        folder.npy("a.npy", &values(40, 6, 1));
        folder.npy("b.npy", &values(40, 5, 2));
        folder.file("out.safetensors", EARLIER);
        folder.file("out.npz", EARLIER);
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    pub fn npy(&self, name: &str, values: &Array2<f64>) {
        let mut bytes = Vec::new();
        let shape = [values.nrows() as u64, values.ncols() as u64];
        let options = npyz::WriteOptions::new().default_dtype().shape(&shape);
        let mut array = options.writer(&mut bytes).begin_nd().unwrap();
        array.extend(values.iter().copied()).unwrap();
        array.finish().unwrap();
        self.file(name, bytes);
    }

    /// An npy file with a header of one's own.
    pub fn raw_npy(&self, name: &str, descr: &str, shape: &str, data: &[u8]) {
        let header =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let length = u16::try_from(header.len()).unwrap().to_le_bytes();
        let bytes = [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat();
        self.file(name, bytes);
    }

    /// A command line without spaces inside its words, to be run here.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_msbdl"));
        command.current_dir(&self.0).args(line.split_whitespace());
        command
    }

    pub fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs a command that must succeed, and gives its stdout.
    pub fn ok(&self, line: &str) -> String {
        let output = self.run(line);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must refuse its input, and gives its one line without `msbdl: `.
    pub fn refused(&self, line: &str) -> String {
        let before = self.content();
        let output = self.run(line);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{line}: {stderr}");
        assert!(output.stdout.is_empty(), "{line} printed to stdout");
        assert_eq!(self.content(), before, "{line} changed the folder");
        let problem = stderr.trim_end().strip_prefix("msbdl: ");
        problem.expect("the line begins with the program's name").to_owned()
    }

    /// An array of an archive, a vector as one row.
    pub fn array(&self, file: &str, name: &str) -> Array2<f64> {
        let mut archive = NpzArchive::open(self.path(file)).unwrap();
        let entry = archive.by_name(name).unwrap().expect(name);
        let shape = match *entry.shape() {
            [rows, columns] => (rows as usize, columns as usize),
            [columns] => (1, columns as usize),
            _ => panic!("{name} has another shape"),
        };
        Array2::from_shape_vec(shape, entry.into_vec().unwrap()).unwrap()
    }

    /// The names of an archive's arrays.
    pub fn arrays(&self, file: &str) -> Vec<String> {
        let archive = NpzArchive::open(self.path(file)).unwrap();
        let mut names: Vec<String> = archive.array_names().map(str::to_owned).collect();
        names.sort();
        names
    }

    /// Every file of the folder, with what it holds.
    fn content(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.clone(), fs::read(path).ok()))
            .collect()
    }
}

/// Numbers without structure, the same for the same seed.
pub fn values(rows: usize, columns: usize, seed: u64) -> Array2<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    Array2::from_shape_fn((rows, columns), |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    })
}
