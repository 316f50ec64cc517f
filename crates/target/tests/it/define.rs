//! Tables made and changed.

use crate::server::{connect, count, observer, on_every_version};
use futures_util::future::join_all;
use howdah_model::{ErrorKind, NewColumn, NewTable, Relation, Result};
use howdah_target::define::{Became, Wider, add_column, create_table, evolve};
use howdah_target::session::Session;

const ROUNDS: u32 = 60;
const SESSIONS: usize = 6;

fn column(name: &str, type_name: &str) -> NewColumn {
    NewColumn {
        name: name.to_owned(),
        type_name: type_name.to_owned(),
        evidence: String::new(),
        may_widen: false,
        empty_is_null: false,
    }
}

fn wider(name: &str, type_name: &str) -> Wider {
    Wider { name: name.to_owned(), from: String::new(), type_name: type_name.to_owned(), text_sql: None }
}

/// Whatever type they have.
async fn widen(session: &Session, relation: &Relation, wider: &[Wider]) -> Result<Vec<Became>> {
    evolve(session, relation, 5000, &[], wider, &|wider, _| Some(wider.clone())).await
}

on_every_version!(a_table_that_many_make_at_the_same_time_is_made_once, server => {
    let to = server.database().await;
    let sessions = join_all((0..SESSIONS).map(|_| connect(&to))).await;
    for (round, primary_key) in (0..ROUNDS).flat_map(|round| [(round, vec![]), (round, vec!["id".to_owned()])]) {
        let relation = Relation { schema: "public".to_owned(), name: format!("t{round}_{}", primary_key.len()) };
        let table = NewTable { columns: vec![column("id", "bigint"), column("name", "text")], primary_key };
        let made = join_all(sessions.iter().map(|session| create_table(session, &relation, &table))).await;
        for result in made {
            result.unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
    }
    let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'";
    assert_eq!(count(&observer(&to).await, tables).await, 2 * i64::from(ROUNDS));
});

on_every_version!(a_value_that_does_not_convert_is_not_shown, server => {
    let to = server.database().await;
    let client = observer(&to).await;
    client.batch_execute("CREATE TABLE t (a text, b text); INSERT INTO t VALUES ('secret', '2020-02-33')").await.unwrap();
    let session = connect(&to).await;
    let relation = Relation { schema: "public".to_owned(), name: "t".to_owned() };
    for (name, type_name, said) in [
        ("a", "integer", "invalid input syntax for type integer: \"...\""),
        ("b", "date", "date/time field value out of range: \"...\""),
    ] {
        let wider = wider(name, type_name);
        let error = widen(&session, &relation, &[wider]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Table, "{error}");
        assert!(error.message().ends_with(said), "{error}");
    }
    // Whatever a user's function says while the table is rewritten.
    client.batch_execute(
        "CREATE FUNCTION grumble() RETURNS event_trigger LANGUAGE plpgsql AS $$ DECLARE found text; \
         BEGIN SELECT a INTO found FROM t; RAISE EXCEPTION 'seen %', found; END $$; \
         CREATE EVENT TRIGGER grumble ON ddl_command_start EXECUTE FUNCTION grumble()"
    ).await.unwrap();
    let error = add_column(&session, &relation, 5000, &column("c", "text")).await.unwrap_err();
    assert!(error.sqlstate() == Some("P0001") && !error.message().contains("secret"), "{error}");
});

on_every_version!(stored_values_become_text_as_they_are_shown_and_lose_no_digit, server => {
    let to = server.database().await;
    let client = observer(&to).await;
    client.batch_execute(
        "CREATE TABLE t (host inet, net inet, x float8, at timestamptz, yes boolean); \
         INSERT INTO t VALUES ('10.0.0.1', '10.0.0.0/8', 0.1::float8 + 0.2, '2024-01-31 10:00:00.5+00', true), \
             ('::1', NULL, 1, NULL, false); \
         DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET extra_float_digits = -3', current_database()); \
             EXECUTE format('ALTER DATABASE %I SET DateStyle = %L', current_database(), 'SQL, DMY'); \
             EXECUTE format('ALTER DATABASE %I SET TimeZone = %L', current_database(), 'Asia/Kolkata'); END $$",
    ).await.unwrap();
    let session = connect(&to).await;
    let relation = Relation { schema: "public".to_owned(), name: "t".to_owned() };
    let columns = ["host", "net", "x", "at", "yes"].map(|name| wider(name, "text"));
    widen(&session, &relation, &columns).await.unwrap();
    let rows = client.query_one("SELECT string_agg(t::text, ' ' ORDER BY x) FROM t", &[]).await.unwrap();
    assert_eq!(
        rows.get::<_, &str>(0),
        "(10.0.0.1,10.0.0.0/8,0.30000000000000004,\"2024-01-31 15:30:00.5+05:30\",true) (::1,,1,,false)"
    );
});
