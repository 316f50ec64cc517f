//! Faults before PostgreSQL do what their names say, and crashes lose what crashes lose.

use howdah_testkit::{Database, Fault, MAJORS, Proxy, Server, ServerOptions};
use std::time::Duration;
use tokio_postgres::{Client, NoTls};

async fn connect(conninfo: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(conninfo, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn prepared(major: u32) -> (Database, Proxy) {
    let server = Server::shared(major);
    let database = server.database();
    database.sql("CREATE TABLE t (x int)");
    (database, Proxy::before_server(server))
}

async fn insert_and_commit(client: &Client) -> bool {
    client.batch_execute("BEGIN").await.unwrap();
    client.batch_execute("INSERT INTO t VALUES (1)").await.unwrap();
    client.batch_execute("COMMIT").await.is_ok()
}

#[tokio::test]
async fn an_answer_lost_after_commit_leaves_the_row() {
    for major in MAJORS {
        let (database, proxy) = prepared(major);
        let client = connect(&database.conninfo_through(&proxy)).await;
        proxy.set_times(Fault::CutAfterCommit { skip: 0 }, 1);
        assert!(!insert_and_commit(&client).await);
        assert_eq!(database.value("SELECT count(*) FROM t"), "1");
        let client = connect(&database.conninfo_through(&proxy)).await;
        assert!(insert_and_commit(&client).await);
        assert_eq!((proxy.fired(), proxy.connections()), (1, 2));
    }
}

#[tokio::test]
async fn commits_within_queries_count_and_those_to_skip_go_by() {
    let (database, proxy) = prepared(18);
    let client = connect(&database.conninfo_through(&proxy)).await;
    let whole = "BEGIN; INSERT INTO t VALUES (1); COMMIT";
    proxy.set_times(Fault::CutAfterCommit { skip: 1 }, 1);
    client.batch_execute(whole).await.unwrap();
    assert!(client.batch_execute(whole).await.is_err());
    assert_eq!((database.value("SELECT count(*) FROM t").as_str(), proxy.fired()), ("2", 1));
    let client = connect(&database.conninfo_through(&proxy)).await;
    proxy.set_times(Fault::CutBeforeCommit { skip: 0 }, 1);
    assert!(client.batch_execute(whole).await.is_err());
    assert_eq!(database.value("SELECT count(*) FROM t"), "2");
}

#[tokio::test]
async fn a_cut_before_commit_leaves_nothing() {
    let (database, proxy) = prepared(18);
    let client = connect(&database.conninfo_through(&proxy)).await;
    proxy.set(Fault::CutBeforeCommit { skip: 0 });
    assert!(!insert_and_commit(&client).await);
    assert_eq!(database.value("SELECT count(*) FROM t"), "0");
}

#[tokio::test]
async fn connections_are_cut_refused_and_stalled() {
    let (database, proxy) = prepared(15);
    let conninfo = database.conninfo_through(&proxy);
    let client = connect(&conninfo).await;
    proxy.set_times(Fault::CutAfterBytes(5), 1);
    assert!(client.batch_execute("SELECT 1").await.is_err());
    let client = connect(&conninfo).await;
    proxy.set(Fault::Stall);
    let query = client.batch_execute("SELECT 1");
    let mut query = std::pin::pin!(query);
    assert!(tokio::time::timeout(Duration::from_millis(300), &mut query).await.is_err());
    proxy.set(Fault::Delay(Duration::from_millis(10)));
    query.await.unwrap();
    proxy.cut_all();
    assert!(client.batch_execute("SELECT 1").await.is_err());
    proxy.set(Fault::Refuse);
    assert!(tokio_postgres::connect(&conninfo, NoTls).await.is_err());
    proxy.set(Fault::Pass);
    connect(&conninfo).await.batch_execute("SELECT 1").await.unwrap();
}

#[test]
fn a_unix_socket_can_be_proxied_too() {
    let server = Server::shared(13);
    let database = server.database();
    let proxy = Proxy::before_unix(server.socket_folder().join(format!(".s.PGSQL.{}", server.port())));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        connect(&database.conninfo_through(&proxy)).await.batch_execute("SELECT 1").await.unwrap();
    });
}

#[test]
fn a_crash_loses_asynchronous_commits_and_keeps_the_others() {
    let options = ServerOptions::default().set("wal_writer_delay", "10s");
    let server = Server::private(18, &options);
    let database = server.database();
    database.sql("CREATE TABLE t (x int); CHECKPOINT");
    database.sql("SET synchronous_commit TO on; INSERT INTO t VALUES (1)");
    database.sql("SET synchronous_commit TO off; INSERT INTO t VALUES (2)");
    assert_eq!(database.value("SELECT count(*) FROM t"), "2");
    server.crash_and_restart();
    assert_eq!(database.rows("SELECT x FROM t"), [[Some("1".to_owned())]]);
    server.restart();
    assert_eq!(database.value("SELECT count(*) FROM t"), "1");
}
