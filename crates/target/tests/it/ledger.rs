//! The ledger's schema and jobs.

use crate::plan::{chunk, plan, table};
use crate::proxy;
use crate::server::{connect, observer, on_every_version, shared};
use howdah_model::summary::Status;
use howdah_model::{ErrorKind, FilePlan, Omitted, Plan, Receipt, TriggersWay};
use howdah_target::commit::{ChunkTarget, CopyProgress, Outcome, commit_chunk};
use howdah_target::ledger::{Ending, JobStatus, Ledger, Proof};

fn ending(status: Status, rows_stored: u64) -> Ending<'static> {
    Ending { status, rows_stored, proof: Proof::default(), holder_pid: None, error: None, sql: "" }
}

on_every_version!(the_ledger_is_created_once_by_many_at_the_same_time, server => {
    let to = server.database().await;
    let ledger = Ledger::new("my \"ledger\"");
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(connect(&to).await);
    }
    assert!(!ledger.exists(&sessions[0]).await.unwrap());
    for result in futures_util::future::join_all(sessions.iter().map(|session| ledger.ensure(session))).await {
        result.unwrap();
    }
    assert!(ledger.exists(&sessions[0]).await.unwrap());
    ledger.ensure(&sessions[0]).await.unwrap();
    let client = observer(&to).await;
    let uncommented = "SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
        WHERE c.relnamespace = '\"my \"\"ledger\"\"\"'::regnamespace AND c.relkind = 'r' AND attnum > 0 \
        AND (col_description(c.oid, attnum) IS NULL OR obj_description(c.oid, 'pg_class') IS NULL)";
    assert_eq!(crate::server::count(&client, uncommented).await, 0);
});

#[tokio::test]
async fn a_far_server_is_not_asked_once_for_each_version_of_a_new_ledger() {
    let server = shared(15);
    let to = server.database().await;
    let (port, rule) = proxy::start(server.port).await;
    let database = to.rsplit('=').next().unwrap();
    let session =
        connect(&format!("host=127.0.0.1 port={port} user=postgres dbname={database} sslmode=disable")).await;
    let ledger = Ledger::new("howdah");
    // What its tables are, its version, whether its sequences are behind, the end of that and the role's rights are asked for together:
    // none is answered before all are.
    rule.hold_answers_until(5);
    ledger.ensure(&session).await.unwrap();
    // These; the beginning and the version; the way back and the schema; all that is made; its owner; the end.
    assert_eq!(rule.requests(), 10);
    rule.hold_answers_until(5);
    ledger.ensure(&session).await.unwrap();
    assert_eq!(rule.requests(), 5);
}

on_every_version!(a_role_with_create_on_the_database_is_enough_and_one_without_is_told, server => {
    let to = server.database().await;
    let client = observer(&to).await;
    let database = to.rsplit('=').next().unwrap();
    let role = format!("role_{database}");
    client.batch_execute(&format!("CREATE ROLE {role} LOGIN")).await.unwrap();
    let as_role = to.replace("user=postgres", &format!("user={role}"));
    let session = connect(&as_role).await;
    let ledger = Ledger::new("howdah");
    let error = ledger.ensure(&session).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ledger, "{error}");
    assert!(error.hint().unwrap().contains("GRANT CREATE ON DATABASE"), "{:?}", error.hint());
    // Either way that the hint names helps; the session is as good as new.
    client.batch_execute(&format!("CREATE SCHEMA mine AUTHORIZATION {role}")).await.unwrap();
    Ledger::new("mine").ensure(&session).await.unwrap();
    client.batch_execute(&format!("GRANT CREATE ON DATABASE {database} TO {role}")).await.unwrap();
    ledger.ensure(&session).await.unwrap();
    // Somebody else's ledger is a matter of GRANT, too.
    client.batch_execute("CREATE SCHEMA theirs").await.unwrap();
    Ledger::new("theirs").ensure(&connect(&to).await).await.unwrap();
    let error = Ledger::new("theirs").ensure(&session).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ledger, "{error}");
    assert!(error.hint().unwrap().contains("GRANT"), "{:?}", error.hint());
});

