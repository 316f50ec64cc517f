//! SQL names for columns from the names in a header, and names made alike so that they can be compared.

use super::keywords::is_taken;
use std::collections::{HashMap, HashSet};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Bytes of a name; PostgreSQL cuts longer ones off (NAMEDATALEN is 64 with its final NUL).
const NAME_BYTES_MAX: usize = 63;

/// A column's name for each name of a header: words of lower case letters and digits with `_` between
/// them, which need no quotes in SQL; all different, of at most 63 bytes.
///
/// Accents are taken off Latin letters; letters of other scripts stay. Words begin at capitals
/// (`userName`, `HTTPServer`) and behind anything that is neither letter nor digit. A name that begins with
/// a digit gets `_` in front, one without letters and digits becomes `column_N`, its place counted from 1; a
/// reserved word gets `_` behind it; the second and later of the same name get `_2`, `_3` ..., passing over
/// names that other columns have.
pub fn snake(names: &[String]) -> Vec<String> {
    numbered(&(1..).zip(names).map(|(place, name)| one(place, name)).collect::<Vec<_>>())
}

/// The names as they are, cut to 63 bytes; blank ones and those that are there already are numbered as by
/// [`snake`].
pub fn keep(names: &[String]) -> Vec<String> {
    let as_it_is = |(place, name): (usize, &String)| {
        if name.trim().is_empty() { format!("column_{place}") } else { cut(name, NAME_BYTES_MAX).to_owned() }
    };
    numbered(&(1..).zip(names).map(as_it_is).collect::<Vec<_>>())
}

/// All different: the second and later of the same name get a number that no other has.
fn numbered(wanted: &[String]) -> Vec<String> {
    let mut taken: HashSet<String> = wanted.iter().cloned().collect();
    let mut next: HashMap<&str, usize> = HashMap::new();
    let mut unique = Vec::with_capacity(wanted.len());
    for name in wanted {
        let Some(number) = next.get_mut(name.as_str()) else {
            next.insert(name, 2);
            unique.push(name.clone());
            continue;
        };
        let numbered = loop {
            let suffix = format!("_{number}");
            *number += 1;
            let numbered = cut(name, NAME_BYTES_MAX - suffix.len()).to_owned() + &suffix;
            if taken.insert(numbered.clone()) {
                break numbered;
            }
        };
        unique.push(numbered);
    }
    unique
}

/// The name without case, accents, blanks and punctuation: names that are alike to a person are equal.
/// Empty if there is nothing else in it.
pub fn fold(name: &str) -> String {
    letters(name)
        .filter(|c| c.is_alphanumeric() || is_combining_mark(*c))
        .flat_map(char::to_lowercase)
        .collect()
}

fn one(place: usize, name: &str) -> String {
    let words = words(name);
    let mut found = match words.chars().next() {
        None => return format!("column_{place}"),
        Some(first) if first.is_numeric() => format!("_{words}"),
        Some(_) => words,
    };
    found.truncate(cut(&found, NAME_BYTES_MAX).len());
    if is_taken(&found) {
        found.push('_');
    }
    found
}

/// The words in lower case with `_` between them.
fn words(name: &str) -> String {
    let letters: Vec<char> = letters(name).filter(|c| !matches!(c, '\'' | '\u{2019}')).collect();
    let mut found = String::with_capacity(name.len());
    for (at, &letter) in letters.iter().enumerate() {
        if !letter.is_alphanumeric() && !is_combining_mark(letter) {
            if !found.is_empty() && !found.ends_with('_') {
                found.push('_');
            }
            continue;
        }
        if begins_word(&letters, at) && !found.is_empty() && !found.ends_with('_') {
            found.push('_');
        }
        found.extend(letter.to_lowercase());
        // Enough for any cut: names come from files and may be long.
        if found.len() > 4 * NAME_BYTES_MAX {
            break;
        }
    }
    found.truncate(found.trim_end_matches('_').len());
    found
}

/// A capital behind a small letter or a digit (`userName`), or the last of several before a small letter
/// (`HTTPServer`), unless all that follows is the `s` of several (`IDs`).
fn begins_word(letters: &[char], at: usize) -> bool {
    let of = |at: Option<usize>| at.and_then(|at| letters.get(at)).copied().unwrap_or(' ');
    let (before, here, after) = (of(at.checked_sub(1)), of(Some(at)), of(at.checked_add(1)));
    let plural = after == 's' && !of(at.checked_add(2)).is_alphanumeric();
    here.is_uppercase()
        && (before.is_lowercase()
            || before.is_numeric()
            || before.is_uppercase() && after.is_lowercase() && !plural)
}

