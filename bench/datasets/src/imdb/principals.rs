//! `title.principals`: up to ten people of each title, the widest table of the published experiment.
//!
//! Titles come in runs that share a cast, as the episodes of a series do; the length of a run decides how
//! well gzip does, and was set to come out at the published size per row.

use crate::Rows;
use crate::random::Random;
use crate::row::{NULL, end_line, push_id, push_number, tab};
use crate::words::{FIRST_NAMES, push_name};

/// Category, weight among a production's people, share with characters and share with a job, in percent.
const CATEGORIES: [(&str, u32, u32, u32); 12] = [
    ("actor", 220, 88, 0),
    ("self", 175, 90, 0),
    ("actress", 165, 88, 0),
    ("writer", 135, 0, 55),
    ("director", 115, 0, 3),
    ("producer", 65, 0, 92),
    ("composer", 38, 0, 4),
    ("cinematographer", 36, 0, 30),
    ("editor", 35, 0, 4),
    ("production_designer", 8, 0, 2),
    ("archive_footage", 7, 80, 0),
    ("archive_sound", 1, 50, 0),
];

const JOBS: &[&str] = &[
    "producer",
    "writer",
    "written by",
    "creator",
    "screenplay",
    "director of photography",
    "story",
    "created by",
    "teleplay",
    "novel",
    "executive producer",
    "based on the novel by",
    "idea",
    "co-director",
    "play",
    "film editor",
];

/// How many people of a title are listed: one to ten, six on average.
const PEOPLE_WEIGHTS: [u32; 10] = [10, 9, 8, 8, 7, 8, 7, 8, 10, 25];

/// Share of titles that keep the production of the title before (measured: 66 gives 7.3 bytes a row, 42 gives
/// 8.5).
const SAME_PRODUCTION_PERCENT: u32 = 24;
/// Share of people replaced from one title of a production to the next.
const GUEST_PERCENT: u32 = 25;

/// A person with a part in a production; `part` is everything after `nconst`, ready to be copied.
#[derive(Debug, Default)]
struct Principal {
    nconst: u32,
    part: Vec<u8>,
}

/// The rows of `title.principals`.
#[derive(Debug)]
pub(super) struct Principals {
    random: Random,
    people: u32,
    tconst: u32,
    production: [Principal; 10],
    listed: usize,
    ordering: usize,
}

impl Principals {
    pub(super) fn new(random: Random, people: u32) -> Principals {
        Principals { random, people, tconst: 0, production: Default::default(), listed: 0, ordering: 0 }
    }

    fn next_title(&mut self) {
        // One title in eight has no principals.
        self.tconst += 1 + u32::from(self.random.percent(12));
        let same = self.tconst > 2 && self.random.percent(SAME_PRODUCTION_PERCENT);
        for place in 0..self.production.len() {
            if !same || self.random.percent(GUEST_PERCENT) {
                self.cast(place);
            }
        }
        self.listed = 1 + self.random.weighted(&PEOPLE_WEIGHTS);
        self.ordering = 0;
    }

    fn cast(&mut self, place: usize) {
        let weights = CATEGORIES.map(|(_, weight, _, _)| weight);
        let (category, _, characters_percent, job_percent) = CATEGORIES[self.random.weighted(&weights)];
        let principal = &mut self.production[place];
        principal.nconst = 1 + self.random.skewed(self.people);
        let part = &mut principal.part;
        part.clear();
        part.extend_from_slice(category.as_bytes());
        tab(part);
        if self.random.percent(job_percent) {
            part.extend_from_slice(self.random.pick(JOBS).as_bytes());
        } else {
            part.extend_from_slice(NULL);
        }
        tab(part);
        if self.random.percent(characters_percent) {
            push_characters(part, &mut self.random, category);
        } else {
            part.extend_from_slice(NULL);
        }
        tab(part);
        end_line(part);
    }
}

/// Appends a list such as `["Self"]` or `["Anna","The Stranger"]`.
fn push_characters(out: &mut Vec<u8>, random: &mut Random, category: &str) {
    out.extend_from_slice(b"[\"");
    if category == "self" {
        let roles: [&str; 4] = ["Self", "Self - Host", "Self - Guest", "Self - Contestant"];
        out.extend_from_slice(roles[random.weighted(&[70, 12, 12, 6])].as_bytes());
    } else if random.percent(45) {
        out.extend_from_slice(random.pick(FIRST_NAMES).as_bytes());
    } else {
        push_name(out, random);
    }
    if random.percent(4) {
        out.extend_from_slice(b"\",\"");
        out.extend_from_slice(random.pick(FIRST_NAMES).as_bytes());
    }
    out.extend_from_slice(b"\"]");
}

impl Rows for Principals {
    fn header(&self) -> String {
        "tconst\tordering\tnconst\tcategory\tjob\tcharacters\n".to_owned()
    }

    fn push_row(&mut self, out: &mut Vec<u8>) {
        if self.ordering == self.listed {
            self.next_title();
        }
        let principal = &self.production[self.ordering];
        self.ordering += 1;
        push_id(out, b"tt", self.tconst);
        tab(out);
        push_number(out, self.ordering as u64);
        tab(out);
        push_id(out, b"nm", principal.nconst);
        tab(out);
        out.extend_from_slice(&principal.part);
    }
}
