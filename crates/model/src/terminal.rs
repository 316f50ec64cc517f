//! What a terminal and its shell make of text: which characters are not to be written as they are, and how a
//! word is written that is to be typed.

/// Controls; what changes the direction of the text around it; what takes no room.
#[must_use]
pub fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The same word for a shell, in quotes where it needs them.
#[must_use]
pub fn in_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if word.contains(is_obeyed) {
        return in_dollar_quotes(word);
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// By octal digits, which all shells that know such quotes read alike (POSIX.1-2024, 2.2.4).
fn in_dollar_quotes(word: &str) -> String {
    let mut quoted = "$'".to_owned();
    for c in word.chars() {
        match c {
            '\n' => quoted += "\\n",
            '\t' => quoted += "\\t",
            '\'' | '\\' => quoted.extend(['\\', c]),
            c if is_obeyed(c) => {
                let bytes = c.to_string().into_bytes();
                quoted.extend(bytes.iter().map(|byte| format!("\\{byte:03o}")));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_word_is_quoted_where_it_needs_it() {
        assert_eq!(in_shell("a-1"), "a-1");
        assert_eq!(in_shell("it's $x"), "'it'\\''s $x'");
        assert_eq!(in_shell("a\nb'\\\u{1b}1"), "$'a\\nb\\'\\\\\\0331'");
    }

    #[test]
    fn a_shell_reads_the_word_that_was_meant() {
        for word in ["", "night load", "it's", "$x `y` \\", "a\nb\t'\\n", "a\u{202e}9\u{1b}1é\u{7f}"] {
            let typed = in_shell(word);
            assert!(!typed.contains(is_obeyed), "{typed}");
            let shell = Command::new("bash").args(["-c", &format!("printf %s {typed}")]).output().unwrap();
            assert_eq!(String::from_utf8(shell.stdout).unwrap(), word, "{typed}");
        }
    }
}
