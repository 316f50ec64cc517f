//! howdah-testkit.
