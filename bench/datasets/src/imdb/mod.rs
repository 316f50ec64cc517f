//! Look-alikes of IMDb's seven files; the crate page says which of their traits are published and which
//! guessed.
//!
//! Titles are numbered from 1, so a `tconst` in one file is found in the others; what kind of title a
//! number is follows from seed and number alone ([`title_kind`]), which keeps `title.basics` and
//! `title.episode` in step without either knowing the other.

mod akas;
mod basics;
mod crew;
mod episode;
mod names;
mod principals;
mod ratings;

use crate::Rows;
use crate::random::Random;

/// One of the seven files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Titles as they are called in other countries and languages.
    Akas,
    /// Kind, name, years and genres of each title.
    Basics,
    /// Directors and writers of each title.
    Crew,
    /// Which series an episode belongs to.
    Episode,
    /// Up to ten people of each title.
    Principals,
    /// Votes.
    Ratings,
    /// People.
    Names,
}

impl Table {
    /// In the order of the published description.
    pub const ALL: [Table; 7] = [
        Table::Akas,
        Table::Basics,
        Table::Crew,
        Table::Episode,
        Table::Principals,
        Table::Ratings,
        Table::Names,
    ];

    /// The file's name without its ending.
    #[must_use]
    pub fn file_stem(self) -> &'static str {
        match self {
            Table::Akas => "title.akas",
            Table::Basics => "title.basics",
            Table::Crew => "title.crew",
            Table::Episode => "title.episode",
            Table::Principals => "title.principals",
            Table::Ratings => "title.ratings",
            Table::Names => "name.basics",
        }
    }

    /// Rows at scale 1, about the year 2020: six principals a title, and guesses for the rest.
    #[must_use]
    pub fn rows_at_scale_one(self) -> u64 {
        match self {
            Table::Akas => 21_000_000,
            Table::Basics | Table::Crew => 7_300_000,
            Table::Episode => 5_100_000,
            Table::Principals => 40_000_000,
            Table::Ratings => 1_100_000,
            Table::Names => 10_000_000,
        }
    }

    /// The file's rows, without end; `people` is how many different persons there are.
    #[must_use]
    pub fn rows(self, seed: u64, people: u32) -> Box<dyn Rows> {
        // A stream of its own per table: one file's rows do not depend on which others are made.
        let random = Random::new(seed, self as u64);
        match self {
            Table::Akas => Box::new(akas::Akas::new(random)),
            Table::Basics => Box::new(basics::Basics::new(random, seed)),
            Table::Crew => Box::new(crew::Crew::new(random, people)),
            Table::Episode => Box::new(episode::Episodes::new(random, seed)),
            Table::Principals => Box::new(principals::Principals::new(random, people)),
            Table::Ratings => Box::new(ratings::Ratings::new(random)),
            Table::Names => Box::new(names::Names::new(random, people)),
        }
    }
}

/// Kinds of title and their share in a hundred (a guess; most titles are episodes).
const TITLE_KINDS: [(&str, u32); 8] = [
    ("tvEpisode", 70),
    ("short", 10),
    ("movie", 8),
    ("video", 4),
    ("tvSeries", 4),
    ("tvMovie", 2),
    ("tvMiniSeries", 1),
    ("videoGame", 1),
];

/// What kind of title a number is.
fn title_kind(seed: u64, tconst: u32) -> &'static str {
    let mut draw = Random::new(seed, 0x1000_0000_0000 | u64::from(tconst)).below(100);
    for (kind, share) in TITLE_KINDS {
        if draw < share {
            return kind;
        }
        draw -= share;
    }
    TITLE_KINDS[0].0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Limit, write_rows};

    fn made(table: Table, rows: u64) -> String {
        let mut bytes = Vec::new();
        write_rows(&mut bytes, table.rows(1, 100_000).as_mut(), Limit::Rows(rows)).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn every_row_has_as_many_fields_as_the_header_and_balanced_quotes() {
        for table in Table::ALL {
            let text = made(table, 5_000);
            let fields = text.lines().next().unwrap().split('\t').count();
            assert_eq!(text.lines().count(), 5_001);
            for line in text.lines() {
                assert_eq!(line.split('\t').count(), fields, "{table:?}: {line}");
                assert!(
                    line.split('\t').all(|field| field.matches('"').count() % 2 == 0),
                    "{table:?}: {line}"
                );
                assert!(line.split('\t').all(|field| !field.is_empty()), "{table:?}: {line}");
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes() {
        for table in Table::ALL {
            assert_eq!(made(table, 2_000), made(table, 2_000));
        }
    }

    #[test]
    fn principals_have_the_published_row_size_and_half_of_them_characters() {
        let text = made(Table::Principals, 100_000);
        let row_bytes = text.len() as f64 / 100_000.0;
        assert!((42.0..46.0).contains(&row_bytes), "{row_bytes} bytes a row");
        let with_characters = text.lines().filter(|line| line.contains("[\"")).count();
        assert!((45_000..60_000).contains(&with_characters), "{with_characters}");
    }

    #[test]
    fn every_episode_is_an_episode_in_basics() {
        let basics = made(Table::Basics, 3_000);
        let kinds: std::collections::HashMap<&str, &str> =
            basics.lines().skip(1).map(|line| line.split_once('\t').unwrap()).collect();
        for line in made(Table::Episode, 1_000).lines().skip(1) {
            let tconst = line.split('\t').next().unwrap();
            assert!(kinds[tconst].starts_with("tvEpisode"), "{tconst}");
        }
    }
}
