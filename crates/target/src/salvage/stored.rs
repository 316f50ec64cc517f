//! Keys that the table holds when the first rows turn out to repeat some, learnt so that not each key of each
//! further chunk has to be looked up there.
//!
//! They are read once a load, by COPY as the client writes them, into the filter of [`super::seen`]: those
//! that were there before, and those of the chunks that are in. Looking up a key takes the server longer than
//! to send one, so it is worth it where the table is no larger than what is still to come. What is missed, of
//! sessions that store their chunks meanwhile, COPY tells.

use super::Salvage;
use super::probe::{KnownKey, KnownKeys, Probe};
use super::written::{HEADER, UniqueKey, row_end};
use crate::commit::ChunkError;
use crate::sql::{quote_ident, quote_relation};
use bytes::Bytes;
use futures_util::TryStreamExt;
use std::collections::BTreeSet;
use std::pin::pin;
use tokio_postgres::types::Type;

/// The filter would take most of the keys of a larger table for seen.
const TABLE_BYTES_MAX: u64 = 1 << 30;
/// So many keys are added at a time.
const AT_ONCE: usize = 4096;

/// Keys of rows that hold nothing else.
struct Learner<'a> {
    keys: Vec<(&'a KnownKey, UniqueKey, Vec<u64>)>,
    key: Vec<u8>,
}

impl Salvage<'_> {
    /// Learns them, if nobody has before and the table is smaller than what is to come. The savepoint is
    /// fresh before; afterwards it may be spoilt.
    pub(super) async fn learn(
        &mut self,
        probe: &Probe,
        known_keys: &KnownKeys,
        to_come_bytes: u64,
    ) -> Result<(), ChunkError> {
        let Some(binary) = self.target.table.binary.as_ref().filter(|_| known_keys.is_to_learn()) else {
            return Ok(());
        };
        let sized = "SELECT pg_catalog.pg_relation_size($1::pg_catalog.oid::pg_catalog.regclass)";
        let size = self.session.client().query_typed_one(sized, &[(&probe.table_oid(), Type::OID)]).await;
        let table_bytes = self.or_fail(size).await?.get::<_, Option<i64>>(0).unwrap_or(i64::MAX);
        if table_bytes.cast_unsigned() > to_come_bytes.min(TABLE_BYTES_MAX) {
            return Ok(());
        }
        let fields: BTreeSet<usize> =
            known_keys.keys.iter().flat_map(|known| &known.key.fields).copied().collect();
        let names: Vec<String> = fields.iter().map(|field| quote_ident(&binary.columns[*field])).collect();
        let table = quote_relation(self.target.table.stored_in());
        let sql =
            format!("COPY (SELECT {} FROM ONLY {table}) TO STDOUT WITH (FORMAT binary)", names.join(", "));
        let mut learner = Learner::new(known_keys, &fields);
        match self.read_keys(&sql, &mut learner).await {
            Ok(()) => learner.add_all(),
            Err(error) if error.as_db_error().is_some() => self.spoil(),
            Err(error) => return Err(self.fail(&error).await),
        }
        Ok(())
    }

    async fn read_keys(&self, sql: &str, learner: &mut Learner<'_>) -> Result<(), tokio_postgres::Error> {
        let mut messages = pin!(self.session.client().copy_out(sql).await?);
        let mut rows = 0;
        while let Some(message) = messages.try_next().await? {
            learner.read(&message);
            rows += 1;
            if rows % AT_ONCE == 0 {
                self.progress.step();
            }
        }
        Ok(())
    }
}

impl<'a> Learner<'a> {
    /// For rows of these fields of the table's rows.
    fn new(known_keys: &'a KnownKeys, fields: &BTreeSet<usize>) -> Learner<'a> {
        let place = |field: &usize| fields.range(..field).count();
        let of = |known: &'a KnownKey| {
            let UniqueKey { fields, nulls_alike } = &known.key;
            let key = UniqueKey { fields: fields.iter().map(place).collect(), nulls_alike: *nulls_alike };
            (known, key, Vec::with_capacity(AT_ONCE))
        };
        Learner { keys: known_keys.keys.iter().map(of).collect(), key: Vec::new() }
    }

    fn read(&mut self, message: &Bytes) {
        let mut at = if message.starts_with(HEADER) { HEADER.len() } else { 0 };
        while let Some(end) = row_end(message, at) {
            for (known, unique, hashes) in &mut self.keys {
                if unique.read(&message[at..end], &mut self.key) {
                    hashes.push(known.seen.hash(&self.key));
                }
                if hashes.len() == AT_ONCE {
                    known.seen.add_all(hashes, |_| {});
                    hashes.clear();
                }
            }
            at = end;
        }
    }

    fn add_all(self) {
        self.keys.iter().for_each(|(known, _, hashes)| known.seen.add_all(hashes, |_| {}));
    }
}
