//! What a session takes from the queue at a time: a chunk, or those of several small files that one transaction may take.

use howdah_model::CopyChunk;

pub(crate) struct Cargo {
    /// In the form in which each can be stored by itself.
    pub(crate) chunks: Vec<CopyChunk>,
    /// The rows of all of them as one COPY takes them, where they are several.
    pub(crate) rows: Option<Box<CopyChunk>>,
}

impl Cargo {
    pub(crate) fn one(chunk: CopyChunk) -> Cargo {
        Cargo { chunks: vec![chunk], rows: None }
    }
}
