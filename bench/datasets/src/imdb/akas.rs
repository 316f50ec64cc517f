//! `title.akas`: what titles are called elsewhere; about three rows a title.

use crate::Rows;
use crate::random::Random;
use crate::row::{NULL, end_line, push_id, push_number, tab};
use crate::words::push_title;

const REGIONS: &[&str] = &[
    "US", "GB", "DE", "FR", "JP", "IN", "ES", "IT", "PT", "BR", "RU", "CA", "GR", "PL", "HU", "MX", "AR",
    "TR", "SE", "XWW",
];
const LANGUAGES: &[&str] = &["en", "ja", "fr", "de", "es", "it", "pt", "hi", "ru", "el", "tr", "sv"];
const KINDS: &[&str] =
    &["imdbDisplay", "original", "alternative", "working", "dvd", "festival", "video", "tv"];
const ATTRIBUTES: &[&str] = &[
    "literal title",
    "informal title",
    "short title",
    "complete title",
    "new title",
    "transliterated title",
];

/// The rows of `title.akas`.
#[derive(Debug)]
pub(super) struct Akas {
    random: Random,
    title: u32,
    ordering: u32,
    last: u32,
}

impl Akas {
    pub(super) fn new(random: Random) -> Akas {
        Akas { random, title: 0, ordering: 0, last: 0 }
    }

    /// One of `values` in `percent` of the rows, else NULL.
    fn push_optional(&mut self, out: &mut Vec<u8>, percent: u32, values: &[&str]) {
        let given = self.random.percent(percent);
        out.extend_from_slice(if given { self.random.pick(values).as_bytes() } else { NULL });
        tab(out);
    }
}

impl Rows for Akas {
    fn header(&self) -> String {
        "titleId\tordering\ttitle\tregion\tlanguage\ttypes\tattributes\tisOriginalTitle\n".to_owned()
    }

    fn push_row(&mut self, out: &mut Vec<u8>) {
        if self.ordering == self.last {
            self.title += 1;
            self.ordering = 0;
            self.last = 1 + self.random.skewed(9);
        }
        self.ordering += 1;
        push_id(out, b"tt", self.title);
        tab(out);
        push_number(out, u64::from(self.ordering));
        tab(out);
        push_title(out, &mut self.random);
        tab(out);
        self.push_optional(out, 85, REGIONS);
        self.push_optional(out, 65, LANGUAGES);
        self.push_optional(out, 30, KINDS);
        self.push_optional(out, 2, ATTRIBUTES);
        out.push(if self.ordering == 1 { b'1' } else { b'0' });
        tab(out);
        end_line(out);
    }
}
