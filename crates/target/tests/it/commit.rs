//! begin -> claim -> copy -> commit.

use crate::plan::{chunk, plan, table};
use crate::server::{self, Server, connect, count, observer, on_every_version};
use crate::{proxy, server::shared};
use howdah_model::plan::PoliciesPlan;
use howdah_model::{CopyChunk, ErrorKind, Origin, Plan, TriggersWay};
use howdah_target::commit::{
    ChunkError, ChunkTarget, CopyProgress, Outcome, Phase, commit_chunk, commit_together,
};
use howdah_target::finish::barrier;
use howdah_target::ledger::Ledger;
use howdah_target::session::Session;

/// A database with a table, a ledger with a job, and a session.
struct Stage {
    to: String,
    session: Session,
    ledger: Ledger,
    plan: Plan,
}

async fn stage(server: &Server, table_sql: &str) -> Stage {
    let to = server.database().await;
    observer(&to).await.batch_execute(table_sql).await.unwrap();
    let session = connect(&to).await;
    let ledger = Ledger::new("howdah");
    ledger.ensure(&session).await.unwrap();
    let plan = plan("job", table(&session, "t").await);
    ledger.begin(&session, &plan).await.unwrap();
    Stage { to, session, ledger, plan }
}

impl Stage {
    async fn store_by(&self, session: &mut Session, chunk: &CopyChunk) -> Result<Outcome, ChunkError> {
        let table = &self.plan.tables[0];
        let target = ChunkTarget {
            ledger: Some(&self.ledger),
            job_id: "job",
            table,
            synchronous: false,
            first_place: None,
            triggers: TriggersWay::Keep,
            held: false,
        };
        commit_chunk(session, &target, chunk, &CopyProgress::default()).await
    }

    async fn store(&mut self, chunk: &CopyChunk) -> Result<Outcome, ChunkError> {
        let table = &self.plan.tables[0];
        let target = ChunkTarget {
            ledger: Some(&self.ledger),
            job_id: "job",
            table,
            synchronous: false,
            first_place: None,
            triggers: TriggersWay::Keep,
            held: false,
        };
        commit_chunk(&mut self.session, &target, chunk, &CopyProgress::default()).await
    }
}

on_every_version!(chunks_that_come_together_are_stored_all_or_none, server => {
    let mut stage = stage(server, TABLE).await;
    let parts = [chunk(0, 1, "1,x\n"), chunk(1, 2, "2,y\n3,z\n"), chunk(2, 1, "4,u\n")];
    let target = ChunkTarget {
        ledger: Some(&stage.ledger),
        job_id: "job",
        table: &stage.plan.tables[0],
        synchronous: false,
        first_place: None,
        triggers: TriggersWay::Keep,
        held: false,
    };
    let progress = CopyProgress::default();
    let rows = |parts: &[CopyChunk]| -> (CopyChunk, Vec<Origin>) {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.bytes.to_vec()).collect();
        let records = parts.iter().map(|part| part.origin.records).sum();
        (chunk(0, records, bytes), parts.iter().map(|part| part.origin).collect())
    };
    let (bad, origins) = rows(&[chunk(0, 1, "1,x\n"), chunk(1, 1, "two,y\n")]);
    let failed = commit_together(&mut stage.session, &target, &bad, &origins, &progress).await.unwrap_err();
    assert_eq!(failed.error.sqlstate(), Some("22P02"));
    let (first, origins) = rows(&parts[..2]);
    assert!(stored(commit_together(&mut stage.session, &target, &first, &origins, &progress).await));
    let (all, origins) = rows(&parts);
    let outcome = commit_together(&mut stage.session, &target, &all, &origins, &progress).await;
    assert_eq!(outcome.unwrap(), Outcome::AlreadyStored);
    let in_it = stage.ledger.receipts(&stage.session, "job").await.unwrap();
    let mut in_it: Vec<(u64, u64)> =
        in_it.iter().map(|receipt| (receipt.chunk_no, receipt.rows)).collect();
    in_it.sort_unstable();
    assert_eq!(in_it, [(0, 1), (1, 2)]);
    assert_eq!(count(&observer(&stage.to).await, "SELECT count(*) FROM t").await, 3);
});

