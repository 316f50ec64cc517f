//! Roles whose transactions are serializable unless something else is said.

use crate::scene::{Files, PATIENCE, csv, howdah};
use howdah_testkit::Server;

/// Whatever defines something must see what others have committed before it.
const LOOK: &str = "\
    CREATE FUNCTION look() RETURNS event_trigger LANGUAGE plpgsql AS \
        'BEGIN IF current_setting(''transaction_isolation'') <> ''read committed'' THEN RAISE ''%'', TG_TAG; END IF; END'; \
    CREATE EVENT TRIGGER look ON ddl_command_start EXECUTE FUNCTION look()";

#[test]
fn a_role_whose_transactions_are_serializable_loads_like_any_other() {
    let server = Server::shared(18);
    let database = server.database();
    let (name, role) = (database.name(), format!("strict_{}", database.name()));
    database.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT CREATE ON DATABASE {name} TO {role}; GRANT CREATE ON SCHEMA public TO {role}; \
         ALTER ROLE {role} SET default_transaction_isolation = 'serializable'; \
         ALTER ROLE {role} SET default_transaction_deferrable = on; \
         CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text); CREATE INDEX ON t (part); \
         CREATE TABLE dated (id bigint, day date) PARTITION BY RANGE (day); \
         ALTER TABLE t OWNER TO {role}; ALTER TABLE dated OWNER TO {role}; {LOOK}"
    ));
    let files = Files::new();
    let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
    let load = |table: &str, bytes: &[u8], options: &[&str]| {
        let source = files.put(&format!("{}.csv", options[1]), bytes);
        let load = howdah("load").args(["--format", "csv", "--header", "--table", table, "--to", &to]);
        load.args(options).arg(source).run(PATIENCE).expect_code(0);
    };
    let count = |table: &str| database.value(&format!("SELECT count(*) FROM {table}"));
    load("t", &csv(91, 1, 500), &["--indexes", "rebuild"]);
    load("t", &csv(92, 401, 200), &["--mode", "merge", "--key", "id"]);
    assert_eq!(count("t"), "600");
    load("t", &csv(93, 1, 300), &["--mode", "replace"]);
    assert_eq!(count("t"), "300");
    load("t", &csv(94, 1, 200), &["--mode", "truncate", "--freeze"]);
    assert_eq!(count("t"), "200");
    load("dated", b"id,day\n1,2024-01-02\n2,2024-02-03\n", &["--create-partitions", "month"]);
    assert_eq!(count("dated"), "2");
}

/// The first statements of a load ask for what may not be there.
#[test]
fn a_role_whose_sessions_end_with_their_first_error_loads_like_any_other() {
    let database = Server::shared(18).database();
    let (name, role) = (database.name(), format!("ends_{}", database.name()));
    database.sql(&format!(
        "CREATE ROLE {role} LOGIN; GRANT CREATE ON DATABASE {name} TO {role}; ALTER ROLE {role} SET exit_on_error = on; \
         CREATE TABLE t (id bigint PRIMARY KEY, part integer, amount numeric, note text); ALTER TABLE t OWNER TO {role}"
    ));
    let files = Files::new();
    let source = files.put("t.csv", &csv(95, 1, 500));
    let to = database.conninfo().replace("user=postgres", &format!("user={role}"));
    let load = howdah("load").args(["--format", "csv", "--header", "--table", "t", "--to", &to]).arg(&source);
    load.run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT count(*) FROM t"), "500");
}
