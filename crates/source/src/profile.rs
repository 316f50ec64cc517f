//! The profile files of AWS (`~/.aws/config`, `~/.aws/credentials`). Their text enters; the settings of one
//! profile leave. Only the format is known here: `[section]`, `key = value`, one level of indented keys.

use std::collections::HashMap;

/// Settings of one section; an indented `key` under `s3 =` is `s3.key`.
pub(crate) type Section = HashMap<String, String>;

/// The section of this name, its parts merged if it comes more than once.
pub(crate) fn section(text: &str, wanted: &str) -> Option<Section> {
    let mut found: Option<Section> = None;
    let mut is_inside = false;
    let mut parent = String::new();
    for line in text.lines() {
        let content = line.split_once(" #").map_or(line, |(content, _)| content).trim_end();
        if content.trim_start().is_empty() || content.trim_start().starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = content.strip_prefix('[') {
            let name: Vec<&str> = header.split(']').next().unwrap_or_default().split_whitespace().collect();
            is_inside = name.join(" ") == wanted;
            parent.clear();
            if is_inside {
                found.get_or_insert_default();
            }
            continue;
        }
        let Some((key, value)) = content.split_once('=').filter(|_| is_inside) else { continue };
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
        let is_nested = content.starts_with([' ', '\t']);
        if !is_nested {
            parent = if value.is_empty() { key.clone() } else { String::new() };
        }
        if !value.is_empty() {
            let key = if is_nested && !parent.is_empty() { format!("{parent}.{key}") } else { key };
            found.get_or_insert_default().insert(key, value.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "# mine\n[default]\nregion = eu-west-1\n\n[profile  work]\nregion=eu-central-1 # home\n\
                          s3 =\n  endpoint_url = http://127.0.0.1:7070\n  addressing_style=path\n\
                          aws_secret_access_key = a=b#c\n[services x]\ns3 =\n  endpoint_url = http://s\n";

    #[test]
    fn a_profile_has_its_own_settings_and_no_other() {
        let work = section(CONFIG, "profile work").unwrap();
        assert_eq!(work["region"], "eu-central-1");
        assert_eq!(work["s3.endpoint_url"], "http://127.0.0.1:7070");
        assert_eq!(work["aws_secret_access_key"], "a=b#c");
        assert_eq!(section(CONFIG, "default").unwrap().len(), 1);
        assert_eq!(section(CONFIG, "services x").unwrap()["s3.endpoint_url"], "http://s");
        assert!(section(CONFIG, "work").is_none());
    }
}