fn stored(outcome: Result<Outcome, ChunkError>) -> bool {
    matches!(outcome, Ok(Outcome::Stored { .. }))
}

const TABLE: &str = "CREATE TABLE t (a integer, b text)";

on_every_version!(a_chunk_and_its_claim_are_stored_together_and_only_once, server => {
    let mut stage = stage(server, TABLE).await;
    let first = chunk(0, 2, "1,x\n2,y\n");
    let Ok(Outcome::Stored { receipt, .. }) = stage.store(&first).await else { panic!("not stored") };
    assert_eq!((receipt.rows, receipt.end_byte), (2, 8));
    assert_eq!(stage.ledger.receipts(&stage.session, "job").await.unwrap(), [receipt]);
    for _ in 0..3 {
        assert_eq!(stage.store(&first).await.unwrap(), Outcome::AlreadyStored);
        assert!(!stage.session.is_closed());
    }
    assert!(stored(stage.store(&chunk(1, 1, "3,z\n")).await));
    assert_eq!(count(&observer(&stage.to).await, "SELECT count(*) FROM t").await, 3);
});

on_every_version!(a_chunk_that_is_in_from_other_bytes_is_not_taken_for_this_one, server => {
    let mut stage = stage(server, TABLE).await;
    let of = |digest: u64| {
        let mut chunk = chunk(0, 1, "1,x\n");
        chunk.origin.digest = Some(digest);
        chunk
    };
    assert!(stored(stage.store(&of(u64::MAX)).await));
    assert_eq!(stage.store(&of(u64::MAX)).await.unwrap(), Outcome::AlreadyStored);
    let error = stage.store(&of(1)).await.unwrap_err().error;
    assert_eq!((error.kind(), error.place().byte), (ErrorKind::SourceChanged, Some(0)), "{error}");
    assert!(!stage.session.is_closed());
});

on_every_version!(a_bad_value_is_reported_by_line_and_column_without_the_value, server => {
    let mut stage = stage(server, TABLE).await;
    let bad = chunk(0, 3, "1,x\n2,y\nsecret,z\n");
    let ChunkError { error, line } = stage.store(&bad).await.unwrap_err();
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Server, Some("22P02")));
    assert_eq!((line, error.place().column.as_deref()), (Some(3), Some("a")));
    assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
    assert!(error.message().contains("invalid input syntax for type integer"), "{error}");
    // Neither rows nor claim are left, and the session goes on.
    assert!(!stage.session.is_closed());
    assert!(stored(stage.store(&chunk(0, 1, "1,x\n")).await));
    assert_eq!(count(&observer(&stage.to).await, "SELECT count(*) FROM t").await, 1);
});

#[tokio::test]
async fn begin_claim_and_start_of_copy_are_one_round_trip() {
    let server = shared(15);
    let mut stage = stage(server, TABLE).await;
    let (port, rule) = proxy::start(server.port).await;
    let database = stage.to.rsplit('=').next().unwrap().to_owned();
    stage.session =
        connect(&format!("host=127.0.0.1 port={port} user=postgres dbname={database} sslmode=disable")).await;
    // The first chunk prepares COPY.
    assert!(stored(stage.store(&chunk(0, 1, "1,x\n")).await));
    // From here the proxy answers nothing until it has seen BEGIN, claim and COPY: had any of them waited
    // for an answer, none would ever come.
    rule.hold_answers_until(3);
    assert!(stored(stage.store(&chunk(1, 1, "2,y\n")).await));
    rule.hold_answers_until(3);
    assert_eq!(stage.store(&chunk(1, 1, "2,y\n")).await.unwrap(), Outcome::AlreadyStored);
}

#[tokio::test]
async fn an_answer_to_commit_that_is_lost_is_unknown_and_settled_by_the_claim() {
    let server = shared(15);
    let mut stage = stage(server, TABLE).await;
    let (port, rule) = proxy::start(server.port).await;
    let database = stage.to.rsplit('=').next().unwrap().to_owned();
    let through = format!("host=127.0.0.1 port={port} user=postgres dbname={database} sslmode=disable");
    for chunk_no in 0..5 {
        stage.session = connect(&through).await;
        rule.lose_the_answer_to_commit();
        let chunk = chunk(chunk_no, 1, "1,x\n");
        let error = stage.store(&chunk).await.unwrap_err().error;
        assert_eq!(error.kind(), ErrorKind::CommitUnknown, "{error}");
        assert!(stage.session.is_closed());
        stage.session = connect(&stage.to).await;
        // Committed or not, afterwards it is in, once.
        stage.store(&chunk).await.unwrap();
    }
    assert_eq!(count(&observer(&stage.to).await, "SELECT count(*) FROM t").await, 5);
}

