//! Exports of other systems, and of COPY: what they write with backslashes is stored as it was meant.

use crate::auto::load;
use crate::scene::{Files, PATIENCE};
use howdah_testkit::Server;

#[test]
fn parts_of_an_export_are_read_alike() {
    let files = Files::new();
    let database = Server::shared(15).database();
    database.sql("CREATE TABLE t (id int, name text, note text)");
    let cases: [&[&str]; 3] = [
        &["1|Anna|\\N\n2|Bob\\|by|C:\\\\a\n", "3|C:\\\\temp|x\n4|Dora|y\n", "5|Emil|z\n6|Fay|\\\\\n"],
        &[
            "1,\"say \\\"hi\\\"\",\"a, b\"\n2,\"Bob\",\"C:\\\\a\"\n",
            "3,\"C:\\\\temp\",\"x\"\n4,\"Dora\",\"y\"\n",
            "5,\"Emil\",\"z\"\n6,\"Fay\",\"\\\\\"\n",
        ],
        &["1\tAnna\t\\N\n2\tBob\tC:\\\\a\n", "3\tC:\\\\temp\tx\n4\tDora\ty\n", "5\tEmil\tz\n6\tFay\t\\\\\n"],
    ];
    for (no, parts) in cases.iter().enumerate() {
        for (part, text) in parts.iter().enumerate() {
            files.put(&format!("{no}_part_{part}"), text.as_bytes());
        }
        let pattern = files.path().join(format!("{no}_part_*"));
        load(&database).args(["--table", "t"]).arg(pattern).run(PATIENCE).expect_code(0);
        let stored = "SELECT string_agg(id || name || note, ' ' ORDER BY id) FROM t WHERE id IN (2, 3, 6)";
        let bob = ["Bob|by", "Bob", "Bob"][no];
        assert_eq!(database.value(stored), format!("2{bob}C:\\a 3C:\\tempx 6Fay\\"), "{no}");
        database.sql("TRUNCATE t");
    }
    // What a file shows of itself counts more.
    files.put("other_0", b"1|Anna|\\N\n2|Bob\\|by|C:\\\\a\n");
    files.put("other_1", b"3|C:\\data\\\\x|x\n4|Dora|y\n");
    let pattern = files.path().join("other_*");
    load(&database).args(["--table", "t"]).arg(pattern).run(PATIENCE).expect_code(0);
    assert_eq!(database.value("SELECT name FROM t WHERE id = 3"), "C:\\data\\\\x");
}
