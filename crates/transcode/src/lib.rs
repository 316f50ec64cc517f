//! howdah-transcode.
