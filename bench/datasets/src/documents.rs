//! JSON documents of one shape, each in one field of CSV: a list of small objects with names, prices and
//! flags.

use crate::Rows;
use crate::random::Random;
use crate::row::{push_number, push_padded};
use crate::words::{push_name, push_title};

/// The rows: a number and a document.
#[derive(Debug)]
pub struct Documents {
    random: Random,
    row: u64,
    document_bytes: usize,
}

impl Documents {
    /// Documents of about so many bytes each.
    #[must_use]
    pub fn new(seed: u64, document_bytes: usize) -> Documents {
        Documents { random: Random::new(seed, 104), row: 0, document_bytes }
    }

    fn push_item(&mut self, out: &mut Vec<u8>, text: &mut Vec<u8>) {
        out.extend_from_slice(br#"{""sku"": "#);
        push_number(out, u64::from(self.random.below(1_000_000_000)));
        for (key, is_name) in [(&br#", ""title"": """#[..], false), (br#", ""maker"": """#, true)] {
            text.clear();
            if is_name {
                push_name(text, &mut self.random);
            } else {
                push_title(text, &mut self.random);
            }
            out.extend_from_slice(key);
            out.extend(text.iter().filter(|byte| **byte != b'"'));
            out.extend_from_slice(br#""""#);
        }
        out.extend_from_slice(br#", ""price"": "#);
        push_number(out, u64::from(self.random.below(1000)));
        out.push(b'.');
        push_padded(out, u64::from(self.random.below(100)), 2);
        let in_stock: &[u8] = if self.random.percent(80) { b"true" } else { b"false" };
        out.extend_from_slice(br#", ""in_stock"": "#);
        out.extend_from_slice(in_stock);
        out.push(b'}');
    }
}

impl Rows for Documents {
    fn header(&self) -> String {
        "id,document\n".to_owned()
    }

    fn push_row(&mut self, out: &mut Vec<u8>) {
        self.row += 1;
        let (start, mut text) = (out.len(), Vec::new());
        push_number(out, self.row);
        out.extend_from_slice(br#","{""items"": ["#);
        self.push_item(out, &mut text);
        while out.len() - start < self.document_bytes {
            out.extend_from_slice(b", ");
            self.push_item(out, &mut text);
        }
        out.extend_from_slice(b"]}\"\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Limit, write_rows};

    #[test]
    fn a_row_is_a_line_with_a_document_of_the_size_asked_for() {
        let mut bytes = Vec::new();
        write_rows(&mut bytes, &mut Documents::new(1, 20_000), Limit::Rows(3)).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.lines().count(), 4);
        for line in text.lines().skip(1) {
            assert!((20_000..20_300).contains(&line.len()), "{}", line.len());
            assert!(line.matches('"').count() % 2 == 0 && line.ends_with("]}\""));
        }
    }
}
