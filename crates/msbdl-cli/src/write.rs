//! Writes files: checks where they go beforehand, and puts only complete ones in place.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use ndarray::{Array1, Array2, ArrayViewD};
use npyz::npz::NpzWriter;
use npyz::zip::{CompressionMethod, DateTime, write::FileOptions};
use npyz::{DType, TypeStr, WriterBuilder};
use tempfile::NamedTempFile;

use crate::fail::{Fail, Result};

/// Checks that a file of this name can be written.
pub fn check_file(path: &Path, extension: &str) -> Result<()> {
    let shown = path.display();
    if path.is_dir() {
        return Err(Fail::input(format!("--out: {shown} is a directory, a file is expected")));
    }
    let given = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    if !given.eq_ignore_ascii_case(extension) {
        return Err(Fail::input(format!("--out: the name must end in .{extension}, not {shown}")));
    }
    check_writable(folder(path))
}

/// Checks that a folder is there or can be made, and that files can be put into it.
pub fn check_folder(path: &Path) -> Result<()> {
    if path.exists() {
        return check_writable(path);
    }
    check_writable(folder(path))
}

fn check_writable(folder: &Path) -> Result<()> {
    let shown = folder.display();
    match fs::metadata(folder) {
        Ok(found) if !found.is_dir() => {
            return Err(Fail::input(format!("--out: {shown} is not a folder")));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Fail::input(format!("--out: there is no folder {shown}")));
        }
        Err(error) => return Err(Fail::input(format!("--out: {shown}: {error}"))),
    }
    // Only trying tells: permissions, quotas and read-only disks all have a say.
    tempfile::tempfile_in(folder)
        .map(drop)
        .map_err(|error| Fail::input(format!("--out: cannot write to folder {shown}: {error}")))
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes a folder that [`check_folder`] has passed.
pub fn make_folder(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(error) if !path.is_dir() => Err(failed(path, &error)),
        _ => Ok(()),
    }
}

/// A complete file beside the place where it belongs.
#[must_use]
pub struct Ready<'a> {
    file: NamedTempFile,
    path: &'a Path,
}

impl Ready<'_> {
    /// Puts the file in its place, over an earlier one.
    pub fn place(self) -> Result<()> {
        let placed = self.file.persist(self.path).map(drop);
        placed.map_err(|error| failed(self.path, &error.error))
    }
}

/// Writes a file beside `path`.
pub fn beside(path: &Path, fill: impl FnOnce(&mut File) -> io::Result<()>) -> Result<Ready<'_>> {
    let write = || {
        let mut file = named_temporary(folder(path))?;
        fill(file.as_file_mut())?;
        file.as_file().sync_all()?;
        Ok(Ready { file, path })
    };
    write().map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &io::Error) -> Fail {
    Fail::run(format!("{}: cannot be written: {error}", path.display()))
}

#[cfg(unix)]
fn named_temporary(folder: &Path) -> io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    // Temporary files are private by default; results get what the umask allows.
    let permissions = fs::Permissions::from_mode(0o666);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".msbdl-").permissions(permissions).tempfile_in(folder)
}

#[cfg(not(unix))]
fn named_temporary(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(".msbdl-").tempfile_in(folder)
}

/// An array of an archive.
pub enum Values<'a> {
    Matrix(&'a Array2<f64>),
    Vector(&'a Array1<f64>),
    Text(&'a [String]),
}

/// Writes an archive as `numpy.savez` does.
pub fn npz<'a>(path: &'a Path, arrays: &[(String, Values)]) -> Result<Ready<'a>> {
    beside(path, |file| {
        let mut archive = NpzWriter::new(BufWriter::new(file));
        let written = arrays.iter().try_for_each(|(name, values)| put(&mut archive, name, values));
        let written = written.and_then(|()| archive.zip_writer().finish()?.flush());
        if written.is_err() {
            // An archive that is dropped unfinished tries again and prints that it cannot.
            std::mem::forget(archive);
        }
        written
    })
}

