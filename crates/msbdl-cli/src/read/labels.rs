//! Reads labels: a class for each sample, or a matrix of tags.

use std::collections::HashMap;
use std::io::{BufReader, Read};

use ::csv::ByteRecord;
use ndarray::{Array2, Axis};
use npyz::npz::NpzArchive;
use npyz::{NpyFile, TypeChar};

use super::rows::Rows;
use super::{BadInput, extension, open, quoted, split, table};

const MISSING: [&str; 7] = ["", "NA", "NaN", "nan", "null", "N/A", "."];

/// Labels as a file holds them; nothing for a sample without one.
pub enum Given {
    Classes(Vec<Option<String>>),
    /// A row of NaN is a sample whose tags are not known.
    Tags {
        names: Option<Vec<String>>,
        values: Array2<f64>,
    },
}

/// Which samples the labels are for.
#[derive(Clone, Copy)]
pub struct Samples<'a> {
    pub count: usize,
    pub ids: Option<&'a [String]>,
}

/// Reads labels from .npy, .npz, .csv, .tsv or .txt and brings them into the samples' order.
pub fn labels(spec: &str, samples: Samples) -> anyhow::Result<Given> {
    let (path, array) = split(spec);
    let bad = |problem: String| BadInput::new(path, &problem);
    let read = || match (extension(path).as_str(), samples.ids) {
        ("npy" | "npz", Some(_)) => Err("with --ids, labels need a csv or tsv file".to_owned()),
        ("npy", None) => {
            let file = NpyFile::new(BufReader::new(open(path)?));
            vector(file.map_err(|error| format!("not a readable npy file ({error})"))?, spec)
        }
        ("npz", None) => {
            let archive = NpzArchive::new(BufReader::new(open(path)?));
            let mut archive =
                archive.map_err(|error| format!("not an npz archive, or truncated ({error})"))?;
            let name = array.ok_or("name the array of the labels, as in file.npz:y")?;
            let entry = archive.by_name(name).map_err(|error| error.to_string())?;
            vector(entry.ok_or_else(|| format!("no array '{name}' in the archive"))?, spec)
        }
        ("csv", _) => text(open(path)?, b',', samples),
        ("tsv", _) => text(open(path)?, b'\t', samples),
        ("txt", None) => lines(open(path)?),
        ("txt", Some(_)) => Err("with --ids, labels need a csv or tsv file".to_owned()),
        _ => Err("unknown kind of file; labels are .npy, .npz, .csv, .tsv or .txt".to_owned()),
    };
    let given = read().map_err(bad)?;
    let found = match &given {
        Given::Classes(labels) => labels.len(),
        Given::Tags { values, .. } => values.nrows(),
    };
    if found != samples.count {
        let problem = format!("there are {found} labels for {} samples", samples.count);
        return Err(bad(problem).into());
    }
    Ok(given)
}

/// A vector of classes, or a matrix of tags.
fn vector<R: Read>(file: NpyFile<R>, spec: &str) -> Result<Given, String> {
    if file.shape().len() == 2 {
        let values = table(spec, false).map_err(|error| {
            let text = error.to_string();
            text.split_once(": ").map_or(text.clone(), |(_, problem)| problem.to_owned())
        })?;
        return Ok(Given::Tags { names: None, values: values.values });
    }
    let npyz::DType::Plain(kind) = file.dtype() else {
        return Err("the labels are structured; a vector or a matrix is expected".to_owned());
    };
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    macro_rules! each {
        ($kind:ty) => {
            file.into_vec::<$kind>().map_err(failed)?.iter().map(ToString::to_string).collect()
        };
    }
    let words: Vec<String> = match (kind.type_char(), kind.size_field()) {
        (TypeChar::Float, 4) => each!(f32),
        (TypeChar::Float, 8) => each!(f64),
        (TypeChar::Int, 1) => each!(i8),
        (TypeChar::Int, 2) => each!(i16),
        (TypeChar::Int, 4) => each!(i32),
        (TypeChar::Int, 8) => each!(i64),
        (TypeChar::Uint, 1) => each!(u8),
        (TypeChar::Uint, 2) => each!(u16),
        (TypeChar::Uint, 4) => each!(u32),
        (TypeChar::Uint, 8) => each!(u64),
        (TypeChar::Bool, _) => {
            let values = file.into_vec::<bool>().map_err(failed)?;
            values.into_iter().map(|value| u8::from(value).to_string()).collect()
        }
        (TypeChar::UnicodeStr, _) => file.into_vec::<String>().map_err(failed)?,
        _ => return Err(format!("labels of dtype {} are not supported", kind)),
    };
    Ok(Given::Classes(words.iter().map(|word| label(word)).collect()))
}

