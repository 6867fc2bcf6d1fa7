//! Reads comma- and tab-separated text as f64 matrices.

use std::collections::HashMap;
use std::io::Read;

use ::csv::ByteRecord;
use ndarray::Array2;

use super::rows::Rows;
use super::{Table, quoted};

const MISSING: [&str; 7] = ["", "NA", "NaN", "nan", "null", "N/A", "."];

pub(super) fn read(source: impl Read, delimiter: u8, with_ids: bool) -> Result<Table, String> {
    let mut rows = Rows::new(source, delimiter);
    let first = rows.next()?.ok_or("the file is empty")?;
    let id_columns = usize::from(with_ids);
    let width = rows.record.len() - id_columns;
    if width == 0 {
        return Err("no columns beside the ids".to_owned());
    }
    let columns = header(&rows.record, first, id_columns)?;
    let mut next = match columns {
        Some(_) => rows.next()?,
        None => Some(first),
    };
    let mut ids = with_ids.then(Ids::default);
    let mut values = Vec::new();
    while let Some(line) = next {
        if let Some(ids) = &mut ids {
            ids.push(cell(&rows.record, line, 0)?, line)?;
        }
        for at in id_columns..rows.record.len() {
            let text = cell(&rows.record, line, at)?;
            let value = number(text).ok_or_else(|| {
                let name = columns.as_ref().map(|names| names[at - id_columns].as_str());
                not_a_number(line, at, name, text)
            })?;
            values.push(value);
        }
        next = rows.next()?;
    }
    let count = values.len() / width;
    if count == 0 {
        return Err("no rows below the header".to_owned());
    }
    let values = Array2::from_shape_vec((count, width), values).map_err(|e| e.to_string())?;
    let ids = ids.map(|ids| ids.names);
    Ok(Table { values, ids, columns })
}

/// The names in the first row, or nothing if that row holds values already.
fn header(record: &ByteRecord, line: u64, skip: usize) -> Result<Option<Vec<String>>, String> {
    let names = (skip..record.len())
        .map(|at| Ok(cell(record, line, at)?.to_owned()))
        .collect::<Result<Vec<_>, String>>()?;
    let is_header = names.iter().any(|name| number(name).is_none());
    Ok(is_header.then_some(names))
}

fn cell(record: &ByteRecord, line: u64, at: usize) -> Result<&str, String> {
    match std::str::from_utf8(&record[at]) {
        Ok(text) => Ok(text.trim()),
        Err(_) => Err(format!("line {line}, column {}: not UTF-8 text", at + 1)),
    }
}

fn number(text: &str) -> Option<f64> {
    let missing = || MISSING.contains(&text).then_some(f64::NAN);
    text.parse().ok().or_else(missing)
}

fn not_a_number(line: u64, at: usize, name: Option<&str>, text: &str) -> String {
    let name = name.map(|name| format!(" ({})", quoted(name)));
    let hint = match at {
        0 => "; if the first column holds sample ids, use --ids",
        _ => "",
    };
    format!(
        "line {line}, column {}{}: {} is not a number{hint}",
        at + 1,
        name.unwrap_or_default(),
        quoted(text)
    )
}

/// Sample ids in file order, each with the line it came from.
#[derive(Default)]
struct Ids {
    names: Vec<String>,
    lines: HashMap<String, u64>,
}

