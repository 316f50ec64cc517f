//! Tables made and changed.

use crate::server::{connect, count, observer, on_every_version};
use futures_util::future::join_all;
use howdah_model::{NewColumn, NewTable, Relation};
use howdah_target::define::create_table;

const ROUNDS: u32 = 60;
const SESSIONS: usize = 6;

fn column(name: &str, type_name: &str) -> NewColumn {
    NewColumn {
        name: name.to_owned(),
        type_name: type_name.to_owned(),
        evidence: String::new(),
        may_widen: false,
    }
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
