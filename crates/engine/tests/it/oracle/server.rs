//! The oracle itself: what one `COPY FROM STDIN` makes of a file.
//!
//! It copies into a table of its own with one more column, `n`, whose default numbers the records. Sequences
//! do not roll back, so after a refusal the sequence says how many records were good, whatever lines they
//! had.

use howdah_testkit::{Database, NastyFile};
use std::cell::RefCell;
use std::pin::pin;
use tokio::runtime::Handle;
use tokio_postgres::{Client, Error, NoTls, SimpleQueryMessage};

/// What COPY does with a file.
#[derive(Debug)]
pub(super) enum Fate {
    Stored {
        rows: u64,
    },
    /// The record it stops at, counted from 1, and why; the message ends in the SQLSTATE.
    Refused {
        record: u64,
        message: String,
    },
}

/// A table that howdah loads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    /// As [`Oracle::table`] gives it.
    pub(super) number: u32,
    /// Its last column is missing: howdah leaves that field out and rewrites the records.
    pub(super) without_last: bool,
}

impl Target {
    pub(super) fn name(self) -> String {
        format!("{}{}", if self.without_last { "d" } else { "t" }, self.number)
    }
}

/// A session on the database, and the tables in it.
pub(super) struct Oracle {
    client: Client,
    runtime: Handle,
    /// Columns of the tables `o0`, `t0`, `d0`, `o1` ...
    known: RefCell<Vec<Vec<String>>>,
    _database: Database,
}

impl Oracle {
    pub(super) fn new(database: Database, runtime: &tokio::runtime::Runtime) -> Oracle {
        let client = runtime.block_on(async {
            let (client, connection) =
                tokio_postgres::connect(&database.socket_conninfo(), NoTls).await.unwrap();
            tokio::spawn(connection);
            // Nothing here must outlive the test.
            client.batch_execute("SET synchronous_commit TO off").await.unwrap();
            client
        });
        Oracle { client, runtime: runtime.handle().clone(), known: RefCell::default(), _database: database }
    }

    /// The number of the tables for this file's columns: `o<number>` for COPY, `t<number>` for howdah, and
    /// `d<number>`, which lacks the last column.
    pub(super) fn table(&self, file: &NastyFile) -> u32 {
        let mut known = self.known.borrow_mut();
        let found = known.iter().position(|columns| *columns == file.columns);
        let number = found.unwrap_or(known.len());
        if found.is_none() {
            known.push(file.columns.clone());
            let (ours, theirs) = (format!("t{number}"), format!("o{number}"));
            self.run(&format!(
                "{}; {}; ALTER TABLE d{number} DROP COLUMN {}; CREATE SEQUENCE s{number}; {}; \
                 ALTER TABLE {theirs} ADD COLUMN n bigint DEFAULT nextval('s{number}')",
                file.create_table(&ours),
                file.create_table(&format!("d{number}")),
                quoted(&file.columns[file.columns.len() - 1..]),
                file.create_table(&theirs)
            ));
        }
        u32::try_from(number).unwrap()
    }

    /// Copies `bytes` into the empty `o<table>`. `Err` if the statement itself is refused.
    pub(super) fn copy(&self, table: u32, file: &NastyFile, bytes: &[u8]) -> Result<Fate, String> {
        let columns = quoted(&file.columns);
        let sql = format!("COPY o{table} ({columns}) FROM STDIN WITH {}", file.copy_options());
        self.run(&format!("TRUNCATE o{table}; SELECT setval('s{table}', 1, false)"));
        let bytes = bytes::Bytes::copy_from_slice(bytes);
        let copied = self.runtime.block_on(async {
            let mut sink = pin!(self.client.copy_in(&sql).await?);
            futures_util::SinkExt::send(&mut sink, bytes).await?;
            sink.finish().await
        });
        match copied {
            Ok(rows) => Ok(Fate::Stored { rows }),
            Err(error) => {
                let message = text(&error);
                // 22xxx is about the data; anything else would be a statement the server does not understand.
                if error.code().is_none_or(|code| !code.code().starts_with("22")) {
                    return Err(format!("{sql}: {message}"));
                }
                let good = format!("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM s{table}");
                Ok(Fate::Refused { record: self.numbers(&good)[0] + 1, message })
            }
        }
    }

    /// Empties howdah's table.
    pub(super) fn empty(&self, target: Target) {
        self.run(&format!("TRUNCATE {}", target.name()));
    }

    /// Rows in howdah's table, and how many of these are not among the first `records` of COPY's.
    pub(super) fn strangers(&self, target: Target, records: u64) -> (u64, u64) {
        let (name, number, columns) = (target.name(), target.number, self.columns(target));
        let sql = format!(
            "SELECT (SELECT count(*) FROM {name}), (SELECT count(*) FROM ( \
                 SELECT {columns} FROM {name} EXCEPT ALL SELECT {columns} FROM o{number} WHERE n <= {records}) d)"
        );
        let counts = self.numbers(&sql);
        (counts[0], counts[1])
    }

    /// How many of the first `records` of COPY's are not in howdah's table.
    pub(super) fn missing(&self, target: Target, records: u64) -> u64 {
        let (name, number, columns) = (target.name(), target.number, self.columns(target));
        let sql = format!(
            "SELECT count(*) FROM ( \
                 SELECT {columns} FROM o{number} WHERE n <= {records} EXCEPT ALL SELECT {columns} FROM {name}) d"
        );
        self.numbers(&sql)[0]
    }

    /// The one row of a query, all numbers.
    pub(super) fn numbers(&self, sql: &str) -> Vec<u64> {
        let messages = self.runtime.block_on(self.client.simple_query(sql));
        let messages = messages.unwrap_or_else(|error| panic!("{sql}: {}", text(&error)));
        let row = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let row = row.unwrap();
        (0..row.len()).map(|at| row.get(at).unwrap().parse().unwrap()).collect()
    }

    fn run(&self, sql: &str) {
        let done = self.runtime.block_on(self.client.batch_execute(sql));
        done.unwrap_or_else(|error| panic!("{sql}: {}", text(&error)));
    }

    fn columns(&self, target: Target) -> String {
        let known = self.known.borrow();
        let all = &known[target.number as usize];
        quoted(&all[..all.len() - usize::from(target.without_last)])
    }
}

fn quoted(columns: &[String]) -> String {
    let quoted: Vec<String> =
        columns.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect();
    quoted.join(", ")
}

fn text(error: &Error) -> String {
    match error.as_db_error() {
        Some(server) => format!("{} ({})", server.message(), server.code().code()),
        None => format!("{error:?}"),
    }
}
