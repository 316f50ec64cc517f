//! `title.ratings`: average and number of votes, for about one title in six.

use crate::Rows;
use crate::random::Random;
use crate::row::{end_line, push_id, push_number, tab};

/// The rows of `title.ratings`.
#[derive(Debug)]
pub(super) struct Ratings {
    random: Random,
    tconst: u32,
}

impl Ratings {
    pub(super) fn new(random: Random) -> Ratings {
        Ratings { random, tconst: 0 }
    }
}

impl Rows for Ratings {
    fn header(&self) -> String {
        "tconst\taverageRating\tnumVotes\n".to_owned()
    }

    fn push_row(&mut self, out: &mut Vec<u8>) {
        self.tconst += 1 + self.random.below(11);
        push_id(out, b"tt", self.tconst);
        tab(out);
        // Between 1.0 and 9.9, most of them near 7.
        let tenths = 10 + (self.random.below(30) + self.random.below(30) + self.random.below(33));
        push_number(out, u64::from(tenths / 10));
        out.push(b'.');
        push_number(out, u64::from(tenths % 10));
        tab(out);
        // Votes are few for most titles: five is the least a title is listed with.
        let most = 1 + self.random.skewed(20_000);
        let votes = 5 + self.random.skewed(most);
        push_number(out, u64::from(votes));
        tab(out);
        end_line(out);
    }
}
