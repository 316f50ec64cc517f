//! Connecting.

use crate::server::{Server, connect, is_root, observer, on_every_version, shared};
use howdah_model::{Error, ErrorKind};
use howdah_target::session::{Conninfo, Session, rights, show};
use howdah_target::{activity, guards};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub(crate) async fn refused(to: &str) -> Error {
    Session::connect(&Conninfo::resolve(Some(to)).unwrap().unwrap()).await.unwrap_err()
}

on_every_version!(timeouts_are_off_and_everything_else_is_as_the_role_has_it, server => {
    let to = server.database().await;
    let database = to.rsplit('=').next().unwrap();
    observer(&to).await.batch_execute(&format!(
        "ALTER DATABASE {database} SET statement_timeout = '1s'; ALTER DATABASE {database} SET lock_timeout = '1s'; \
         ALTER DATABASE {database} SET idle_in_transaction_session_timeout = '1s'; \
         ALTER DATABASE {database} SET datestyle = 'German'"
    )).await.unwrap();
    let session = connect(&to).await;
    let seen = show(&session, &["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "DateStyle", "application_name", "client_encoding"]).await.unwrap();
    let values: Vec<&str> = seen.values().map(String::as_str).collect();
    assert_eq!(values, ["German, DMY", "howdah", "UTF8", "0", "0", "0"]);
    assert_eq!(session.server_version() / 10_000, server.version());
});

on_every_version!(keepalives_are_those_that_somebody_has_set_or_our_own, server => {
    let to = server.database().await;
    let database = to.split("dbname=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    observer(&to).await.batch_execute(&format!("ALTER DATABASE {database} SET tcp_keepalives_count = 3")).await.unwrap();
    let given = format!("host=127.0.0.1 port={} dbname={database} user=postgres options='-c tcp_keepalives_idle=300'", server.port);
    let session = connect(&given).await;
    let seen = show(&session, &["tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count"]).await.unwrap();
    assert_eq!(seen.values().collect::<Vec<_>>(), ["3", "300", "10"]);
});

on_every_version!(a_process_is_ended_only_if_it_is_the_very_one, server => {
    let to = format!("{} dbname=postgres", server.socket());
    let (victim, session) = (connect(&to).await, connect(&to).await);
    let backend = victim.backend();
    // A server answers before it says that it is idle, and says goodbye before it is gone.
    let mut seen = activity::sample(&session, &[backend.pid, 1]).await.unwrap();
    while seen[0].wait != "Client:ClientRead" {
        seen = activity::sample(&session, &[backend.pid, 1]).await.unwrap();
    }
    assert_eq!((seen.len(), seen[0].state.as_str()), (1, "idle"));
    assert!(activity::terminate(&session, backend).await.unwrap());
    while !victim.is_closed() || !activity::sample(&session, &[backend.pid]).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(!activity::terminate(&session, backend).await.unwrap());
});

on_every_version!(sessions_are_looked_at_and_ended_as_the_role_that_has_logged_in, server => {
    let to = server.database().await;
    let database = to.split("dbname=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let (login, acts_as) = (format!("login_{database}"), format!("acts_{database}"));
    observer(&to).await.batch_execute(&format!(
        "CREATE ROLE {acts_as}; CREATE ROLE {login} LOGIN IN ROLE {acts_as}, pg_monitor; ALTER ROLE {login} SET role = {acts_as}"
    )).await.unwrap();
    let to = format!("host=127.0.0.1 port={} dbname={database} user={login}", server.port);
    let (victim, session) = (connect(&to).await, connect(&to).await);
    let role = rights::who(&session).await.unwrap();
    assert_eq!((role.role, role.login), (acts_as.clone(), login.clone()));
    assert_ne!(session.backend().start_us, 0);
    assert!(guards::sees_replicas(&session).await.unwrap());
    assert_ne!(activity::sample(&session, &[victim.backend().pid]).await.unwrap()[0].state, "");
    assert!(activity::terminate(&session, victim.backend()).await.unwrap());
    assert_eq!(rights::who(&session).await.unwrap().role, acts_as);
    // What the role in force alone may see is seen as well.
    let other = observer(&server.database().await).await;
    other.batch_execute(&format!(
        "ALTER ROLE {login} NOINHERIT; REVOKE pg_monitor, {acts_as} FROM {login}; GRANT {acts_as} TO {login}; \
         GRANT pg_monitor TO {acts_as}"
    )).await.unwrap();
    let session = connect(&to).await;
    let pid: i32 = other.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    assert!(guards::sees_replicas(&session).await.unwrap());
    assert_ne!(activity::sample(&session, &[pid]).await.unwrap()[0].state, "");
});

on_every_version!(values_stay_out_of_the_log_where_a_superuser_acts_as_another_role, server => {
    let to = server.database().await;
    let database = to.split("dbname=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    observer(&to).await.batch_execute(&format!(
        "CREATE ROLE humble_{database}; CREATE ROLE chief_{database} SUPERUSER LOGIN; \
         ALTER ROLE chief_{database} SET role = humble_{database}"
    )).await.unwrap();
    let session = connect(&format!("host=127.0.0.1 port={} dbname={database} user=chief_{database}", server.port)).await;
    assert_eq!(show(&session, &["log_parameter_max_length"]).await.unwrap().into_values().collect::<Vec<_>>(), ["0"]);
    assert_eq!(rights::who(&session).await.unwrap().role, format!("humble_{database}"));
});

#[tokio::test]
async fn what_will_not_pass_is_refused_and_what_may_pass_is_lost() {
    let server = shared(15);
    let error = refused(&format!("{} dbname=nowhere", server.socket())).await;
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::ConnectionRefused, Some("3D000")), "{error}");
    let error =
        refused(&format!("{} dbname=postgres", server.socket().replace("user=postgres", "user=nobody")))
            .await;
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::ConnectionRefused, Some("28000")), "{error}");
    let error = refused("host=127.0.0.1 port=1 user=x sslmode=prefer").await;
    assert_eq!(error.kind(), ErrorKind::ConnectionLost, "{error}");
    let error = refused("host=/nowhere user=x").await;
    assert_eq!(error.kind(), ErrorKind::ConnectionLost, "{error}");
    let error = refused("host=no-such-host.invalid user=x").await;
    assert_eq!(error.kind(), ErrorKind::ConnectionLost, "{error}");
}