impl Ids {
    fn push(&mut self, id: &str, line: u64) -> Result<(), String> {
        if id.is_empty() {
            let hint = match line {
                1 => "; a header needs at least one name that is not a number",
                _ => "",
            };
            return Err(format!("line {line} has an empty id{hint}"));
        }
        self.names.push(id.to_owned());
        match self.lines.insert(id.to_owned(), line) {
            Some(earlier) => {
                Err(format!("lines {earlier} and {line} have the same id {}", quoted(id)))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    fn plain(text: &str) -> Table {
        read(text.as_bytes(), b',', false).unwrap()
    }

    fn problem(text: &str) -> String {
        read(text.as_bytes(), b',', false).unwrap_err()
    }

    fn problem_with_ids(text: &str) -> String {
        read(text.as_bytes(), b',', true).unwrap_err()
    }

    #[test]
    fn a_first_row_of_numbers_and_gaps_is_data() {
        let table = plain("1,NA,\n2,3,4\n");
        assert_eq!(table.columns, None);
        assert_eq!(table.values.column(0), array![1.0, 2.0]);
    }

    #[test]
    fn a_first_row_with_one_name_is_a_header() {
        let table = plain("1,b,\n2,3,4\n");
        assert_eq!(table.columns.unwrap(), ["1", "b", ""]);
        assert_eq!(table.values, array![[2.0, 3.0, 4.0]]);
        assert_eq!(table.ids, None);
    }

    #[test]
    fn the_id_column_has_no_say_in_the_header() {
        let table = read(&b"s1,1\ns2,2\n"[..], b',', true).unwrap();
        assert_eq!(table.ids.unwrap(), ["s1", "s2"]);
        assert_eq!(table.columns, None);
        assert_eq!(table.values, array![[1.0], [2.0]]);
    }

    #[test]
    fn ids_are_text_and_no_values() {
        let table = read(&b"id,a,b\n 7 ,1,2\nNA,3,4\n"[..], b',', true).unwrap();
        assert_eq!(table.ids.unwrap(), ["7", "NA"]);
        assert_eq!(table.columns.unwrap(), ["a", "b"]);
        assert_eq!(table.values, array![[1.0, 2.0], [3.0, 4.0]]);
    }

    #[test]
    fn tabs_separate_tsv() {
        let table = read(&b"a\tb,c\n1\t2\n"[..], b'\t', false).unwrap();
        assert_eq!(table.columns.unwrap(), ["a", "b,c"]);
        assert_eq!(table.values, array![[1.0, 2.0]]);
    }

    #[test]
    fn every_missing_marker_is_nan() {
        let values = plain("a,b,c,d,e,f,g,h\n1,,NA,NaN,nan,null,N/A,.\n").values;
        assert_eq!(values[[0, 0]], 1.0);
        assert!(values.iter().skip(1).all(|value| value.is_nan()));
    }

    #[test]
    fn infinities_and_great_integers_are_read() {
        let values = plain("inf,-inf,9007199254740993,1e3\n").values;
        let rounded = 9_007_199_254_740_992.0;
        assert_eq!(values, array![[f64::INFINITY, f64::NEG_INFINITY, rounded, 1e3]]);
    }

    #[test]
    fn quotes_spaces_bom_and_foreign_line_ends_are_fine() {
        for text in [
            "a,b\n1,2\n3,4\n",
            "a,b\r\n1,2\r\n3,4",
            "a,b\r1,2\r3,4\r",
            "\u{feff}\"a\",\"b\"\r\n\"1\",\"2\"\r\n\"3\",\"4\"\r\n",
            " a , b \n 1 , 2 \n 3 , 4 \n",
        ] {
            let table = plain(text);
            assert_eq!(table.columns.unwrap(), ["a", "b"], "{text:?}");
            assert_eq!(table.values, array![[1.0, 2.0], [3.0, 4.0]], "{text:?}");
        }
    }

    #[test]
    fn cells_that_are_no_number_name_line_column_and_text() {
        assert_eq!(problem("1,2\n3,x\n"), "line 2, column 2: \"x\" is not a number");
        assert_eq!(
            problem_with_ids("id,a,b\ns1,1,\"x\ny\"\n"),
            r#"line 2, column 3 ("b"): "x\ny" is not a number"#
        );
    }

    #[test]
    fn text_in_the_first_column_hints_at_ids() {
        assert_eq!(
            problem("id,a\ns1,1\n"),
            r#"line 2, column 1 ("id"): "s1" is not a number; if the first column holds sample ids, use --ids"#
        );
    }

    #[test]
    fn repeated_and_empty_ids_name_their_lines() {
        assert_eq!(
            problem_with_ids("id,a\ns,1\nt,2\n s,3\n"),
            r#"lines 2 and 4 have the same id "s""#
        );
        assert_eq!(problem_with_ids("id,a\ns,1\n ,2\n"), "line 3 has an empty id");
        assert_eq!(
            problem_with_ids(",0,1\ns,1,2\n"),
            "line 1 has an empty id; a header needs at least one name that is not a number"
        );
    }

    #[test]
    fn files_without_rows_or_columns_are_refused() {
        assert_eq!(problem(""), "the file is empty");
        assert_eq!(problem("\n\n"), "the file is empty");
        assert_eq!(problem("a,b\n"), "no rows below the header");
        assert_eq!(problem_with_ids("id\ns1\n"), "no columns beside the ids");
    }

    #[test]
    fn other_encodings_are_refused() {
        let latin = read(&b"1,2\n3,\xe9\n"[..], b',', false).unwrap_err();
        assert_eq!(latin, "line 2, column 2: not UTF-8 text");
    }
}
