//! Comments are as narrow as rustfmt keeps the code, which leaves them as they are.

use super::Source;

/// Characters of a line, as `max_width` in rustfmt.toml has it.
const WIDTH_MAX: usize = 110;

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    sources.iter().filter(|source| source.is_rust()).flat_map(too_wide).collect()
}

fn too_wide(source: &Source) -> impl Iterator<Item = String> {
    let lines = (1..).zip(source.text.as_deref().unwrap_or_default().lines());
    lines.filter(|(_, line)| is_too_wide(line)).map(|(number, line)| {
        let width = line.chars().count();
        format!("{}:{number}: a comment of {width} characters, at most {WIDTH_MAX}", source.path)
    })
}

/// Rows of a table and addresses cannot be broken.
fn is_too_wide(line: &str) -> bool {
    let Some(comment) = line.trim_start().strip_prefix("//") else { return false };
    let text = comment.trim_start_matches(['/', '!']).trim_start();
    line.chars().count() > WIDTH_MAX && !text.starts_with('|') && !text.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_comments_are_found_and_wide_code_is_left_to_rustfmt() {
        let words = "word ".repeat(30);
        assert!(is_too_wide(&format!("    /// {words}")));
        assert!(is_too_wide(&format!("//! {words}")));
        assert!(!is_too_wide(&format!("let text = \"{words}\"; // short")));
        assert!(!is_too_wide(&format!("/// | {words} |")));
        assert!(!is_too_wide("/// ünd so ẅeiter"));
    }
}