on_every_version!(a_ledger_of_a_newer_howdah_is_refused, server => {
    let to = server.database().await;
    let session = connect(&to).await;
    let ledger = Ledger::new("howdah");
    ledger.ensure(&session).await.unwrap();
    observer(&to).await.batch_execute("INSERT INTO howdah.migration VALUES (99, '9.9')").await.unwrap();
    assert_eq!(ledger.ensure(&session).await.unwrap_err().kind(), ErrorKind::Ledger);
});

on_every_version!(a_job_is_begun_found_reopened_and_closed, server => {
    let to = server.database().await;
    let client = observer(&to).await;
    client.batch_execute("CREATE TABLE t (a int)").await.unwrap();
    let session = connect(&to).await;
    let ledger = Ledger::new("howdah");
    ledger.ensure(&session).await.unwrap();
    let plan = plan("it's a job", table(&session, "t").await);
    assert!(ledger.find(&session, "it's a job").await.unwrap().is_none());
    assert!(ledger.begin(&session, &plan).await.unwrap());
    let job = ledger.find(&session, "it's a job").await.unwrap().unwrap();
    assert_eq!((job.status, job.runs, job.chunks, job.rows_stored), (JobStatus::Running, 1, 0, 0));
    assert_eq!(job.plan, plan);
    assert!(job.finished_at.is_none() && job.started_at.ends_with('Z') && job.started_at.len() == 20);
    client.batch_execute("INSERT INTO howdah.chunk VALUES ('it''s a job', 0, 3, 0, 9, 7)").await.unwrap();
    ledger.close(&session, "it's a job", ending(Status::Failed, 7)).await.unwrap();
    let [job] = &ledger.of_work(&session, "work", "another").await.unwrap()[..] else { panic!() };
    assert_eq!((job.status, job.chunks, job.rows_stored), (JobStatus::Failed, 1, 7));
    assert!(job.finished_at.is_some());
    // Other chunk borders would double rows, and of other files the chunks that are stored say nothing.
    let chunk_bytes = plan.chunk_bytes + 1;
    for other in [Plan { chunk_bytes, ..plan.clone() }, Plan { identity: "other files".to_owned(), ..plan.clone() }] {
        assert!(!ledger.begin(&session, &other).await.unwrap());
    }
    assert!(ledger.begin(&session, &plan).await.unwrap());
    ledger.close(&session, "it's a job", ending(Status::Done, 7)).await.unwrap();
    assert!(!ledger.begin(&session, &plan).await.unwrap(), "it is done");
    assert_eq!(ledger.jobs(&session, false).await.unwrap()[0].runs, 2);
    assert!(ledger.of_work(&session, "work", "another").await.unwrap().is_empty());
    assert_eq!(ledger.of_work(&session, "work", &plan.identity).await.unwrap().len(), 1);
    assert_eq!(ledger.close(&session, "other", ending(Status::Done, 0)).await.unwrap_err().kind(), ErrorKind::Ledger);
});

on_every_version!(a_plan_of_many_files_of_many_fields_is_kept_in_little_room, server => {
    const FILES: u32 = 3_000;
    let to = server.database().await;
    let client = observer(&to).await;
    client.batch_execute("CREATE TABLE t (a int)").await.unwrap();
    let session = connect(&to).await;
    let ledger = Ledger::new("howdah");
    ledger.ensure(&session).await.unwrap();
    let mut plan = plan("many", table(&session, "t").await);
    let of_files = (0..FILES).map(|no| FilePlan {
        location: format!("part-{no}.csv"),
        found: Some("csv, delimiter ',', 400 fields".to_owned()),
        typed: (0..400).map(|field| field % 3 > 0).collect(),
        header: Vec::new(),
        evidence: vec!["all bytes are ASCII".to_owned(), format!("{0} of {0} records have 400 fields", no % 9)],
        unsure: if no == 7 { vec!["the first record may be data".to_owned()] } else { Vec::new() },
        ..plan.files[0].clone()
    });
    plan.files = of_files.collect();
    assert!(ledger.begin(&session, &plan).await.unwrap());
    assert_eq!(ledger.find(&session, "many").await.unwrap().unwrap().plan, plan);
    let bytes = crate::server::count(&client, "SELECT length(plan::text)::int8 FROM howdah.job").await;
    assert!(bytes < i64::from(FILES) * 600, "{bytes} bytes");
    // As older ledgers have it, and as an older howdah reads it.
    plan.files.truncate(2);
    let text = serde_json::to_string(&plan).unwrap();
    client.execute("UPDATE howdah.job SET plan = $1::text::jsonb", &[&text]).await.unwrap();
    assert_eq!(ledger.find(&session, "many").await.unwrap().unwrap().plan, plan);
    ledger.begin(&session, &plan).await.unwrap();
    let kept: String = client.query_one("SELECT plan::text FROM howdah.job", &[]).await.unwrap().get(0);
    let older: Plan = serde_json::from_str(&kept).unwrap();
    assert!(older.files[0].evidence.is_empty() && older.files[0].location == plan.files[0].location);
});

