//! `name.basics`: people, their years, professions and best-known titles.

use crate::Rows;
use crate::random::Random;
use crate::row::{NULL, end_line, push_id, push_number, tab};
use crate::words::push_name;

const PROFESSIONS: &[&str] = &[
    "actor",
    "actress",
    "writer",
    "director",
    "producer",
    "composer",
    "cinematographer",
    "editor",
    "miscellaneous",
    "camera_department",
    "music_department",
    "art_department",
    "sound_department",
    "soundtrack",
    "stunts",
];

/// The rows of `name.basics`.
#[derive(Debug)]
pub(super) struct Names {
    random: Random,
    nconst: u32,
    titles: u32,
}

impl Names {
    pub(super) fn new(random: Random, people: u32) -> Names {
        // There are about two titles for every three people.
        Names { random, nconst: 0, titles: people / 3 * 2 + 1 }
    }

    fn push_years(&mut self, out: &mut Vec<u8>) {
        let birth = 1_880 + self.random.below(120);
        let known = self.random.percent(6);
        for (given, year) in [(known, birth), (known && self.random.percent(35), birth + 20 + birth % 60)] {
            if given {
                push_number(out, u64::from(year.min(2020)));
            } else {
                out.extend_from_slice(NULL);
            }
            tab(out);
        }
    }

    fn push_professions(&mut self, out: &mut Vec<u8>) {
        let professions = self.random.weighted(&[18, 52, 18, 12]);
        if professions == 0 {
            out.extend_from_slice(NULL);
        }
        let first = self.random.below(PROFESSIONS.len() as u32) as usize;
        for place in 0..professions {
            if place > 0 {
                out.push(b',');
            }
            out.extend_from_slice(PROFESSIONS[(first + place) % PROFESSIONS.len()].as_bytes());
        }
        tab(out);
    }

    /// Up to four titles, near one another: a person's work is.
    fn push_titles(&mut self, out: &mut Vec<u8>) {
        let titles = self.random.weighted(&[15, 42, 15, 10, 18]);
        if titles == 0 {
            out.extend_from_slice(NULL);
        }
        let mut title = 1 + self.random.below(self.titles);
        for place in 0..titles {
            if place > 0 {
                out.push(b',');
                title += self.random.skewed(self.titles / 60);
            }
            push_id(out, b"tt", title);
        }
        tab(out);
    }
}

impl Rows for Names {
    fn header(&self) -> String {
        "nconst\tprimaryName\tbirthYear\tdeathYear\tprimaryProfession\tknownForTitles\n".to_owned()
    }

    fn push_row(&mut self, out: &mut Vec<u8>) {
        self.nconst += 1;
        push_id(out, b"nm", self.nconst);
        tab(out);
        push_name(out, &mut self.random);
        tab(out);
        self.push_years(out);
        self.push_professions(out);
        self.push_titles(out);
        end_line(out);
    }
}
