//! Values that look like something else: a delimiter, NULL, the end of the data.

use super::*;

#[test]
fn a_comma_before_the_milliseconds_of_a_logged_time_is_no_delimiter() {
    let levels = ["INFO", "WARN", "ERROR"];
    for (time, delimiter) in [("2024-01-02 05:53:", ";"), ("05:53:", ";"), ("2024-01-02 05:53:", "|")] {
        let row = |no: usize| {
            let level = levels[no % 3];
            format!(
                "{time}{:02},{:03}{delimiter}{level}{delimiter}pool-{no} has begun\n",
                no % 60,
                no * 7 % 1000
            )
        };
        let log: String = (0..60).map(row).collect();
        let found = text(&log);
        assert_eq!((found.dialect.delimiter.as_str(), found.width), (delimiter, 3), "{}", found.describe());
    }
    let pairs: String = (10..60).map(|no| format!("05:53:{no},{},x\n", no * 7 % 1000)).collect();
    assert_eq!(text(&pairs).width, 3);
}
