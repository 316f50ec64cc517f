//! Files that could be read as something else than they say: they are read as they are meant, told to be unsure, or refused.

use crate::auto::{load, shape};
use crate::scene::{Files, PATIENCE};
use howdah_testkit::Server;

#[test]
fn amounts_with_three_decimals_do_not_become_thousands() {
    let files = Files::new();
    let database = Server::shared(15).database();
    for (name, text) in [
        ("fuel", "station,price\nShell,$3.459\nBP,$3.299\nEsso,$3.389\n"),
        ("benzin", "station;price\nShell;1,759 €\nBP;1,699 €\nEsso;1,719 €\n"),
    ] {
        let source = files.put(&format!("{name}.csv"), text.as_bytes());
        load(&database).arg("--create").arg(&source).run(PATIENCE).expect_code(0);
        assert_eq!(shape(&database, name), "station text, price text");
        for type_name in ["numeric(8,3)", "int"] {
            let table = format!("{name}_{}", &type_name[..3]);
            database.sql(&format!("CREATE TABLE {table} (station text, price {type_name})"));
            let refused = load(&database).args(["--table", &table]).arg(&source).run(PATIENCE);
            // Only a point or a comma without a doubt is between groups, to an integer too.
            if (name, type_name) == ("benzin", "int") {
                refused.expect_code(0);
                continue;
            }
            let refused = refused.expect_code(1).stderr;
            assert!(refused.contains("says what comma and point mean"), "{refused}");
            assert_eq!(database.value(&format!("SELECT count(*) FROM {table}")), "0");
        }
    }
    let source = files.path().join("fuel.csv");
    load(&database)
        .args(["--table", "fuel_num", "--types", "price=numeric:$1234.56"])
        .arg(&source)
        .run(PATIENCE)
        .expect_code(0);
    assert_eq!(database.value("SELECT sum(price) FROM fuel_num"), "10.147");
}
