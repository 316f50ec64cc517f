//! `title.basics`: kind, names, years and genres; one row a title.

use super::title_kind;
use crate::Rows;
use crate::random::Random;
use crate::row::{NULL, end_line, push_id, push_number, tab};
use crate::words::push_title;

const GENRES: &[&str] = &[
    "Action",
    "Adventure",
    "Animation",
    "Biography",
    "Comedy",
    "Crime",
    "Documentary",
    "Drama",
    "Family",
    "Fantasy",
    "History",
    "Horror",
    "Music",
    "Mystery",
    "News",
    "Reality-TV",
    "Romance",
    "Short",
    "Sport",
    "Talk-Show",
    "Thriller",
];

/// The rows of `title.basics`.
#[derive(Debug)]
pub(super) struct Basics {
    random: Random,
    seed: u64,
    tconst: u32,
}

impl Basics {
    pub(super) fn new(random: Random, seed: u64) -> Basics {
        Basics { random, seed, tconst: 0 }
    }

    /// Primary and original title, which are the same in nine rows of ten.
    fn push_titles(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        push_title(out, &mut self.random);
        let end = out.len();
        tab(out);
        if self.random.percent(90) {
            out.extend_from_within(start..end);
        } else {
            push_title(out, &mut self.random);
        }
        tab(out);
    }

    /// A number in `percent` of the rows, else NULL.
    fn push_optional(&mut self, out: &mut Vec<u8>, percent: u32, number: u32) {
        if self.random.percent(percent) {
            push_number(out, u64::from(number));
        } else {
            out.extend_from_slice(NULL);
        }
        tab(out);
    }

    fn push_genres(&mut self, out: &mut Vec<u8>) {
        let genres = self.random.weighted(&[7, 40, 30, 23]);
        if genres == 0 {
            out.extend_from_slice(NULL);
        }
        // Alphabetical and different, as in the real file: start somewhere and go on.
        let mut next = self.random.below((GENRES.len() - 3) as u32) as usize;
        for genre in 0..genres {
            if genre > 0 {
                out.push(b',');
                next += 1;
            }
            out.extend_from_slice(GENRES[next].as_bytes());
        }
        tab(out);
    }
}

impl Rows for Basics {
    fn header(&self) -> String {
        "tconst\ttitleType\tprimaryTitle\toriginalTitle\tisAdult\tstartYear\tendYear\truntimeMinutes\tgenres\n"
            .to_owned()
    }

    fn push_row(&mut self, out: &mut Vec<u8>) {
        self.tconst += 1;
        let kind = title_kind(self.seed, self.tconst);
        push_id(out, b"tt", self.tconst);
        tab(out);
        out.extend_from_slice(kind.as_bytes());
        tab(out);
        self.push_titles(out);
        out.push(if self.random.percent(4) { b'1' } else { b'0' });
        tab(out);
        let age_years = self.random.skewed(110);
        self.push_optional(out, 91, 2020 - age_years);
        self.push_optional(out, if kind == "tvSeries" { 40 } else { 0 }, 2020 - age_years / 2);
        let minutes = 5 + self.random.skewed(150);
        self.push_optional(out, 31, minutes);
        self.push_genres(out);
        end_line(out);
    }
}
