//! Turns every line ending of a stream into one newline.

use std::io::{self, Read};

/// Passes bytes on with CRLF and lone CR as LF, and with a newline at the end.
///
/// The csv crate counts lines one short in CRLF files and not at all in CR files.
pub(super) struct Lines<R> {
    inner: R,
    after_return: bool,
    at_line_start: bool,
}

impl<R> Lines<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, after_return: false, at_line_start: true }
    }

    /// Rewrites the bytes in place and says how many are left.
    fn rewrite(&mut self, bytes: &mut [u8]) -> usize {
        let mut kept = 0;
        for at in 0..bytes.len() {
            let byte = bytes[at];
            let second_of_pair = byte == b'\n' && self.after_return;
            self.after_return = byte == b'\r';
            if !second_of_pair {
                bytes[kept] = if byte == b'\r' { b'\n' } else { byte };
                self.at_line_start = bytes[kept] == b'\n';
                kept += 1;
            }
        }
        kept
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let count = self.inner.read(buffer)?;
            if count == 0 && !self.at_line_start {
                buffer[0] = b'\n';
                self.at_line_start = true;
                return Ok(1);
            }
            let kept = self.rewrite(&mut buffer[..count]);
            // Zero means the end, so a lone LF that was dropped must not return it.
            if kept > 0 || count == 0 {
                return Ok(kept);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out one byte at a time, so that every pair is split over two reads.
    struct Dripping<'a>(&'a [u8]);

    impl Read for Dripping<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(&mut buffer[..1])
        }
    }

    fn rewritten(text: &str) -> [String; 2] {
        let mut whole = String::new();
        let mut dripped = String::new();
        Lines::new(text.as_bytes()).read_to_string(&mut whole).unwrap();
        Lines::new(Dripping(text.as_bytes())).read_to_string(&mut dripped).unwrap();
        [whole, dripped]
    }

    #[test]
    fn every_ending_becomes_one_newline() {
        for (text, expected) in [
            ("", ""),
            ("a\nb\n", "a\nb\n"),
            ("a\r\nb\r\n", "a\nb\n"),
            ("a\rb\r", "a\nb\n"),
            ("a\r\n\r\nb", "a\n\nb\n"),
            ("a\r\r\nb\n\n", "a\n\nb\n\n"),
        ] {
            assert_eq!(rewritten(text), [expected, expected], "{text:?}");
        }
    }
}