on_every_version!(a_transaction_that_does_not_begin_leaves_no_claim, server => {
    let mut stage = stage(server, TABLE).await;
    // The server reads all statements of a message before it runs the first: BEGIN does not run, as where it
    // is cancelled, and the claim comes behind it all the same.
    let broken = PoliciesPlan {
        relation: stage.plan.tables[0].table.relation.clone(),
        make_sql: "no statement".to_owned(),
        insert_sql: String::new(),
    };
    stage.plan.tables[0].policies = Some(broken);
    let error = stage.store(&chunk(0, 1, "1,x\n")).await.unwrap_err().error;
    assert_eq!(error.sqlstate(), Some("42601"), "{error}");
    assert!(stage.session.is_closed());
    stage.plan.tables[0].policies = None;
    stage.session = connect(&stage.to).await;
    assert_eq!(stage.ledger.receipts(&stage.session, "job").await.unwrap(), []);
    assert!(stored(stage.store(&chunk(0, 1, "1,x\n")).await));
});

on_every_version!(a_claim_waits_for_the_other_session_and_then_knows, server => {
    for other_commits in [true, false] {
        let stage = stage(server, TABLE).await;
        let other = observer(&stage.to).await;
        other.batch_execute(
            "BEGIN; INSERT INTO howdah.chunk (job_id, file_no, chunk_no, start_byte, end_byte, rows) \
             VALUES ('job', 0, 0, 0, 4, 1)",
        ).await.unwrap();
        let mut waiting = connect(&stage.to).await;
        let pid = waiting.backend().pid;
        let watcher = connect(&stage.to).await;
        let chunk = chunk(0, 1, "1,x\n");
        let store = stage.store_by(&mut waiting, &chunk);
        let settle = async {
            // Until it is seen to wait.
            loop {
                let seen = howdah_target::activity::sample(&watcher, &[pid]).await.unwrap();
                if seen.iter().any(|activity| activity.wait == "Lock:transactionid") {
                    break;
                }
            }
            other.batch_execute(if other_commits { "COMMIT" } else { "ROLLBACK" }).await.unwrap();
        };
        let (outcome, ()) = tokio::join!(store, settle);
        match other_commits {
            true => assert_eq!(outcome.unwrap(), Outcome::AlreadyStored),
            false => assert!(stored(outcome)),
        }
        assert!(!waiting.is_closed());
    }
});

on_every_version!(sessions_that_race_for_the_same_chunks_store_each_once, server => {
    let stage = stage(server, TABLE).await;
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(connect(&stage.to).await);
    }
    let race = sessions.iter_mut().map(|session| async {
        let mut mine = 0;
        for chunk_no in 0..20 {
            mine += u32::from(stored(stage.store_by(session, &chunk(chunk_no, 2, "1,x\n2,y\n")).await));
        }
        mine
    });
    let stored: u32 = futures_util::future::join_all(race).await.iter().sum();
    assert_eq!(stored, 20);
    assert_eq!(count(&observer(&stage.to).await, "SELECT count(*) FROM t").await, 40);
});

on_every_version!(rows_that_a_trigger_drops_are_an_error_before_commit, server => {
    let mut stage = stage(server, "CREATE TABLE t (a integer, b text); \
        CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF new.a = 2 THEN RETURN NULL; END IF; RETURN new; END'; \
        CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()").await;
    let error = stage.store(&chunk(0, 3, "1,x\n2,y\n3,z\n")).await.unwrap_err().error;
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(!stage.session.is_closed());
    assert_eq!(count(&observer(&stage.to).await, "SELECT count(*) FROM t").await, 0);
    assert_eq!(stage.ledger.receipts(&stage.session, "job").await.unwrap(), []);
});

