//! Sizes, times, names and one-byte options; sizes and times as PostgreSQL writes them in its configuration.
//!
//! `kB`, `MB`, `GB` and `TB` are powers of 1024 as there
//! (<https://www.postgresql.org/docs/current/config-setting.html>); the IEC names say the same.

pub use howdah_engine::model::show_count;
use howdah_engine::model::{Error, ErrorKind, Result, counted};

/// Bytes: `16MB`, `16MiB`, `1GB`, or a bare number.
///
/// # Errors
/// `Usage` for anything else.
pub fn bytes(option: &str, text: &str) -> Result<u64> {
    let factor = |unit: &str| match unit.to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "k" | "kb" | "kib" => Some(1 << 10),
        "m" | "mb" | "mib" => Some(1 << 20),
        "g" | "gb" | "gib" => Some(1 << 30),
        "t" | "tb" | "tib" => Some(1 << 40),
        _ => None,
    };
    parse(text, factor).ok_or_else(|| wrong(option, "a size like 64MB or 1GB", text))
}

/// Milliseconds: `10min`, `30s`, `500ms`, or a bare number of seconds.
///
/// # Errors
/// `Usage` for anything else.
pub fn milliseconds(option: &str, text: &str) -> Result<u64> {
    let factor = |unit: &str| match unit.to_ascii_lowercase().as_str() {
        "ms" => Some(1),
        "" | "s" => Some(1000),
        "min" | "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    parse(text, factor).ok_or_else(|| wrong(option, "a time like 30s or 10min", text))
}

fn parse(text: &str, factor: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    number.parse::<u64>().ok()?.checked_mul(factor(unit.trim())?)
}

/// One byte as a shell user writes it: itself, `\t`, or `\x1f`.
///
/// # Errors
/// `Usage` for anything else.
pub fn byte(option: &str, text: &str) -> Result<u8> {
    if let Some(digits) = text.strip_prefix("\\x") {
        // `from_str_radix` alone would take a sign too.
        let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let byte = u8::from_str_radix(digits, 16).ok().filter(|_| is_hex);
        return byte.ok_or_else(|| wrong(option, "one byte", text));
    }
    match text {
        "\\t" => Ok(b'\t'),
        "\\b" => Ok(8),
        "\\f" => Ok(12),
        "\\v" => Ok(11),
        _ => howdah_engine::copy_options::byte(option, text),
    }
}

/// Names of columns between commas: as they are, or in double quotes that are doubled inside.
///
/// # Errors
/// What is wrong with a name in quotes.
pub fn names(list: &str) -> std::result::Result<Vec<String>, String> {
    let (mut names, mut rest) = (Vec::new(), Some(list).filter(|list| !list.is_empty()));
    while let Some(text) = rest {
        let Some(quoted) = text.strip_prefix('"') else {
            let (name, behind) = text.split_once(',').map_or((text, None), |(name, rest)| (name, Some(rest)));
            names.push(name.to_owned());
            rest = behind;
            continue;
        };
        let (name, behind) = quoted_name(quoted).ok_or("expected a second double quote behind the name")?;
        names.push(name);
        rest = behind.strip_prefix(',');
        if rest.is_none() && !behind.is_empty() {
            return Err("expected a comma or nothing behind a name in double quotes".to_owned());
        }
    }
    Ok(names)
}

/// The name before the closing quote, and what stands behind that.
fn quoted_name(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let (part, behind) = rest.split_once('"')?;
        name.push_str(part);
        let Some(doubled) = behind.strip_prefix('"') else { return Some((name, behind)) };
        name.push('"');
        rest = doubled;
    }
}

/// One character or more as a shell user writes them: themselves, or one byte as in [`byte`].
///
/// # Errors
/// `Usage` for nothing at all.
pub fn text(option: &str, text: &str) -> Result<String> {
    match text {
        "" => Err(wrong(option, "one character or more", text)),
        _ if text.starts_with('\\') => Ok(char::from(byte(option, text)?).to_string()),
        _ => Ok(text.to_owned()),
    }
}

