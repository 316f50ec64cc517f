//! howdah-engine.
