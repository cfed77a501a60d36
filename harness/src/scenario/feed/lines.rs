//! A file that is handed on line by line, so that whoever parses it knows where they are. The parser's own count is off
//! behind blank lines and in files with CRLF.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

#[derive(Debug)]
pub(super) struct Lines<R> {
    from: R,
    /// Number of the line that was handed on last, from 1; 0 before the first.
    line: Rc<Cell<u64>>,
    between: bool,
}

impl<R: BufRead> Lines<R> {
    /// The lines, and where to read the number of the present one.
    pub fn new(from: R) -> (Self, Rc<Cell<u64>>) {
        let line = Rc::new(Cell::new(0));
        (Self { from, line: line.clone(), between: true }, line)
    }
}

impl<R: BufRead> Read for Lines<R> {
    /// Never more than the rest of one line.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let ahead = self.from.fill_buf()?;
        let rest = memchr::memchr(b'\n', ahead).map_or(ahead.len(), |end| end + 1);
        let taken = rest.min(into.len());
        into[..taken].copy_from_slice(&ahead[..taken]);
        let ends = taken > 0 && into[taken - 1] == b'\n';
        self.from.consume(taken);
        if taken > 0 && std::mem::replace(&mut self.between, ends) {
            self.line.set(self.line.get() + 1);
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use csv::{ByteRecord, ReaderBuilder};

    use super::*;

    #[test]
    fn rows_stand_in_the_lines_in_which_an_editor_shows_them() {
        for (text, expected) in [
            ("a\n1\n2", vec![2, 3]),
            ("a\r\n1\r\n2\r\n", vec![2, 3]),
            ("a\n\n\n1\n\n2\n\n", vec![4, 6]),
            ("a\r\n\r\n1\r\n\r\n2", vec![3, 5]),
            ("a\n\"1\nx\"\n2\n", vec![3, 4]),
        ] {
            let (lines, line) = Lines::new(text.as_bytes());
            let mut reader = ReaderBuilder::new().from_reader(lines);
            let mut record = ByteRecord::new();
            let mut found = Vec::new();
            while reader.read_byte_record(&mut record).unwrap() {
                found.push(line.get());
            }
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn a_line_longer_than_the_buffer_is_one_line() {
        let (mut lines, line) = Lines::new(&b"abcdefgh\nx"[..]);
        let mut part = [0; 3];
        let mut seen = Vec::new();
        while lines.read(&mut part).unwrap() > 0 {
            seen.push(line.get());
        }
        assert_eq!(seen, [1, 1, 1, 2]);
    }
}
