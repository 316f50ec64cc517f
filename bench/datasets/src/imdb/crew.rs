//! `title.crew`: comma-separated directors and writers; one row a title.

use crate::Rows;
use crate::random::Random;
use crate::row::{NULL, end_line, push_id, tab};

/// The rows of `title.crew`.
#[derive(Debug)]
pub(super) struct Crew {
    random: Random,
    people: u32,
    tconst: u32,
    /// People of the production the title belongs to; episodes of a series share them.
    regulars: [u32; 4],
}

impl Crew {
    pub(super) fn new(random: Random, people: u32) -> Crew {
        Crew { random, people, tconst: 0, regulars: [1; 4] }
    }

    /// As many people as drawn from `weights`, of whom none gives NULL.
    fn push_people(&mut self, out: &mut Vec<u8>, weights: &[u32]) {
        let people = self.random.weighted(weights);
        if people == 0 {
            out.extend_from_slice(NULL);
        }
        for place in 0..people {
            if place > 0 {
                out.push(b',');
            }
            push_id(out, b"nm", self.regulars[place % self.regulars.len()]);
        }
        tab(out);
    }
}

impl Rows for Crew {
    fn header(&self) -> String {
        "tconst\tdirectors\twriters\n".to_owned()
    }

    fn push_row(&mut self, out: &mut Vec<u8>) {
        self.tconst += 1;
        if self.tconst == 1 || !self.random.percent(60) {
            self.regulars = [(); 4].map(|()| 1 + self.random.skewed(self.people));
        }
        push_id(out, b"tt", self.tconst);
        tab(out);
        self.push_people(out, &[43, 50, 5, 2]);
        self.push_people(out, &[49, 28, 12, 7, 4]);
        end_line(out);
    }
}