/// The characters of a name, Latin letters without their accents and in ASCII. Other scripts keep their
/// marks, which are vowels in some.
fn letters(name: &str) -> impl Iterator<Item = char> {
    let mut takes_marks = false;
    name.chars().flat_map(plain).filter(move |c| {
        let mark = is_combining_mark(*c);
        if !mark {
            takes_marks = c.is_alphanumeric() && !c.is_ascii();
        }
        takes_marks || !mark
    })
}

/// A character as ASCII where it is a letter of the Latin script or a form of an ASCII character, else as
/// it is.
fn plain(c: char) -> impl Iterator<Item = char> {
    let spelled = LETTERS.iter().find(|(letter, _)| *letter == c).map(|(_, ascii)| *ascii);
    let decomposed = std::iter::once(c).nfkd();
    let becomes_ascii = decomposed.clone().next().is_some_and(|first| first.is_ascii());
    let itself = (spelled.is_none() && !becomes_ascii).then_some(c);
    let decomposed = (spelled.is_none() && becomes_ascii).then_some(decomposed);
    spelled.unwrap_or_default().chars().chain(decomposed.into_iter().flatten()).chain(itself)
}

/// Letters of the Latin script that Unicode does not take apart.
const LETTERS: [(char, &str); 28] = [
    ('ß', "ss"),
    ('ẞ', "SS"),
    ('æ', "ae"),
    ('Æ', "AE"),
    ('œ', "oe"),
    ('Œ', "OE"),
    ('ø', "o"),
    ('Ø', "O"),
    ('ł', "l"),
    ('Ł', "L"),
    ('đ', "d"),
    ('Đ', "D"),
    ('ð', "d"),
    ('Ð', "D"),
    ('þ', "th"),
    ('Þ', "TH"),
    ('ħ', "h"),
    ('Ħ', "H"),
    ('ı', "i"),
    ('ĸ', "k"),
    ('ŋ', "n"),
    ('Ŋ', "N"),
    ('ŧ', "t"),
    ('Ŧ', "T"),
    ('ƒ', "f"),
    ('Ƒ', "F"),
    ('ə', "e"),
    ('Ə', "E"),
];

/// As many whole characters as there is room for, no `_` at the end of what was cut.
fn cut(name: &str, bytes: usize) -> &str {
    match name.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= bytes).last() {
        Some(end) if end < name.len() => name.get(..end).unwrap_or(name).trim_end_matches('_'),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Vec<String> {
        snake(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn names_become_words_that_need_no_quotes() {
        for (name, expected) in [
            ("First Name", "first_name"),
            ("firstName", "first_name"),
            ("HTTPServer2Port", "http_server2_port"),
            ("userIDs", "user_ids"),
            ("ID", "id"),
            ("Größe (cm)", "grosse_cm"),
            ("Año", "ano"),
            ("An\u{303}o", "ano"),
            ("Łódź", "lodz"),
            ("driver's licence", "drivers_licence"),
            ("  --Total-- % ", "total"),
            ("2024", "_2024"),
            ("1st", "_1st"),
            ("select", "select_"),
            ("User", "user_"),
            ("CTID", "ctid_"),
            ("название поля", "название_поля"),
            ("Йод", "йод"),
            ("名前", "名前"),
            ("ｗｉｄｅ", "wide"),
            ("a.b/c", "a_b_c"),
            ("__x__", "x"),
        ] {
            assert_eq!(of(&[name]), [expected], "{name}");
        }
        assert_eq!(of(&["", "%", "x"]), ["column_1", "column_2", "x"]);
    }

    #[test]
    fn names_are_different_and_fit() {
        assert_eq!(of(&["a", "A", "a_2", "a"]), ["a", "a_3", "a_2", "a_4"]);
        assert_eq!(of(&["select", "Select", "select_"]), ["select_", "select__2", "select__3"]);
        let long = "ы".repeat(100);
        let both = of(&[&long, &long]);
        assert_eq!((both[0].len(), both[1].len()), (62, 62));
        assert!(both[1].ends_with("ы_2"));
        let many = of(&vec!["x"; 5000]);
        assert_eq!(many.iter().collect::<HashSet<_>>().len(), 5000);
        assert_eq!(many[4999], "x_5000");
    }

    #[test]
    fn folding_forgives_case_accents_blanks_and_punctuation() {
        assert_eq!(fold("Größe (CM)"), fold("grosse_cm"));
        assert_eq!(fold("E-Mail"), fold("email"));
        assert_eq!(fold("Ünïcödé"), "unicode");
        assert_eq!(fold("\u{191}"), fold("\u{192}"));
        for letter in '\0'..=char::MAX {
            let folded = fold(&letter.to_string());
            assert_eq!(fold(&folded), folded, "{letter:?}");
        }
        assert_eq!(fold("Название"), "название");
        assert_ne!(fold("a1"), fold("a2"));
        assert_eq!(fold(" - "), "");
        assert_eq!(fold("s\u{2019}\u{301}"), "s");
    }
}