fn wrong(option: &str, expected: &str, got: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("{option}: expected {expected}, got {got:?}"))
}

/// Bytes for people: `1.5 GB`.
pub(crate) fn show_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit < UNITS.len() - 1 {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 100.0 { 0 } else { 1 };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// `1 row`, `4,000,000 rows`.
pub(crate) fn show_rows(count: u64) -> String {
    counted(&show_count(count), "row")
}

/// Seconds for people: `0.42 s`, `12.3 s`, `4 min 07 s`.
pub(crate) fn show_seconds(seconds: f64) -> String {
    if seconds < 10.0 {
        return format!("{seconds:.2} s");
    }
    if seconds < 90.0 {
        return format!("{seconds:.1} s");
    }
    // Far below 2^53 seconds.
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, minutes, seconds) => format!("{minutes} min {seconds:02} s"),
        (hours, minutes, _) => format!("{hours} h {minutes:02} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use howdah_engine::model::{plural, show_size};

    #[test]
    fn names_with_commas_stand_in_quotes() {
        for (list, expected) in [
            ("a,b", &["a", "b"][..]),
            ("\"a,b\",c", &["a,b", "c"]),
            ("x,\"a \"\"b\"\"\"", &["x", "a \"b\""]),
            ("5\" pipe, b", &["5\" pipe", " b"]),
            ("a,", &["a", ""]),
            ("", &[]),
        ] {
            assert_eq!(names(list).unwrap(), expected, "{list}");
        }
        for wrong in ["\"a", "\"a\"b", "a,\"b\" ,c"] {
            assert!(names(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_and_times_are_postgresqls() {
        assert_eq!(bytes("x", "16MB").unwrap(), 16 << 20);
        assert_eq!(bytes("x", "1 GiB").unwrap(), 1 << 30);
        assert_eq!(bytes("x", "4096").unwrap(), 4096);
        assert_eq!(milliseconds("x", "10min").unwrap(), 600_000);
        assert_eq!(milliseconds("x", "5").unwrap(), 5000);
        for size in [0, 1, 1000, 1024, 63 << 20, 3 << 30, 5 << 40, (1 << 40) + 1, u64::MAX] {
            assert_eq!(bytes("x", &show_size(size)).unwrap(), size);
        }
        assert_eq!(show_size(63 << 20), "63MB");
        for wrong in ["", "MB", "-1", "1x", "99999999999TB", "1.5MB"] {
            assert!(bytes("x", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bytes_can_be_escaped() {
        assert_eq!(byte("x", "\\t").unwrap(), b'\t');
        assert_eq!(byte("x", "\\x1f").unwrap(), 0x1f);
        assert_eq!(byte("x", ";").unwrap(), b';');
        for wrong in ["", "ab", "ä", "\\xzz", "\\x", "\\x+1", "\\x100"] {
            assert!(byte("x", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_text_panics() {
        let parts: Vec<&str> =
            "|0|1|18446744073709551615|99999999999999999999|-|+|.| |ä|\0|\\x|f|TB|d|ms".split('|').collect();
        for _ in 0..20_000 {
            let text: String = (0..4).map(|_| parts[fastrand::usize(0..parts.len())]).collect();
            let _ = (bytes("x", &text), milliseconds("x", &text), byte("x", &text));
        }
    }

    #[test]
    fn people_get_round_figures() {
        assert_eq!(show_count(4_000_000), "4,000,000");
        assert_eq!([show_rows(0), show_rows(1), show_rows(4000)], ["0 rows", "1 row", "4,000 rows"]);
        assert_eq!([1, 2].map(|count| plural(count, "row was", "rows were")), ["row was", "rows were"]);
        assert_eq!(show_bytes(178_257_920), "170 MB");
        assert_eq!(show_seconds(247.2), "4 min 07 s");
    }
}
