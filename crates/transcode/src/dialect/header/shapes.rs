//! Values that look like the others of their column, and like no name.

/// Nearly all values below have the shape of this one, as codes, addresses and paths have, and names seldom
/// do.
pub(super) fn are_alike(name: &str, body: &[String]) -> bool {
    let by = |shape: fn(&str) -> Vec<u8>| {
        let own = shape(name);
        body.iter().filter(|value| shape(value) == own).count() * 10 >= body.len() * 8
    };
    body.len() > 1 && (has_digit(name) && by(shape) || has_signs(name) && by(outline))
}

/// No name has backslashes, quotes or braces, or begins as paths and formulas do.
pub(super) fn is_no_name(text: &str) -> bool {
    text.contains(['\\', '"', '{', '}']) || text.starts_with(['=', '/', '\''])
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

/// More than what stands between the words of names.
fn has_signs(text: &str) -> bool {
    text.chars().any(|c| !c.is_alphanumeric() && !matches!(c, '_' | ' ' | '-' | '.'))
}

/// What a code is made of: `AB-12` and `XY-34` are alike.
fn shape(text: &str) -> Vec<u8> {
    text.bytes().map(class).collect()
}

/// The same without lengths, words beside each other being one: `12 Old Street, Oslo` and
/// `7 North Lane, Rome` are alike.
fn outline(text: &str) -> Vec<u8> {
    let mut outline: Vec<u8> = Vec::new();
    for class in text.bytes().map(class) {
        let last = outline.last().copied();
        if class == b'a' && outline.ends_with(b"a ") {
            outline.pop();
        } else if last != Some(class) {
            outline.push(class);
        }
    }
    outline
}

/// Letters are one kind, with those beyond ASCII, and digits another.
fn class(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => b'0',
        b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => b'a',
        other => other,
    }
}