fn label(text: &str) -> Option<String> {
    let text = text.trim();
    (!MISSING.contains(&text)).then(|| text.to_owned())
}

/// One label a line; an empty line is a sample without one.
fn lines(mut source: impl Read) -> Result<Given, String> {
    let mut text = String::new();
    source.read_to_string(&mut text).map_err(|_| "not UTF-8 text".to_owned())?;
    Ok(Given::Classes(text.lines().map(label).collect()))
}

/// One column of classes or several of tags, behind the ids if there are any.
fn text(source: impl Read, delimiter: u8, samples: Samples) -> Result<Given, String> {
    let mut rows = Rows::new(source, delimiter);
    let mut all: Vec<(u64, Vec<String>)> = Vec::new();
    while let Some(line) = rows.next()? {
        all.push((line, cells(&rows.record, line)?));
    }
    let skip = usize::from(samples.ids.is_some());
    let width = all.first().map_or(0, |(_, cells)| cells.len()).saturating_sub(skip);
    if width == 0 {
        return Err("there are no labels in it".to_owned());
    }
    let has_header = match samples.ids {
        Some(ids) => !ids.contains(&all[0].1[0]),
        // Names of tags are no numbers; a name above classes is one line too many.
        None if width > 1 => all[0].1.iter().any(|cell| number(cell).is_none()),
        None => all.len() == samples.count + 1,
    };
    let header = has_header.then(|| all.remove(0).1[skip..].to_vec());
    let order = match samples.ids {
        Some(ids) => by_id(&all, ids)?,
        None => (0..all.len()).map(Some).collect(),
    };
    if width == 1 {
        let one = |row: Option<usize>| row.and_then(|row| label(&all[row].1[skip]));
        return Ok(Given::Classes(order.into_iter().map(one).collect()));
    }
    let mut values = Array2::from_elem((order.len(), width), f64::NAN);
    for (mut to, row) in values.axis_iter_mut(Axis(0)).zip(order) {
        let Some((line, cells)) = row.map(|row| &all[row]) else { continue };
        for (to, cell) in to.iter_mut().zip(&cells[skip..]) {
            *to = number(cell)
                .ok_or_else(|| format!("line {line}: {} is not a number", quoted(cell)))?;
        }
    }
    Ok(Given::Tags { names: header, values })
}

fn number(cell: &str) -> Option<f64> {
    if MISSING.contains(&cell) { Some(f64::NAN) } else { cell.parse().ok() }
}

/// For each sample the row with its id.
fn by_id(rows: &[(u64, Vec<String>)], ids: &[String]) -> Result<Vec<Option<usize>>, String> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (place, (line, cells)) in rows.iter().enumerate() {
        if let Some(earlier) = places.insert(cells[0].as_str(), place) {
            let (earlier, id) = (rows[earlier].0, quoted(&cells[0]));
            return Err(format!("lines {earlier} and {line} have the same id {id}"));
        }
    }
    let order: Vec<Option<usize>> = ids.iter().map(|id| places.get(id.as_str()).copied()).collect();
    match order.iter().any(Option::is_some) {
        true => Ok(order),
        false => Err("none of its ids is that of a sample".to_owned()),
    }
}

fn cells(record: &ByteRecord, line: u64) -> Result<Vec<String>, String> {
    let each =
        record.iter().map(|cell| std::str::from_utf8(cell).map(|text| text.trim().to_owned()));
    each.collect::<Result<_, _>>().map_err(|_| format!("line {line}: not UTF-8 text"))
}
