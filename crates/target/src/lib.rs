//! howdah-target.
