//! Nasty files are accepted by COPY often enough to test something, and refused often enough too.

use howdah_testkit::{MAJORS, NastyFile, NastyOptions, Server};

const FILES: u64 = 150;

#[test]
fn copy_accepts_most_files_and_understands_every_dialect() {
    for major in MAJORS {
        let database = Server::shared(major).database();
        let options = NastyOptions::for_major(major);
        let mut accepted = 0;
        for seed in 0..FILES {
            let file = NastyFile::new(seed, &options);
            database.sql(&format!("DROP TABLE IF EXISTS t; {}", file.create_table("t")));
            match database.copy_in(&file.copy_sql("t"), file.bytes.clone()) {
                Ok(_) => accepted += 1,
                Err(error) => {
                    let class = error.as_db_error().expect("an error of the server").code().code().to_owned();
                    // 22xxx: the data. Anything else would be a statement the server does not understand.
                    assert!(
                        class.starts_with("22"),
                        "seed {seed} on {major}: {class} {}",
                        file.copy_sql("t")
                    );
                }
            }
        }
        println!("PostgreSQL {major}: {accepted} of {FILES} accepted");
        assert!(
            (FILES / 2..FILES * 95 / 100).contains(&accepted),
            "{accepted} of {FILES} accepted by {major}"
        );
    }
}

#[test]
fn equal_tables_have_equal_digests_whatever_the_order() {
    let database = Server::shared(18).database();
    database.sql("CREATE TABLE a (x int, y text); INSERT INTO a VALUES (1, 'x'), (2, NULL), (2, NULL)");
    database.sql("CREATE TABLE b (LIKE a); INSERT INTO b VALUES (2, NULL), (1, 'x')");
    assert_ne!(database.digest("a"), database.digest("b"));
    database.sql("INSERT INTO b VALUES (2, NULL)");
    assert_eq!(database.digest("a"), database.digest("b"));
    assert_eq!(database.rows("SELECT y FROM b ORDER BY x LIMIT 2"), [vec![Some("x".to_owned())], vec![None]]);
}
