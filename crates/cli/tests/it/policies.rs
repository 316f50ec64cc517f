//! Row-level security: rows of a role that policies apply to meet them, and a load that they refuse a row of
//! says which.

use crate::rights::Stage;
use crate::scene::PATIENCE;
use howdah_testkit::{HowdahCommand, MAJORS};
use std::fmt::Write as _;
use std::path::PathBuf;

const ROWS: u64 = 5_000;
const CHUNK: [&str; 2] = ["--chunk-size", "16kB"];
/// The policy of the stage, which these rows break.
const BAD: [u64; 4] = [1, 2, 1234, 4999];

/// A role with the least rights that a load needs, and a policy that wants `a` to be positive. It may not
/// read.
fn stage(major: u32) -> Stage {
    let stage = Stage::new(major);
    stage.sql(
        "GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {db} TO {role}; GRANT USAGE ON SCHEMA s TO {role}; \
         GRANT INSERT (a, b) ON s.t TO {role}; GRANT USAGE ON SEQUENCE s.t_k_seq TO {role}; \
         ALTER TABLE s.t ENABLE ROW LEVEL SECURITY; CREATE POLICY positive ON s.t FOR INSERT WITH CHECK (a > 0)",
    );
    stage
}

/// A file of which these records break the policy.
fn file(stage: &Stage, name: &str, bad: &[u64]) -> PathBuf {
    let mut csv = "a,b\n".to_owned();
    for no in 1..=ROWS {
        let sign = if bad.contains(&no) { "-" } else { "" };
        let _ = writeln!(csv, "{sign}{no},\"row\n{no:0>20}\"");
    }
    stage.files.put(name, csv.as_bytes())
}

fn load(stage: &Stage, options: &[&str]) -> HowdahCommand {
    stage.verb("load").args(CHUNK).args(options)
}

#[test]
fn rows_come_through_the_policies_and_the_plan_says_how() {
    for major in MAJORS {
        let stage = stage(major);
        let source = file(&stage, "good.csv", &[]);
        let plan = stage.verb("plan").arg(&source).run(PATIENCE).expect_code(0).stdout;
        assert!(
            plan.contains(
                "row-level security applies to this role: rows come by INSERT from a temporary table"
            ),
            "{plan}"
        );
        stage.sql(
            "CREATE POLICY \"not theirs\" ON s.t FOR INSERT TO postgres WITH CHECK (true); \
             CREATE POLICY reads ON s.t FOR SELECT USING (true); CREATE POLICY \"A\" ON s.t AS RESTRICTIVE TO {role} USING (true)",
        );
        let plan = stage.verb("plan").arg(&source).run(PATIENCE).expect_code(0).stdout;
        assert!(plan.contains("have to be asked; they meet A, positive\n"), "{plan}");
        stage.sql("GRANT SELECT, UPDATE (b) ON s.t TO {role}; CREATE UNIQUE INDEX key ON s.t (a); DROP POLICY reads ON s.t");
        let merge = stage.verb("plan").args(["--mode", "merge", "--key", "a"]).arg(&source);
        let plan = merge.run(PATIENCE).expect_code(0).stdout;
        let lacking =
            "they meet A, positive; no policy lets this role see rows (SELECT), or change rows (UPDATE)\n";
        assert!(plan.contains(lacking), "{plan}");
        stage.sql("DROP INDEX s.key; REVOKE SELECT, UPDATE (b) ON s.t FROM {role}; CREATE POLICY reads ON s.t FOR SELECT USING (true)");
        stage.sql("DROP POLICY positive ON s.t");
        let plan = stage.verb("plan").arg(&source).run(PATIENCE).expect_code(1).stderr;
        assert!(
            plan.contains("no policy lets the role insert rows: all would be refused (SQLSTATE 42501)"),
            "{plan}"
        );
        stage.sql("CREATE POLICY positive ON s.t FOR INSERT WITH CHECK (a > 0)");
        load(&stage, &[]).arg(&source).run(PATIENCE).expect_code(0);
        let there = stage
            .database
            .value("SELECT count(*) || ' ' || count(DISTINCT k) || ' ' || count(DISTINCT b) FROM s.t");
        assert_eq!(there, format!("{ROWS} {ROWS} {ROWS}"), "PostgreSQL {major}");
        assert_eq!(stage.database.value("SELECT count(*) > 5 FROM howdah.chunk"), "t");
        // Another run of the job plans what goes through and what goes straight anew.
        let refused = load(&stage, &[]).arg(&source).run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("this job finished at"), "{refused}");
    }
}

