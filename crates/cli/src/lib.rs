//! howdah-cli.
