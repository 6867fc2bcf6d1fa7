//! Reads the files of the `--modality` options, and names them when something is wrong.

use std::collections::HashMap;

use msbdl::Error;
use ndarray::Array2;

use crate::fail::{Fail, Result};
use crate::read;

/// Modalities and their files, as the user named them.
pub struct Files(Vec<(String, String)>);

/// What the files hold: matrices over the same samples, NaN where a modality is missing.
pub struct Samples {
    pub tables: Vec<(String, Array2<f64>)>,
    /// How many samples lack each modality.
    pub absent: Vec<(String, usize)>,
    pub names: Names,
}

/// What the files call rows and columns, if anything.
pub struct Names {
    pub ids: Option<Vec<String>>,
    columns: HashMap<String, Vec<String>>,
}

impl Files {
    /// Takes the values of `--modality NAME=FILE`.
    pub fn parse(options: &[String]) -> Result<Self> {
        let mut files: Vec<(String, String)> = Vec::with_capacity(options.len());
        for option in options {
            let (name, file) = match option.split_once('=') {
                Some((name, file)) if !name.is_empty() && !file.is_empty() => (name, file),
                _ => {
                    return Err(Fail::input(format!(
                        "--modality must be NAME=FILE, as in image=image.npy, not '{option}'"
                    )));
                }
            };
            if name.chars().any(char::is_control) {
                let problem = "--modality: a name must not hold line breaks or control characters";
                return Err(Fail::input(problem));
            }
            if let Some((_, other)) = files.iter().find(|(known, _)| known == name) {
                return Err(Fail::input(format!(
                    "--modality: '{name}' was given twice, as {other} and as {file}"
                )));
            }
            files.push((name.to_owned(), file.to_owned()));
        }
        Ok(Files(files))
    }

    pub fn each(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, file)| (name.as_str(), file.as_str()))
    }

    fn file(&self, name: &str) -> Option<&str> {
        let mut files = self.each();
        files.find(|(known, _)| *known == name).map(|(_, file)| file)
    }

    pub fn read(&self, with_ids: bool) -> Result<Samples> {
        let mut tables = Vec::with_capacity(self.0.len());
        let mut columns = HashMap::new();
        for (name, file) in self.each() {
            let mut table = read::table(file, with_ids)?;
            if let Some(header) = table.columns.take() {
                columns.insert(name.to_owned(), header);
            }
            tables.push((name.to_owned(), table));
        }
        let (tables, ids) = match with_ids {
            true => {
                let matched = read::matched(tables)?;
                (matched.tables, Some(matched.ids))
            }
            false => {
                let plain = tables.into_iter().map(|(name, table)| (name, table.values));
                (plain.collect(), None)
            }
        };
        let absent = absent(&tables);
        let names = Names { ids, columns };
        Ok(Samples { tables, absent, names })
    }

    /// Says what the library found wrong, with the file or the option.
    pub fn explain(&self, error: &Error, names: &Names) -> Fail {
        let text = error.to_string();
        let modality = match error {
            Error::Numerical(_) => return Fail::Run(text),
            // The library calls its settings as the options are called.
            Error::Setting { .. }
            | Error::UnknownModality { .. }
            | Error::TooManyAtoms { .. }
            | Error::Groups(_) => {
                return Fail::Input(format!("--{text}"));
            }
            Error::DuplicateName { name }
            | Error::Empty { name, .. }
            | Error::SampleCounts { name, .. }
            | Error::AllMissing { name }
            | Error::Constant { name, .. }
            | Error::FeatureCount { name, .. }
            | Error::Infinite { name, .. }
            | Error::PartlyMissing { name, .. } => Some(name),
            _ => None,
        };
        let file = modality.and_then(|name| self.file(name));
        let file = file.map_or(String::new(), |file| format!("{file}: "));
        Fail::Input(format!("{file}{text}{}", names.place(error)))
    }
}

impl Names {
    /// Says in the user's terms which sample and feature an error is about.
    fn place(&self, error: &Error) -> String {
        let (row, column) = match error {
            Error::Infinite { name, row, column } => {
                let header = self.columns.get(name);
                (*row, header.and_then(|header| header.get(*column)))
            }
            Error::PartlyMissing { row, .. } | Error::NothingObserved { row } => (*row, None),
            _ => return String::new(),
        };
        // With ids the rows are those of the union of all files, which nobody has seen.
        let row = match self.ids.as_ref().and_then(|ids| ids.get(row)) {
            Some(id) => format!("sample id {id:?}"),
            None => "counting from 0".to_owned(),
        };
        match column {
            Some(column) => format!(" ({row}, column {column:?})"),
            None => format!(" ({row})"),
        }
    }
}

fn absent(tables: &[(String, Array2<f64>)]) -> Vec<(String, usize)> {
    let count = |values: &Array2<f64>| {
        let rows = values.rows().into_iter();
        rows.filter(|row| row.iter().all(|x| x.is_nan())).count()
    };
    tables.iter().map(|(name, values)| (name.clone(), count(values))).collect()
}

impl Samples {
    pub fn count(&self) -> usize {
        self.tables.first().map_or(0, |(_, values)| values.nrows())
    }

    /// Says how many samples lack each modality, if any does or if ids were matched.
    pub fn note(&self) -> Option<String> {
        note(self.count(), &self.absent, self.names.ids.is_some())
    }
}

fn note(count: usize, absent: &[(String, usize)], matched: bool) -> Option<String> {
    let lacking: Vec<_> = absent
        .iter()
        .filter(|(_, lacking)| *lacking > 0)
        .map(|(name, lacking)| format!("{lacking} lack '{name}'"))
        .collect();
    match (lacking.as_slice(), matched) {
        ([], false) => None,
        ([], true) => Some(format!("{count} samples matched by id, all in every modality")),
        (_, true) => Some(format!("{count} samples matched by id: {}", lacking.join(", "))),
        (_, false) => Some(format!("{count} samples: {}", lacking.join(", "))),
    }
}
