//! Reads arrays out of npz archives.

use std::io::{BufReader, Read, Seek};

use ndarray::Array2;
use npyz::npz::NpzArchive;

use super::npy::{bad_header, matrix};

/// Reads the array of that name, or the only one.
pub(super) fn read(file: impl Read + Seek, name: Option<&str>) -> Result<Array2<f64>, String> {
    let mut archive = NpzArchive::new(BufReader::new(file))
        .map_err(|error| format!("not an npz archive, or truncated ({error})"))?;
    let mut names: Vec<_> = archive.array_names().map(str::to_owned).collect();
    // The zip crate lists them in no fixed order.
    names.sort();
    let name = match (name, names.as_slice()) {
        (_, []) => return Err("the archive holds no arrays".to_owned()),
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, [first, ..]) => {
            let list = names.join(", ");
            return Err(format!(
                "the archive holds several arrays ({list}); name one, as in file.npz:{first}"
            ));
        }
    };
    let entry = archive
        .by_name(name)
        .map_err(|error| format!("array '{name}': {}", bad_header(&error)))?
        .ok_or_else(|| {
            let list = names.join(", ");
            format!("no array '{name}' in the archive; it holds {list}")
        })?;
    let header = entry.header().clone();
    matrix(header, BufReader::new(entry.into_inner()))
        .map_err(|problem| format!("array '{name}' {problem}"))
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use npyz::WriterBuilder;
    use npyz::npz::NpzWriter;

    use super::*;

    /// An archive of zeros in those shapes, and of one text file.
    fn archive(arrays: &[(&str, &[u64])]) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        let mut writer = NpzWriter::new(&mut bytes);
        for (name, shape) in arrays {
            let entry = writer.array::<f64>(name, Default::default()).unwrap();
            let mut array = entry.default_dtype().shape(shape).begin_nd().unwrap();
            array.extend((0..shape.iter().product()).map(|_| 0.0)).unwrap();
            array.finish().unwrap();
        }
        let zip = writer.zip_writer();
        zip.start_file("readme.txt", Default::default()).unwrap();
        zip.write_all(b"hello").unwrap();
        drop(writer);
        bytes.into_inner()
    }

    fn problem(bytes: &[u8], name: Option<&str>) -> String {
        read(Cursor::new(bytes), name).unwrap_err()
    }

    #[test]
    fn the_only_array_needs_no_name() {
        let bytes = archive(&[("arr_0", &[2, 3])]);
        assert_eq!(read(Cursor::new(bytes), None).unwrap().dim(), (2, 3));
    }

    #[test]
    fn one_of_several_is_found_by_name() {
        let bytes = archive(&[("wide", &[2, 3]), ("a:b.npz", &[3, 2])]);
        let read = |name| read(Cursor::new(&bytes), Some(name)).unwrap().dim();
        assert_eq!(read("wide"), (2, 3));
        assert_eq!(read("a:b.npz"), (3, 2));
    }

    #[test]
    fn a_wrong_name_lists_the_right_ones() {
        let bytes = archive(&[("b", &[2, 3]), ("a", &[2, 3])]);
        assert_eq!(problem(&bytes, Some("c")), "no array 'c' in the archive; it holds a, b");
    }

    #[test]
    fn several_arrays_need_a_name() {
        let bytes = archive(&[("b", &[2, 3]), ("a", &[2, 3])]);
        assert_eq!(
            problem(&bytes, None),
            "the archive holds several arrays (a, b); name one, as in file.npz:a"
        );
    }

    #[test]
    fn an_archive_without_arrays_is_refused() {
        assert_eq!(problem(&archive(&[]), None), "the archive holds no arrays");
    }

    #[test]
    fn problems_of_an_array_name_it() {
        let flat = archive(&[("x", &[6])]);
        assert!(problem(&flat, None).starts_with("array 'x' has shape (6,)"));
        let mut bytes = Cursor::new(Vec::new());
        let mut writer = NpzWriter::new(&mut bytes);
        let zip = writer.zip_writer();
        zip.start_file("x.npy", Default::default()).unwrap();
        zip.write_all(b"junk").unwrap();
        drop(writer);
        assert!(problem(bytes.get_ref(), None).starts_with("array 'x': not a readable npy file"));
    }

    #[test]
    fn foreign_and_truncated_files_are_refused() {
        let bytes = archive(&[("x", &[2, 3])]);
        for bytes in [&b""[..], b"1,2,3\n", &bytes[..bytes.len() - 30]] {
            let problem = problem(bytes, None);
            assert!(problem.starts_with("not an npz archive, or truncated"), "{problem}");
        }
    }

    #[test]
    fn a_wrong_checksum_is_noticed() {
        let mut bytes = archive(&[("x", &[2, 3])]);
        let directory = bytes.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
        bytes[directory + 16] ^= 1;
        assert_eq!(problem(&bytes, None), "array 'x' is damaged: Invalid checksum");
    }
}
