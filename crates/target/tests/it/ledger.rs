//! The ledger's schema and jobs.

use crate::plan::{plan, table};
use crate::proxy;
use crate::server::{connect, observer, on_every_version, shared};
use howdah_model::summary::Status;
use howdah_model::{ErrorKind, FilePlan, Plan};
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
    // What its tables are, its version, whether its sequences are behind, the end of that and the role's
    // rights are asked for together: none is answered before all are.
    rule.hold_answers_until(5);
    ledger.ensure(&session).await.unwrap();
    // These; the beginning and what is there by then; all that is made.
    assert_eq!(rule.requests(), 8);
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

on_every_version!(a_ledger_of_another_version_is_refused, server => {
    let to = server.database().await;
    let session = connect(&to).await;
    let ledger = Ledger::new("howdah");
    ledger.ensure(&session).await.unwrap();
    let client = observer(&to).await;
    for (version, hint) in [(14, "(howdah restore), then DROP SCHEMA \"howdah\" CASCADE"), (99, "or a newer one")] {
        client.execute("UPDATE howdah.migration SET version = $1", &[&version]).await.unwrap();
        for error in [ledger.ensure(&session).await.unwrap_err(), ledger.exists(&session).await.unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Ledger, "{error}");
            assert!(error.message().contains(&format!("has version {version}; this howdah knows 15")), "{error}");
            assert!(error.hint().unwrap().contains(hint), "{:?}", error.hint());
        }
    }
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
