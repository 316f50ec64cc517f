//! Records to what COPY takes, where the file's bytes cannot go as they are.
//!
//! [`to_utf8`] turns a file in an encoding the server does not know into UTF-8 before it is split;
//! [`OneNull`] spells NULL in one way in whole records, in place; [`Rewriter`] turns them into COPY's text
//! format, leaving out fields the table does not have; [`Unquoter`] those of csv, which the server reads
//! faster so; [`BinaryEncoder`] those whose values are certain into its binary format. Other values are not
//! interpreted: type input stays with the server.

pub(crate) mod attributes;
mod binary;
mod charset;
mod double_byte;
mod one_null;
mod own_reading;
mod rewrite;
mod single_byte;
mod unquote;

pub use attributes::text_value;
pub(crate) use binary::is_storable;
pub use binary::{BinaryEncoder, ColumnEstimate, Encoded, Estimate, HEADER, Most, PassedOver, TRAILER};
use charset::is_text;
pub use charset::{Malformed, byte_order_mark, expect_convertible, from_utf8, needs_utf8, to_utf8};
pub(crate) use charset::{decode, whatwg};
pub use one_null::OneNull;
pub(crate) use own_reading::OwnReading;
pub(crate) use rewrite::escape;
pub use rewrite::{FieldTarget, RecordError, Rewriter};
use single_byte::SingleByte;
pub use unquote::Unquoter;
