//! `title.episode`: the series, season and number of every title that is an episode.

use super::title_kind;
use crate::Rows;
use crate::random::Random;
use crate::row::{NULL, end_line, push_id, push_number, tab};

/// The rows of `title.episode`.
#[derive(Debug)]
pub(super) struct Episodes {
    random: Random,
    seed: u64,
    tconst: u32,
    parent: u32,
    season: u32,
    episode: u32,
}

impl Episodes {
    pub(super) fn new(random: Random, seed: u64) -> Episodes {
        Episodes { random, seed, tconst: 0, parent: 1, season: 1, episode: 0 }
    }
}

impl Rows for Episodes {
    fn header(&self) -> String {
        "tconst\tparentTconst\tseasonNumber\tepisodeNumber\n".to_owned()
    }

    fn push_row(&mut self, out: &mut Vec<u8>) {
        self.tconst += 1;
        while title_kind(self.seed, self.tconst) != "tvEpisode" {
            self.tconst += 1;
        }
        self.episode += 1;
        if self.random.percent(15) {
            self.parent = 1 + self.random.below(self.tconst);
            self.season = 1 + self.random.skewed(12);
            self.episode = 1 + self.random.skewed(40);
        }
        push_id(out, b"tt", self.tconst);
        tab(out);
        push_id(out, b"tt", self.parent);
        tab(out);
        if self.random.percent(22) {
            out.extend_from_slice(NULL);
            tab(out);
            out.extend_from_slice(NULL);
        } else {
            push_number(out, u64::from(self.season));
            tab(out);
            push_number(out, u64::from(self.episode));
        }
        tab(out);
        end_line(out);
    }
}
