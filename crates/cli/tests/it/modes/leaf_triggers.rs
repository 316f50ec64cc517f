//! A trigger of a partition alone fills what the table wants to be filled.

use super::{assert_nothing_left, load};
use crate::scene::{Files, PATIENCE};
use howdah_testkit::{MAJORS, Server, side_by_side};

#[test]
fn what_a_trigger_of_a_partition_fills_may_wait_unfilled() {
    let files = Files::new();
    let source = files.put("a.csv", b"id,note\n1,\n2,x\n");
    side_by_side(MAJORS, |major| {
        for options in [
            &[][..],
            &["--atomic"],
            &["--atomic", "--on-error", "skip"],
            &["--mode", "merge", "--key", "id"],
            &["--mode", "merge", "--key", "id", "--on-error", "skip"],
        ] {
            let database = Server::shared(major).database();
            database.sql(
                "CREATE TABLE t (id int PRIMARY KEY, note text NOT NULL) PARTITION BY RANGE (id); \
                 CREATE TABLE leaf PARTITION OF t DEFAULT; \
                 CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS \
                     $$ BEGIN NEW.note := coalesce(NEW.note, 'filled'); RETURN NEW; END $$; \
                 CREATE TRIGGER fill BEFORE INSERT ON leaf FOR EACH ROW EXECUTE FUNCTION fill()",
            );
            load(&database, &[&source]).args(options).run(PATIENCE).expect_code(0);
            let rows = "SELECT string_agg(id || note, ' ' ORDER BY id) FROM t";
            assert_eq!(database.value(rows), "1filled 2x", "PostgreSQL {major}, {options:?}");
            assert_nothing_left(&database, "a trigger of a leaf");
        }
    });
}