/// A role may be there to change rows alone.
#[test]
fn a_merge_into_rows_that_are_there_needs_no_policy_for_others() {
    for major in MAJORS {
        let stage = Stage::new(major);
        stage.sql(
            "GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {db} TO {role}; GRANT USAGE ON SCHEMA s TO {role}; \
             GRANT SELECT, INSERT, UPDATE ON s.t TO {role}; GRANT USAGE ON SEQUENCE s.t_k_seq TO {role}; \
             ALTER TABLE s.t ADD PRIMARY KEY (a); INSERT INTO s.t VALUES (1, 'old'); \
             ALTER TABLE s.t ENABLE ROW LEVEL SECURITY; CREATE POLICY sees ON s.t FOR SELECT USING (true); \
             CREATE POLICY changes ON s.t FOR UPDATE USING (true)",
        );
        let source = stage.files.put("t.csv", b"a,b\n1,new\n");
        load(&stage, &["--mode", "merge", "--key", "a"]).arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(stage.database.value("SELECT b FROM s.t"), "new", "PostgreSQL {major}");
        stage.sql("DROP POLICY changes ON s.t");
        let source = stage.files.put("u.csv", b"a,b\n2,new\n");
        let refused = load(&stage, &["--mode", "merge", "--key", "a"]).arg(&source).run(PATIENCE);
        let refused = refused.expect_code(1).stderr;
        assert!(refused.contains("no policy lets the role insert rows"), "{refused}");
    }
}

#[test]
fn a_row_that_a_policy_refuses_ends_the_load_with_its_place() {
    for major in MAJORS {
        let stage = stage(major);
        let source = file(&stage, "bad.csv", &[1234]);
        let failed = load(&stage, &[]).arg(&source).run(PATIENCE).expect_code(1).stderr;
        let text = std::fs::read_to_string(&source).unwrap();
        let place = format!(", record 1234, byte {}: ", text.find("-1234,").unwrap());
        for words in
            [&place, "violates row-level security policy", "(SQLSTATE 42501)", "hint: the WITH CHECK"]
        {
            assert!(failed.contains(words), "{words}\n{failed}");
        }
        assert!(!failed.contains("-1234"), "{failed}");
        // What came before it is in, as with any bad record; of its own chunk nothing is.
        assert_eq!(
            stage.database.value("SELECT count(*) FROM s.t WHERE a <= 0 OR a BETWEEN 1200 AND 1260"),
            "0"
        );
        assert_eq!(stage.database.value("SELECT count(*) FROM s.t WHERE a < 200"), "199");
        // A constraint names no line either.
        stage.sql("DROP POLICY positive ON s.t; CREATE POLICY p ON s.t WITH CHECK (true); ALTER TABLE s.t ADD CHECK (a > 0) NOT VALID");
        let failed = load(&stage, &[]).arg(&source).run(PATIENCE).expect_code(1).stderr;
        assert!(failed.contains("record 1234") && failed.contains("23514"), "{failed}");
        stage.sql("ALTER TABLE s.t DROP CONSTRAINT t_a_check");
        load(&stage, &[]).arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(stage.database.value("SELECT count(DISTINCT b) FROM s.t"), ROWS.to_string());
    }
}

#[test]
fn what_a_policy_refuses_is_kept_and_the_rest_is_stored() {
    for major in MAJORS {
        let stage = stage(major);
        let source = file(&stage, "bad.csv", &BAD);
        load(&stage, &["--on-error", "skip"]).arg(&source).run(PATIENCE).expect_code(3);
        assert_eq!(stage.database.value("SELECT count(*) FROM s.t"), (ROWS - 4).to_string());
        assert_eq!(stage.database.value("SELECT count(*) FROM s.t WHERE a <= 0"), "0");
        let kept = stage.database.rows(
            "SELECT record, sqlstate, message LIKE '%row-level security policy%', \
             convert_from(bytes, 'UTF8') LIKE '-' || record || ',%' FROM howdah.reject ORDER BY record",
        );
        let wanted =
            BAD.map(|no| [&no.to_string(), "42501", "t", "t"].map(|text| Some(text.to_owned())).to_vec());
        assert_eq!(kept, wanted, "PostgreSQL {major}");
    }
}

#[test]
fn whom_policies_apply_to_decides() {
    for major in MAJORS {
        let stage = stage(major);
        let through = |name: &str| {
            let source = file(&stage, name, &[]);
            let plan = stage.verb("plan").arg(&source).run(PATIENCE).expect_code(0).stdout;
            load(&stage, &[]).arg(&source).run(PATIENCE).expect_code(0);
            plan.contains("rows come by INSERT")
        };
        stage.sql("ALTER ROLE {role} BYPASSRLS");
        assert!(!through("bypass.csv"));
        stage.sql("ALTER ROLE {role} NOBYPASSRLS; ALTER TABLE s.t OWNER TO {role}");
        assert!(!through("owner.csv"));
        stage.sql("ALTER TABLE s.t FORCE ROW LEVEL SECURITY");
        assert!(through("forced.csv"));
        assert_eq!(stage.database.value("SELECT count(*) FROM s.t"), (3 * ROWS).to_string());
        stage.sql("ALTER ROLE {role} SET row_security = off");
        let source = file(&stage, "off.csv", &[]);
        let refused = load(&stage, &[]).arg(&source).run(PATIENCE).expect_code(1).stderr;
        assert!(
            refused.contains("row_security = off forbids") && refused.contains("SET row_security = on"),
            "{refused}"
        );
        stage.sql("ALTER ROLE {role} RESET row_security; REVOKE TEMPORARY ON DATABASE {db} FROM {role}");
        let refused = load(&stage, &[]).arg(&source).run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("GRANT TEMPORARY ON DATABASE"), "{refused}");
        assert_eq!(stage.database.value("SELECT count(*) FROM s.t"), (3 * ROWS).to_string());
        stage.sql("REASSIGN OWNED BY {role} TO postgres");
    }
}

