//! Counting what is left of rows that have come.

use crate::server::{connect, observer, on_every_version};
use howdah_model::Relation;
use howdah_target::storage::fewer_rows;
use std::time::{Duration, Instant};

on_every_version!(what_only_a_warning_hangs_on_waits_for_nobody, server => {
    let to = server.database().await;
    let admin = observer(&to).await;
    admin.batch_execute("CREATE TABLE t AS SELECT generate_series(1, 10)").await.unwrap();
    let session = connect(&to).await;
    let table = Relation { schema: "public".to_owned(), name: "t".to_owned() };
    for (expected, fewer) in [(9, None), (10, None), (11, Some(10))] {
        assert_eq!(fewer_rows(&session, &table, expected).await.unwrap(), fewer);
    }
    admin.batch_execute("BEGIN; LOCK TABLE t").await.unwrap();
    let began = Instant::now();
    assert_eq!(fewer_rows(&session, &table, 11).await.unwrap(), None);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    admin.batch_execute("COMMIT").await.unwrap();
    assert_eq!(fewer_rows(&session, &table, 11).await.unwrap(), Some(10));
});