on_every_version!(a_job_loaded_once_more_is_named_behind_the_last, server => {
    let to = server.database().await;
    let client = observer(&to).await;
    client.batch_execute("CREATE TABLE t (a int)").await.unwrap();
    let session = connect(&to).await;
    let ledger = Ledger::new("howdah");
    ledger.ensure(&session).await.unwrap();
    let name = "50%_of.it's (a) job";
    let begin = async |job_id: &str| {
        let plan = plan(job_id, table(&session, "t").await);
        ledger.begin(&session, &plan).await.unwrap();
        ledger.close(&session, job_id, ending(Status::Done, 7)).await.unwrap();
        plan.identity
    };
    let identity = begin(name).await;
    assert_eq!(ledger.next_name(&session, name).await.unwrap(), format!("{name}-2"));
    for behind in ["-2", "-9", "-10", "-010", "-11a", "-12345678901234567890", "s-40", ""] {
        begin(&format!("{name}{behind}")).await;
    }
    assert_eq!(ledger.next_name(&session, name).await.unwrap(), format!("{name}-11"));
    // Of all that are done, only the latest matters.
    client.execute("UPDATE howdah.job SET started_at = started_at + interval '1 hour' WHERE job_id LIKE '%-9'", &[]).await.unwrap();
    let [job] = &ledger.of_work(&session, "work", &identity).await.unwrap()[..] else { panic!() };
    assert_eq!(job.job_id, format!("{name}-9"));
});

/// What the first version of the ledger was made of, and a job with a chunk in it.
async fn first_version(to: &str, job_id: &str) -> tokio_postgres::Client {
    let client = observer(to).await;
    let sql = include_str!("../../src/ledger/schema_1.sql").replace("@schema@", "howdah");
    client.batch_execute(&sql).await.unwrap();
    let rows = format!(
        "INSERT INTO howdah.migration (version, howdah_version) VALUES (1, '0.1.0'); CREATE TABLE t (a int); \
         INSERT INTO howdah.chunk (job_id, file_no, chunk_no, start_byte, end_byte, rows, digest) \
         VALUES ('{job_id}', 0, 0, 0, 10, 5, -1)"
    );
    client.batch_execute(&rows).await.unwrap();
    client
}

