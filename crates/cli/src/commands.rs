//! The verbs, one file each.

pub mod generate;
pub mod load;
pub mod pg;
pub mod plan;
pub mod resume;
pub mod status;