#[tokio::test]
async fn the_first_host_that_will_do_is_taken() {
    let server = shared(15);
    let port = server.port;
    let to = format!("host=127.0.0.1,127.0.0.1 port=1,{port} user=postgres dbname=postgres");
    connect(&to).await;
    connect(&format!(
        "postgresql://postgres@127.0.0.1:1,127.0.0.1:{port}/postgres?load_balance_hosts=random"
    ))
    .await;
    // One server, seen as read-only by the first try.
    connect(&format!("{to} target_session_attrs=read-write")).await;
    connect(&format!("{to} target_session_attrs=primary")).await;
    connect(&format!("{to} target_session_attrs=prefer-standby")).await;
    connect(&format!("{to} target_session_attrs=read-only options='-c default_transaction_read_only=on'"))
        .await;
    for attrs in ["standby", "read-only"] {
        let error = refused(&format!("{to} target_session_attrs={attrs}")).await;
        assert_eq!(error.kind(), ErrorKind::ConnectionLost, "{attrs}: {error}");
    }
}

#[tokio::test]
async fn a_silent_host_is_given_up_after_connect_timeout() {
    // Listens and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (dead, live) = (silent.local_addr().unwrap().port(), shared(15).port);
    let to = format!(
        "host=127.0.0.1,127.0.0.1 port={dead},{live} user=postgres dbname=postgres connect_timeout=4"
    );
    connect(&to).await;
}

