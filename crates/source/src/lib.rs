//! howdah-source.