on_every_version!(what_a_trigger_says_is_not_repeated, server => {
    let mut stage = stage(server, "CREATE TABLE t (a integer, b text); \
        CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'bad %', new.b USING ERRCODE = '23514'; END$$; \
        CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f()").await;
    let ChunkError { error, line } = stage.store(&chunk(0, 1, "1,secret\n")).await.unwrap_err();
    assert_eq!((error.sqlstate(), line), (Some("23514"), Some(1)));
    assert!(!error.to_string().contains("secret"), "{error}");
});

on_every_version!(a_deferred_constraint_that_fails_at_commit_is_an_answer_not_a_doubt, server => {
    let mut stage = stage(server, "CREATE TABLE p (a integer PRIMARY KEY); \
        CREATE TABLE t (a integer REFERENCES p DEFERRABLE INITIALLY DEFERRED, b text)").await;
    let error = stage.store(&chunk(0, 1, "1,x\n")).await.unwrap_err().error;
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Server, Some("23503")));
    assert!(!stage.session.is_closed());
    observer(&stage.to).await.batch_execute("INSERT INTO p VALUES (1)").await.unwrap();
    assert!(stored(stage.store(&chunk(0, 1, "1,x\n")).await));
});

on_every_version!(what_a_deferred_trigger_says_is_not_shown, server => {
    let mut stage = stage(server, TABLE).await;
    observer(&stage.to).await.batch_execute(
        "CREATE FUNCTION grumble() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''seen %'', NEW.b; END'; \
         CREATE CONSTRAINT TRIGGER grumble AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION grumble()"
    ).await.unwrap();
    let error = stage.store(&chunk(0, 1, "1,secret\n")).await.unwrap_err().error;
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Server, Some("P0001")));
    assert!(!error.to_string().contains("secret"), "{error}");
});

on_every_version!(a_copy_that_cannot_begin_is_an_error_and_closes_the_session, server => {
    let mut stage = stage(server, TABLE).await;
    observer(&stage.to).await.batch_execute("ALTER TABLE t DROP COLUMN b").await.unwrap();
    let error = stage.store(&chunk(0, 1, "1,x\n")).await.unwrap_err().error;
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Server, Some("42703")));
    assert!(stage.session.is_closed());
    let session = connect(&stage.to).await;
    assert_eq!(stage.ledger.receipts(&session, "job").await.unwrap(), []);
});

/// Why such a session is closed. Should a newer tokio-postgres keep its answers in step, this fails, and
/// `begin_claim_and_start` may roll back instead.
#[tokio::test]
async fn tokio_postgres_is_out_of_step_after_a_copy_that_cannot_begin() {
    let client = observer(&format!("{} dbname=postgres", shared(15).socket())).await;
    client.batch_execute("CREATE TEMP TABLE t (a int)").await.unwrap();
    let copy = client.prepare("COPY t (nothing) FROM STDIN").await.unwrap();
    let (begun, second) = tokio::join!(
        client.copy_in::<_, bytes::Bytes>(&copy),
        client.simple_query("SELECT 'the second answer'")
    );
    assert!(begun.is_err());
    assert!(second.map_or(true, |answers| answers.is_empty()), "in step: nothing to work around any more");
}

on_every_version!(a_terminated_backend_is_a_lost_connection_and_nothing_is_in, server => {
    let stage = stage(server, TABLE).await;
    let mut session = connect(&stage.to).await;
    let killer = connect(&stage.to).await;
    let backend = session.backend();
    let other = howdah_target::session::Backend { start_us: backend.start_us + 1, ..backend };
    assert!(!howdah_target::activity::terminate(&killer, other).await.unwrap());
    let rows = "1,x\n".repeat(2_000_000);
    let chunk = chunk(0, 2_000_000, rows);
    let progress = CopyProgress::default();
    let table = &stage.plan.tables[0];
    let target = ChunkTarget { ledger: Some(&stage.ledger), job_id: "job", table, synchronous: false, first_place: None, triggers: TriggersWay::Keep, held: false };
    let store = commit_chunk(&mut session, &target, &chunk, &progress);
    let kill = async {
        while progress.phase() != Phase::Copy || progress.bytes() == 0 {
            tokio::task::yield_now().await;
        }
        assert!(howdah_target::activity::terminate(&killer, backend).await.unwrap());
    };
    let (outcome, ()) = tokio::join!(store, kill);
    let error = outcome.unwrap_err().error;
    assert_eq!(error.kind(), ErrorKind::ConnectionLost, "{error}");
    assert!(session.is_closed());
    assert_eq!(count(&observer(&stage.to).await, "SELECT count(*) FROM t").await, 0);
    assert_eq!(stage.ledger.receipts(&killer, "job").await.unwrap(), []);
});