#[tokio::test]
async fn what_is_no_postgresql_server_is_told_as_such_and_not_asked_again() {
    // Who speaks first is waited for, as if a long message had begun.
    for greeting in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"SSH-2.0-x\r\n"] {
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = other.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = other.accept() {
                let _ = stream.read(&mut [0; 8]);
                let _ = stream.write_all(greeting);
                if greeting.starts_with(b"SSH") {
                    open.push(stream);
                }
            }
        });
        for mode in ["prefer", "disable"] {
            let to = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres sslmode={mode}");
            let error = refused(&to).await;
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{mode}: {error}");
            assert!(
                error.message().contains("what answers there is no PostgreSQL server"),
                "{mode}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn passwords_are_taken_from_the_url_and_wrong_ones_are_refused_without_being_shown() {
    let server = Server::start(18, &["fsync=off", "password_encryption='scram-sha-256'"]);
    let admin = observer(&format!("{} dbname=postgres", server.socket())).await;
    admin.batch_execute("CREATE ROLE u LOGIN PASSWORD 'p@ss w''ord'").await.unwrap();
    let rules = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    server.put("data/pg_hba.conf", rules);
    admin.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let port = server.port;
    // The reload takes effect at the postmaster's leisure; the first refusal shows that it has.
    let wrong = format!("postgresql://u:wrong-one@127.0.0.1:{port}/postgres");
    let error = loop {
        if let Err(error) = Session::connect(&Conninfo::resolve(Some(&wrong)).unwrap().unwrap()).await {
            break error;
        }
    };
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::ConnectionRefused, Some("28P01")), "{error}");
    assert!(!format!("{error:?}").contains("wrong-one"));
    connect(&format!("postgresql://u:p%40ss%20w'ord@127.0.0.1:{port}/postgres")).await;
    connect(&format!("host=127.0.0.1 port={port} dbname=postgres user=u password='p@ss w\\'ord'")).await;
    let error =
        refused(&format!("host=127.0.0.1 port={port} dbname=postgres user=u passfile=/nowhere")).await;
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
    assert!(error.hint().unwrap().contains("PGPASSWORD"), "{:?}", error.hint());
}

/// As libpq does: tokens in it expire, and somebody renews them.
#[tokio::test]
async fn a_password_file_is_looked_into_for_every_session() {
    let server = Server::start(18, &["fsync=off", "password_encryption='scram-sha-256'"]);
    let admin = observer(&format!("{} dbname=postgres", server.socket())).await;
    admin.batch_execute("CREATE ROLE u LOGIN PASSWORD 'none'").await.unwrap();
    server.put("data/pg_hba.conf", "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n");
    admin.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pgpass");
    let write = |password: &str, mode: u32| {
        std::fs::write(&file, format!("127.0.0.1:*:*:u:{password}\n")).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    let (port, passfile) = (server.port, file.display());
    write("first", 0o600);
    let to = format!("host=127.0.0.1 port={port} dbname=postgres user=u passfile={passfile}");
    let info = Conninfo::resolve(Some(&to)).unwrap().unwrap();
    // The reload has taken effect when a wrong password is refused.
    while Session::connect(&info).await.is_ok() {}
    let role_has = async |password: &str| {
        admin.batch_execute(&format!("ALTER ROLE u PASSWORD '{password}'")).await.unwrap();
    };
    role_has("first").await;
    Session::connect(&info).await.unwrap();
    role_has("second").await;
    Session::connect(&info).await.unwrap_err();
    write("second", 0o600);
    Session::connect(&info).await.unwrap();
    // What others may read is ignored, and what was known at first is not what is wanted.
    write("second", 0o644);
    Session::connect(&info).await.unwrap_err();
    role_has("first").await;
    Session::connect(&info).await.unwrap();
}

#[tokio::test]
async fn a_server_without_tls_is_told_as_such_and_in_no_word_of_the_server() {
    let server = Server::start(15, &["fsync=off"]);
    let to = format!("host=127.0.0.1 port={} dbname=postgres user=postgres", server.port);
    let error = refused(&format!("{to} passfile=/nowhere sslmode=require")).await;
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::ConnectionRefused, None), "{error}");
    assert!(error.message().contains("server does not support TLS"), "{error}");
    assert!(error.hint().unwrap().contains("sslmode=prefer"), "{:?}", error.hint());
}

