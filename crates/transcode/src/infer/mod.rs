//! Columns from data: the type of a column from its values, its SQL name from its header, and the reading
//! of dates and numbers in other people's spelling.
//!
//! - [`ColumnState`] takes in values and says the narrowest type that holds them all ([`Inferred`]);
//!   [`Watch`] does so while a table that was made from a sample is loaded.
//! - [`Among`] says in which order days are and how numbers are written, also where some values of the column
//!   are none.
//! - [`misfit`] says when the values cannot be of the type that a column has, [`doubtful`] when some could be
//!   read as others.
//! - [`read`] rewrites one value as a [`Reading`](howdah_model::Reading) says; [`reading_for`] says which
//!   reading the values of a column need to fit the type that it has; [`parse_type`] and [`spelling`] are
//!   their form in options.
//! - [`snake`] and [`keep`] make names for columns, [`fold`] compares names forgivingly.
//!
//! Nothing is guessed: what the data does not prove stays text.

mod among;
mod clock;
mod column;
mod cursor;
mod date;
mod facts;
mod grouped;
pub(crate) mod json;
mod keywords;
mod kinds;
mod layout;
mod misfit;
mod names;
mod number;
mod option;
mod reading;
mod verdict;
mod watch;
mod words;

pub use among::Among;
pub use column::ColumnState;
pub(crate) use date::{MONTH_BYTES, is_moment, month};
pub(crate) use grouped::spelled_number;
pub use misfit::{are_held_by_numeric, are_plain_numbers, doubtful, may_be_misread, misfit};
pub use names::{fold, keep, snake};
pub use option::{parse_type, spelling};
pub use reading::{
    are_wall_times, digits_as_read, epoch, has_open_points, is_number_open, is_order_open, read, reading_for,
};
pub use verdict::Inferred;
pub use watch::Watch;