#[test]
fn every_mode_meets_the_policies_or_says_why_it_cannot() {
    for major in MAJORS {
        let stage = stage(major);
        stage.sql(
            "ALTER TABLE s.t ADD UNIQUE (a); GRANT SELECT, UPDATE, TRUNCATE ON s.t TO {role}; \
             CREATE POLICY reads ON s.t FOR SELECT USING (true); \
             CREATE POLICY changes ON s.t FOR UPDATE USING (true) WITH CHECK (a > 0)",
        );
        let modes: [&[&str]; 4] = [
            &["--mode", "truncate"],
            &["--atomic"],
            &["--mode", "merge", "--key", "a"],
            &["--mode", "insert-new", "--key", "a", "--atomic"],
        ];
        for (no, mode) in modes.into_iter().enumerate() {
            stage.sql("TRUNCATE s.t");
            let good = file(&stage, &format!("good{no}.csv"), &[]);
            load(&stage, mode).arg(good).run(PATIENCE).expect_code(0);
            assert_eq!(stage.database.value("SELECT count(*) FROM s.t"), ROWS.to_string(), "{mode:?}");
            stage.sql("TRUNCATE s.t");
            let bad = file(&stage, &format!("bad{no}.csv"), &[4999]);
            let failed = load(&stage, mode).arg(bad).run(PATIENCE).expect_code(1).stderr;
            assert!(failed.contains("row-level security policy"), "{mode:?}\n{failed}");
            assert!(failed.contains("hint: the WITH CHECK of a policy of the table"), "{mode:?}\n{failed}");
            assert!(
                !failed.contains("GRANT the privilege") && !failed.contains("wait in staging"),
                "{mode:?}\n{failed}"
            );
            let staged = "SELECT count(*) FROM pg_class WHERE relname LIKE 'staging%' AND relkind = 'r'";
            assert_eq!(stage.database.value(staged), "0", "{mode:?}\n{failed}");
            assert_eq!(stage.database.value("SELECT count(*) FROM s.t WHERE a <= 0"), "0", "{mode:?}");
        }
        let good = file(&stage, "replace.csv", &[]);
        let refused = load(&stage, &["--mode", "replace"]).arg(good).run(PATIENCE).expect_code(1).stderr;
        assert!(refused.contains("may not") || refused.contains("would not meet its policies"), "{refused}");
    }
}

/// A foreign key sees the rows that policies hide from the role, so that no record which leads to one is
/// refused.
#[test]
fn a_foreign_key_that_leads_to_hidden_rows_is_met() {
    for major in MAJORS {
        let stage = stage(major);
        stage.sql(
            "ALTER TABLE s.t DISABLE ROW LEVEL SECURITY; ALTER TABLE s.t ADD PRIMARY KEY (a); GRANT SELECT, INSERT ON s.t TO {role}; \
             CREATE TABLE s.customers (id text PRIMARY KEY); ALTER TABLE s.customers ENABLE ROW LEVEL SECURITY; \
             CREATE POLICY sees ON s.customers FOR SELECT USING (id = 'seen'); GRANT SELECT ON s.customers TO {role}; \
             INSERT INTO s.customers VALUES ('seen'), ('hidden'); \
             ALTER TABLE s.t ADD FOREIGN KEY (b) REFERENCES s.customers",
        );
        let mut csv = "a,b\n".to_owned();
        for no in 1..=ROWS {
            let (key, customer) = match no % 20 {
                0 => (no, "nobody"),
                2 => (no, "seen"),
                10 => (no - 1, "hidden"),
                _ => (no, "hidden"),
            };
            let _ = writeln!(csv, "{key},{customer}");
        }
        let source = stage.files.put("hidden.csv", csv.as_bytes());
        for encode in ["binary", "text"] {
            stage.sql("TRUNCATE s.t");
            let skip = ["--on-error", "skip", "--jobs", "1", "--force", "--encode", encode];
            let done = load(&stage, &skip).arg(&source).run(PATIENCE).expect_code(3);
            let refused = stage.database.rows(
                "SELECT sqlstate, count(*)::text, count(*) FILTER (WHERE record % 20 = CASE sqlstate WHEN '23503' THEN 0 ELSE 10 END)::text \
                 FROM howdah.reject GROUP BY 1 ORDER BY 1",
            );
            let each = (ROWS / 20).to_string();
            let wanted = ["23503", "23505"]
                .map(|state| [state, &each, &each].map(|text| Some(text.to_owned())).to_vec());
            assert_eq!(refused, wanted, "PostgreSQL {major}, {encode}: {}", done.stderr);
            let there = stage.database.value("SELECT count(*) FROM s.t");
            assert_eq!(there, (ROWS - ROWS / 10).to_string(), "PostgreSQL {major}, {encode}");
            stage.sql("DELETE FROM howdah.reject");
        }
    }
}