#[tokio::test]
async fn too_many_connections_are_left_to_the_caller_with_their_sqlstate() {
    let server = Server::start(15, &["fsync=off"]);
    let to = format!("{} dbname=postgres", server.socket());
    let mut open = Vec::new();
    let info = Conninfo::resolve(Some(&to)).unwrap().unwrap();
    let error = loop {
        match Session::connect(&info).await {
            Ok(session) => open.push(session),
            Err(error) => break error,
        }
    };
    assert_eq!((error.kind(), error.sqlstate()), (ErrorKind::Server, Some("53300")), "{error}");
}

/// A socket where PostgreSQL's own default has it, gone with the test.
struct InTmp(PathBuf);

impl InTmp {
    fn of(port: u16) -> InTmp {
        InTmp(PathBuf::from(format!("/tmp/.s.PGSQL.{port}")))
    }
}

impl Drop for InTmp {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn a_server_in_tmp_is_found_without_a_host() {
    let server = shared(18);
    let (port, socket) = (server.port, server.socket());
    let folder = socket.strip_prefix("host=").unwrap().split(' ').next().unwrap();
    let link = InTmp::of(port);
    std::os::unix::fs::symlink(format!("{folder}/.s.PGSQL.{port}"), &link.0).unwrap();
    let session = connect(&format!("port={port} user=postgres dbname=postgres")).await;
    assert_eq!(session.server_version() / 10_000, server.version());
}

/// Whoever may become somebody else can play that one.
#[tokio::test]
async fn a_stranger_who_listens_in_tmp_is_told_nothing() {
    const LISTEN: &str = "my ($s, $c); socket($s, 1, 1, 0) && bind($s, pack('Sa*', 1, $ARGV[0])) && listen($s, 1) or die $!; \
                          $| = 1; print qq(ready\\n); \
                          accept($c, $s) or die $!; sysread($c, my $heard, 99); print 'heard ', length $heard";
    if !is_root() {
        return;
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let socket = InTmp::of(port);
    let mut stranger = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "perl", "-e", LISTEN])
        .arg(&socket.0)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(stranger.stdout.take().unwrap()).lines();
    assert_eq!(told.next().unwrap().unwrap(), "ready");
    let error = refused(&format!("port={port} user=u dbname=d password=secret")).await;
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
    assert!(error.message().contains("65534") && error.hint().unwrap().contains("host=/tmp"), "{error}");
    assert_eq!(told.next().unwrap().unwrap(), "heard 0");
    stranger.wait().unwrap();
}

#[tokio::test]
async fn a_server_of_another_user_than_requirepeer_names_is_told_nothing() {
    let server = shared(15);
    let to = server.socket();
    let folder = to.split(' ').find_map(|word| word.strip_prefix("host=")).unwrap();
    let socket = PathBuf::from(folder).join(format!(".s.PGSQL.{}", server.port));
    let owner = Command::new("stat").args(["-c", "%U"]).arg(socket).output().unwrap().stdout;
    let owner = String::from_utf8(owner).unwrap().trim().to_owned();
    connect(&format!("{to} dbname=postgres requirepeer={owner}")).await;
    let other = if owner == "daemon" { "bin" } else { "daemon" };
    for other in [other, "nobody-of-that-name", "-r"] {
        let error = refused(&format!("{to} dbname=postgres requirepeer={other}")).await;
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
        assert!(error.message().contains("requirepeer"), "{error}");
    }
    // As in libpq, by TCP nobody can tell.
    let tcp =
        format!("host=127.0.0.1 port={} user=postgres dbname=postgres requirepeer={other}", server.port);
    connect(&tcp).await;
}
