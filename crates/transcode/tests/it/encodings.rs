//! Characters of East Asian encodings, against the server's own conversion of every pair of bytes.

use howdah_testkit::{MAJORS, Server};
use howdah_transcode::encode::{Malformed, to_utf8};
use std::collections::HashMap;
use std::io::Read;

const ENCODINGS: [&str; 7] = ["BIG5", "UHC", "EUC_KR", "EUC_CN", "GBK", "SJIS", "GB18030"];

/// Each beginning beyond ASCII with each second byte but NUL, and what it is in UTF-8.
const PAIRS_SQL: &str = "SELECT encode(b, 'hex'), pg_temp.converted(b, '{encoding}') FROM (SELECT set_byte(set_byte('\\x0000', 0, one), 1, two) AS b \
     FROM generate_series(128, 255) AS one, generate_series(1, 255) AS two) AS pairs";

const CONVERTED_SQL: &str =
    "CREATE FUNCTION pg_temp.converted(bytes bytea, encoding text) RETURNS text LANGUAGE plpgsql AS $$
     BEGIN RETURN convert_from(bytes, encoding); EXCEPTION WHEN OTHERS THEN RETURN NULL; END $$";

fn read(encoding: &str, bytes: &[u8]) -> Option<String> {
    let mut text = String::new();
    to_utf8(encoding, bytes, Malformed::Refused).unwrap().read_to_string(&mut text).ok()?;
    Some(text)
}

#[test]
fn every_pair_of_bytes_is_to_the_client_what_it_is_to_the_server() {
    let read: HashMap<(&str, [u8; 2]), Option<String>> = ENCODINGS
        .into_iter()
        .flat_map(|encoding| {
            let pairs = (0x80..=u8::MAX).flat_map(|one| (1..=u8::MAX).map(move |two| [one, two]));
            pairs.map(move |pair| ((encoding, pair), read(encoding, &pair)))
        })
        .collect();
    for major in MAJORS {
        let database = Server::shared(major).database();
        let connection = database.connect();
        connection.sql(CONVERTED_SQL);
        for encoding in ENCODINGS {
            let rows = connection.rows(&PAIRS_SQL.replace("{encoding}", encoding));
            let differ: Vec<String> = rows
                .iter()
                .filter_map(|row| {
                    let pair = u16::from_str_radix(row[0].as_deref().unwrap(), 16).unwrap().to_be_bytes();
                    let (server, client) = (&row[1], &read[&(encoding, pair)]);
                    (server != client).then(|| format!("{pair:x?}: {server:?}, not {client:?}"))
                })
                .collect();
            assert_eq!(rows.len(), 128 * 255);
            assert!(
                differ.is_empty(),
                "PostgreSQL {major}, {encoding}: {} {:?}",
                differ.len(),
                differ.first()
            );
        }
    }
}
