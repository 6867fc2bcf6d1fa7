//! Reads the rows of separated text with the lines they begin at.

use std::io::Read;

use ::csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder};

use super::io_problem;
use super::lines::Lines;

/// Rows of one width, with the lines they begin at.
pub(super) struct Rows<R> {
    reader: Reader<Lines<R>>,
    pub(super) record: ByteRecord,
    width: Option<usize>,
    empty_line: Option<u64>,
}

impl<R: Read> Rows<R> {
    pub(super) fn new(source: R, delimiter: u8) -> Self {
        let mut builder = ReaderBuilder::new();
        builder.has_headers(false).flexible(true).delimiter(delimiter);
        Self {
            reader: builder.from_reader(Lines::new(source)),
            record: ByteRecord::new(),
            width: None,
            empty_line: None,
        }
    }

    /// Reads the next row into `record` and gives its line, or nothing at the end.
    pub(super) fn next(&mut self) -> Result<Option<u64>, String> {
        loop {
            let before = self.reader.position().line();
            if !self.advance()? {
                return Ok(None);
            }
            let breaks = self.record.as_slice().iter().filter(|&&b| b == b'\n');
            let line = self.reader.position().line() - 1 - breaks.count() as u64;
            // A row that ends inside quotes took the last newline for its own.
            if line < before {
                return Err(format!("line {before} has a quote that is never closed"));
            }
            // The csv crate skips empty lines. Among rows one may be a sample that lost its
            // only value, and skipping it would shift the samples after it.
            if line > before {
                self.empty_line.get_or_insert(before);
            }
            let spaces = self.record.len() == 1 && is_spaces(&self.record[0]);
            if spaces && self.width != Some(1) {
                self.empty_line.get_or_insert(line);
                continue;
            }
            if let Some(empty) = self.empty_line {
                return Err(format!("line {empty} is empty"));
            }
            let cells = self.record.len();
            let expected = *self.width.get_or_insert(cells);
            if cells != expected {
                let plural = if cells == 1 { "" } else { "s" };
                return Err(format!("line {line} has {cells} cell{plural}, {expected} expected"));
            }
            return Ok(Some(line));
        }
    }

    fn advance(&mut self) -> Result<bool, String> {
        self.reader.read_byte_record(&mut self.record).map_err(|error| match error.kind() {
            ErrorKind::Io(error) => io_problem(error),
            _ => error.to_string(),
        })
    }
}

/// Unlike a line of spaces, a cell that is empty here was written as `""`.
fn is_spaces(cell: &[u8]) -> bool {
    !cell.is_empty() && cell.trim_ascii().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Result<Vec<u64>, String> {
        let mut rows = Rows::new(text.as_bytes(), b',');
        std::iter::from_fn(|| rows.next().transpose()).collect()
    }

    fn problem(text: &str) -> String {
        lines(text).unwrap_err()
    }

    #[test]
    fn rows_know_the_line_they_begin_at() {
        for end in ["\n", "\r\n", "\r"] {
            let text = ["\u{feff}\"a", "b\",1", "2,\"3", "", "4\"", "5,6"].join(end);
            assert_eq!(lines(&text).unwrap(), [1, 3, 6], "{text:?}");
        }
    }

    #[test]
    fn empty_lines_may_only_trail() {
        for end in ["\n", "\r\n\r\n", "  \n"] {
            assert_eq!(lines(&format!("1,2\n3,4\n{end}")).unwrap().len(), 2);
        }
        assert_eq!(problem("1,2\r\n\r\n3,4\r\n"), "line 2 is empty");
        assert_eq!(problem("1\n\n3"), "line 2 is empty");
        assert_eq!(problem("1,2\n \n3,4\n"), "line 2 is empty");
        assert_eq!(problem("\n1,2\n"), "line 1 is empty");
    }

    #[test]
    fn a_quoted_gap_in_a_single_column_is_a_row() {
        assert_eq!(lines("\"\"\r\n2\r\n\"\"\r\n").unwrap(), [1, 2, 3]);
    }

    #[test]
    fn open_quotes_are_refused() {
        for text in ["1,2\n\"3,4\n5,6\n", "1,2\r\n3,\"4"] {
            assert_eq!(problem(text), "line 2 has a quote that is never closed");
        }
    }

    #[test]
    fn ragged_rows_name_line_and_widths() {
        assert_eq!(problem("a,b\n1,2\n3\n"), "line 3 has 1 cell, 2 expected");
        let quoted_break = "\"a\r\nb\",c\r\n1,2\r\n3,4,5\r\n";
        assert_eq!(problem(quoted_break), "line 4 has 3 cells, 2 expected");
    }
}