fn put<W: Write + io::Seek>(
    archive: &mut NpzWriter<W>,
    name: &str,
    values: &Values,
) -> io::Result<()> {
    // The default time makes the same results the same bytes.
    let options = FileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(DateTime::default())
        .large_file(true);
    let zip = archive.zip_writer();
    zip.start_file(format!("{name}.npy"), options)?;
    // An archive sums up every piece that it is handed, however small.
    let mut entry = BufWriter::with_capacity(1 << 16, zip);
    match values {
        Values::Matrix(matrix) => put_numbers(&mut entry, matrix.view().into_dyn())?,
        Values::Vector(vector) => put_numbers(&mut entry, vector.view().into_dyn())?,
        Values::Text(texts) => {
            let options = npyz::WriteOptions::<str>::new()
                .dtype(text_type(texts)?)
                .shape(&[texts.len() as u64]);
            let mut array = options.writer(&mut entry).begin_nd()?;
            texts.iter().try_for_each(|text| array.push(text.as_str()))?;
            array.finish()?;
        }
    }
    entry.flush()
}

/// Writes an array as `numpy.save` does, many numbers at a time.
fn put_numbers(to: &mut impl Write, array: ArrayViewD<f64>) -> io::Result<()> {
    const MANY: usize = 4096;
    let shape: Vec<u64> = array.shape().iter().map(|&x| x as u64).collect();
    let options = npyz::WriteOptions::<f64>::new()
        .dtype(DType::new_scalar("<f8".parse().map_err(io::Error::other)?));
    // This writes the header; the numbers one by one would take longer than all else here.
    drop(options.shape(&shape).writer(&mut *to).begin_nd()?);
    let array = array.as_standard_layout();
    let mut bytes = [0; 8 * MANY];
    for some in array.as_slice().unwrap_or_default().chunks(MANY) {
        let bytes = &mut bytes[..8 * some.len()];
        let places = bytes.chunks_exact_mut(8).zip(some);
        places.for_each(|(place, x)| place.copy_from_slice(&x.to_le_bytes()));
        to.write_all(bytes)?;
    }
    Ok(())
}

/// Writes whole numbers as `numpy.save` does.
pub fn npy_numbers<'a>(path: &'a Path, numbers: &[i64]) -> Result<Ready<'a>> {
    beside(path, |file| {
        let mut buffer = BufWriter::new(file);
        let options = npyz::WriteOptions::new().default_dtype().shape(&[numbers.len() as u64]);
        let mut array = options.writer(&mut buffer).begin_nd()?;
        array.extend(numbers.iter().copied())?;
        array.finish()?;
        buffer.flush()
    })
}

/// Writes text as `numpy.save` does.
pub fn npy_texts<'a>(path: &'a Path, texts: &[String]) -> Result<Ready<'a>> {
    beside(path, |file| {
        let mut buffer = BufWriter::new(file);
        let options = npyz::WriteOptions::<str>::new().dtype(text_type(texts)?);
        let mut array = options.shape(&[texts.len() as u64]).writer(&mut buffer).begin_nd()?;
        for text in texts {
            array.push(text)?;
        }
        array.finish()?;
        buffer.flush()
    })
}

/// Unicode of the length of the longest text.
fn text_type(texts: &[String]) -> io::Result<DType> {
    let longest = texts.iter().map(|text| text.chars().count()).max();
    // NumPy has no text of length nought.
    let length = longest.unwrap_or(0).max(1) as u64;
    let kind: TypeStr = format!("<U{length}").parse().map_err(io::Error::other)?;
    Ok(DType::new_scalar(kind))
}

/// Writes one matrix as `numpy.save` does.
pub fn npy<'a>(path: &'a Path, matrix: &Array2<f64>) -> Result<Ready<'a>> {
    beside(path, |file| {
        let mut buffer = BufWriter::new(file);
        put_numbers(&mut buffer, matrix.view().into_dyn())?;
        buffer.flush()
    })
}