#[tokio::test]
async fn a_dropped_future_leaves_a_closed_session_and_no_rows() {
    let stage = stage(shared(15), TABLE).await;
    let mut session = connect(&stage.to).await;
    let chunk = chunk(0, 2_000_000, "1,x\n".repeat(2_000_000));
    let progress = CopyProgress::default();
    let table = &stage.plan.tables[0];
    let target = ChunkTarget {
        ledger: Some(&stage.ledger),
        job_id: "job",
        table,
        synchronous: false,
        first_place: None,
        triggers: TriggersWay::Keep,
        held: false,
    };
    let store = commit_chunk(&mut session, &target, &chunk, &progress);
    let started = async {
        while progress.bytes() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! { _ = store => panic!("stored too soon"), () = started => {} }
    assert!(session.is_closed());
    drop(session);
    // The claim's lock is gone once the server has noticed: the retry needs no help.
    let mut again = connect(&stage.to).await;
    assert!(stored(stage.store_by(&mut again, &chunk).await));
}

#[tokio::test]
async fn without_a_ledger_a_chunk_is_stored_each_time() {
    let stage = stage(shared(15), TABLE).await;
    let mut session = connect(&stage.to).await;
    let target = ChunkTarget {
        ledger: None,
        job_id: "job",
        table: &stage.plan.tables[0],
        synchronous: true,
        first_place: None,
        triggers: TriggersWay::Keep,
        held: false,
    };
    for _ in 0..2 {
        let outcome =
            commit_chunk(&mut session, &target, &chunk(0, 1, "1,x\n"), &CopyProgress::default()).await;
        assert!(stored(outcome));
    }
    assert_eq!(count(&observer(&stage.to).await, "SELECT count(*) FROM t").await, 2);
}

on_every_version!(what_was_committed_before_the_barrier_survives_a_crash, shared => {
    let server = Server::start(shared.version(), &["synchronous_commit=off", "fsync=off"]);
    let mut stage = stage(&server, TABLE).await;
    let client = observer(&stage.to).await;
    // Without the WAL writer nobody flushes but a synchronous commit.
    let writer = count(&client, "SELECT pid::bigint FROM pg_stat_activity WHERE backend_type = 'walwriter'").await;
    server::signal("STOP", writer);
    assert!(stored(stage.store(&chunk(0, 1, "1,x\n")).await));
    let unflushed = "SELECT (pg_current_wal_insert_lsn() - pg_current_wal_flush_lsn())::bigint";
    assert!(count(&client, unflushed).await > 0, "the chunk was durable before the barrier");
    let other = connect(&stage.to).await;
    barrier(&other).await.unwrap();
    server::signal("KILL", writer);
    server.crash();
    server.run();
    assert_eq!(count(&observer(&stage.to).await, "SELECT count(*) FROM t").await, 1);
});

on_every_version!(a_chunk_before_a_refused_record_is_shown_to_the_server_and_rolled_back, server => {
    let mut stage = stage(server, TABLE).await;
    let reason = howdah_model::Error::new(ErrorKind::Record, "the third is bad");
    let good = CopyChunk { refused: Some(reason.clone()), ..chunk(0, 2, "1,x\n2,y\n") };
    assert_eq!(stage.store(&good).await.unwrap_err().error.message(), reason.message());
    let bad = CopyChunk { refused: Some(reason), ..chunk(0, 2, "1,x\nzwei,y\n") };
    let refused = stage.store(&bad).await.unwrap_err();
    assert_eq!((refused.error.kind(), refused.line), (ErrorKind::Server, Some(2)));
    assert!(stage.ledger.receipts(&stage.session, "job").await.unwrap().is_empty());
    assert!(stored(stage.store(&chunk(0, 2, "1,x\n2,y\n")).await), "the claim is free again");
});
