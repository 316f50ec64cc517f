//! Readings as people type them in options: `date:d/m/y`, `numeric:1.234,56`.

use super::grouped::take_apart;
use super::verdict::order_name;
use howdah_model::{DateOrder, Error, ErrorKind, Reading, Result};

/// An SQL type, and behind a colon the spelling of its values: `d/m/y`, `m/d/y`, `y/m/d` (any separator in
/// the data), `month` (its English name), `epoch`, `epoch-ms`, `y/n`, or the number 1234.56 as the data
/// would have it: `1.234,56`, `$1,234.56`, `(1 234,56)`, `1234,56%`, `1,234`, `1.234,56-`.
///
/// # Errors
/// `Usage` without a type, or with a spelling that is none of these.
pub fn parse_type(text: &str) -> Result<(String, Option<Reading>)> {
    let (type_name, spelled) = match text.split_once(':') {
        Some((type_name, spelled)) => (type_name.trim(), Some(spelled.trim())),
        None => (text.trim(), None),
    };
    if type_name.is_empty() {
        return Err(Error::new(ErrorKind::Usage, "expected the name of an SQL type, got none"));
    }
    let reading = match spelled {
        None => None,
        Some(spelled) => Some(parse_reading(spelled).ok_or_else(|| {
            let message = format!("`{spelled}` is no spelling of values that howdah knows");
            let hint = "write d/m/y, m/d/y, y/m/d, month, epoch, epoch-ms, y/n, or the number 1234.56 as \
                        the file would have it, as in 1.234,56";
            Error::new(ErrorKind::Usage, message).with_hint(hint)
        })?),
    };
    Ok((type_name.to_owned(), reading))
}

/// The spelling behind the colon that gives this reading, but of any currency: its sign is written as a
/// dollar.
pub fn spelling(reading: &Reading) -> String {
    match reading {
        Reading::Date(order) => order_name(*order).to_owned(),
        Reading::MonthName => "month".to_owned(),
        Reading::EpochSeconds => "epoch".to_owned(),
        Reading::EpochMilliseconds => "epoch-ms".to_owned(),
        Reading::Boolean => "y/n".to_owned(),
        Reading::Number { group, decimal, currency, parentheses, minus_behind, percent, .. } => {
            let group = group.map(String::from).unwrap_or_default();
            let mut text = format!("1{group}234{decimal}56");
            if *currency {
                text.insert(0, '$');
            }
            if *percent {
                text.push('%');
            }
            let text = if *parentheses { format!("({text})") } else { text };
            if *minus_behind { text + "-" } else { text }
        }
    }
}

fn parse_reading(spelled: &str) -> Option<Reading> {
    let word = spelled.to_lowercase();
    let date = word.replace(['.', '-'], "/");
    for order in [DateOrder::Ymd, DateOrder::Dmy, DateOrder::Mdy] {
        if date == order_name(order) {
            return Some(Reading::Date(order));
        }
    }
    match word.as_str() {
        "month" => Some(Reading::MonthName),
        "epoch" => Some(Reading::EpochSeconds),
        "epoch-ms" => Some(Reading::EpochMilliseconds),
        "y/n" => Some(Reading::Boolean),
        _ => parse_number(spelled),
    }
}

/// The number 1234.56, 1234 or 12 in the spelling of the data.
fn parse_number(spelled: &str) -> Option<Reading> {
    // Both ways to write a negative number may be in one column.
    let (spelled, minus_behind) = spelled.strip_suffix('-').map_or((spelled, false), |rest| (rest, true));
    let parts = take_apart(spelled.as_bytes())
        .filter(|parts| parts.negative == parts.parentheses && parts.powers.is_empty())?;
    let (whole, decimal) = match parts.body.strip_suffix("56") {
        Some(whole) => {
            let decimal = whole.chars().next_back().filter(|c| matches!(c, '.' | ','))?;
            (whole.strip_suffix(decimal)?, Some(decimal))
        }
        None => (parts.body, None),
    };
    let group = match whole {
        "1234" | "12" => None,
        _ => {
            let mut between = whole.strip_prefix('1')?.strip_suffix("234")?.chars();
            Some(between.next().filter(|_| between.next().is_none())?)
        }
    };
    let decimal = decimal.unwrap_or(if group == Some('.') { ',' } else { '.' });
    // The group must be one that numbers can have.
    let side = parts.side(decimal).filter(|_| group != Some(decimal))?;
    (side.first_group.is_some() == group.is_some()).then_some(Reading::Number {
        group,
        decimal,
        currency: parts.currency.is_some(),
        parentheses: parts.parentheses,
        minus_behind,
        percent: parts.percent,
        sign: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reading_has_a_spelling_that_gives_it_back() {
        let mut readings = vec![
            Reading::Date(DateOrder::Ymd),
            Reading::Date(DateOrder::Dmy),
            Reading::Date(DateOrder::Mdy),
            Reading::MonthName,
            Reading::EpochSeconds,
            Reading::EpochMilliseconds,
            Reading::Boolean,
        ];
        for group in [None, Some(' '), Some('.'), Some(','), Some('\''), Some('\u{a0}'), Some('\u{202f}')] {
            for decimal in ['.', ','] {
                for flags in 0..16 {
                    let (currency, parentheses, percent) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
                    let minus_behind = flags & 8 != 0;
                    if group != Some(decimal) {
                        let sign = None;
                        readings.push(Reading::Number {
                            group,
                            decimal,
                            currency,
                            parentheses,
                            minus_behind,
                            percent,
                            sign,
                        });
                    }
                }
            }
        }
        for reading in readings {
            let spelled = spelling(&reading);
            let (type_name, parsed) = parse_type(&format!(" numeric(12,2) : {spelled}")).unwrap();
            assert_eq!((type_name.as_str(), parsed), ("numeric(12,2)", Some(reading)), "{spelled}");
        }
    }

    #[test]
    fn the_usual_ways_to_type_one_are_known() {
        assert_eq!(parse_type("text").unwrap(), ("text".to_owned(), None));
        assert_eq!(parse_type("date:D.M.Y").unwrap().1, Some(Reading::Date(DateOrder::Dmy)));
        let no_frills = |group, decimal| Reading::Number {
            group,
            decimal,
            currency: false,
            parentheses: false,
            minus_behind: false,
            percent: false,
            sign: None,
        };
        assert_eq!(parse_type("int:1,234").unwrap().1, Some(no_frills(Some(','), '.')));
        assert_eq!(parse_type("int:1.234").unwrap().1, Some(no_frills(Some('.'), ',')));
        assert_eq!(parse_type("int:1 234").unwrap().1, Some(no_frills(Some(' '), '.')));
        for bad in [
            "",
            ":d/m/y",
            "date:",
            "date:d/m",
            "numeric:1x234",
            "numeric:5",
            "numeric:1234,56e1",
            "numeric:-1234.56",
            "numeric:-1234.56-",
            "a:1.234.56",
        ] {
            assert_eq!(parse_type(bad).unwrap_err().kind(), ErrorKind::Usage, "{bad}");
        }
    }
}