on_every_version!(a_ledger_of_the_first_version_is_read_brought_up_to_date_and_kept, server => {
    let to = server.database().await;
    let client = first_version(&to, "old").await;
    let mut session = connect(&to).await;
    let ledger = Ledger::new("howdah");
    let old = Receipt {
        file_no: 0, chunk_no: 0, start_byte: 0, end_byte: 10, rows: 5, omitted: Omitted::default(), digest: Some(u64::MAX),
    };
    // A plan reads it and changes nothing.
    assert!(ledger.exists(&session).await.unwrap());
    assert_eq!(ledger.receipts(&session, "old").await.unwrap(), [old]);
    assert!(ledger.jobs(&session, false).await.unwrap().is_empty());
    ledger.ensure(&session).await.unwrap();
    // Whoever stored it, it was not the transaction that brought the ledger up to date.
    assert_eq!(ledger.chunks_without_transaction(&session, "old").await.unwrap(), 1);
    ledger.ensure(&session).await.unwrap();
    assert_eq!(crate::server::count(&client, "SELECT max(version)::bigint FROM howdah.migration").await, 15);
    assert_eq!(ledger.receipts(&session, "old").await.unwrap(), [old]);
    let table = table(&session, "t").await;
    ledger.begin(&session, &plan("old", table.clone())).await.unwrap();
    let mut chunk = chunk(1, 2, "1\n2\n");
    chunk.origin.omitted = Omitted { left_out: 7, blank: 3, rejected: 0 };
    let target = ChunkTarget { ledger: Some(&ledger), job_id: "old", table: &table, synchronous: false, first_place: None, triggers: TriggersWay::Keep, held: false };
    let stored = commit_chunk(&mut session, &target, &chunk, &CopyProgress::default()).await.unwrap();
    let Outcome::Stored { receipt, .. } = stored else { panic!("{stored:?}") };
    assert_eq!(receipt.omitted, Omitted { left_out: 7, blank: 3, rejected: 0 });
    assert_eq!(ledger.receipts(&session, "old").await.unwrap(), [old, receipt]);
});

on_every_version!(a_role_that_may_not_bring_a_ledger_up_to_date_is_told, server => {
    let to = server.database().await;
    let client = first_version(&to, "old").await;
    let role = format!("user_{}", to.rsplit('=').next().unwrap());
    client.batch_execute(&format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA howdah TO {role}; \
         GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA howdah TO {role}"
    )).await.unwrap();
    let session = connect(&to.replace("user=postgres", &format!("user={role}"))).await;
    let ledger = Ledger::new("howdah");
    let error = ledger.ensure(&session).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ledger, "{error}");
    assert!(error.message().contains("is of version 1 and cannot be brought to version 15"), "{error}");
    assert!(error.hint().unwrap().contains("its owner"), "{:?}", error.hint());
    // Once the owner has loaded, the role's rights are enough.
    ledger.ensure(&connect(&to).await).await.unwrap();
    ledger.ensure(&session).await.unwrap();
    ledger.begin(&session, &plan("new", table(&connect(&to).await, "t").await)).await.unwrap();
});

on_every_version!(what_a_migration_brings_belongs_to_the_owner_of_the_ledger, server => {
    const SPLIT: &str = "SELECT count(*) FROM pg_class WHERE relnamespace = 'howdah'::regnamespace AND relkind = 'r' \
        AND pg_get_userbyid(relowner) NOT LIKE 'owner%'";
    let of_member = [(true, 0), (false, 5)];
    for (makes, split) in of_member {
        let to = server.database().await;
        let client = first_version(&to, "old").await;
        let name = to.rsplit('=').next().unwrap();
        let on_schema = if makes { "USAGE, CREATE" } else { "USAGE" };
        client.batch_execute(&format!(
            "CREATE ROLE owner_{name}; CREATE ROLE member_{name} LOGIN IN ROLE owner_{name}; \
             DO $$ DECLARE t regclass; BEGIN \
                 FOR t IN SELECT oid FROM pg_class WHERE relnamespace = 'howdah'::regnamespace AND relkind = 'r' LOOP \
                     EXECUTE format('ALTER TABLE %s OWNER TO owner_{name}', t); \
                 END LOOP; END $$; \
             GRANT {on_schema} ON SCHEMA howdah TO owner_{name}; GRANT CREATE ON SCHEMA howdah TO member_{name}"
        )).await.unwrap();
        let session = connect(&to.replace("user=postgres", &format!("user=member_{name}"))).await;
        let told = Ledger::new("howdah").ensure(&session).await.unwrap();
        assert_eq!(crate::server::count(&client, SPLIT).await, split, "{told:?}");
        assert_eq!(told.is_some(), !makes, "{told:?}");
        let told = told.unwrap_or_default();
        let statement = format!("OWNER TO \"owner_{name}\"");
        assert!(makes || told.contains(&statement) && told.contains("permission denied for schema howdah"), "{told}");
    }
});
