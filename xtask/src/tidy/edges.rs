//! Which of our crates may depend on which: the one list, checked against all manifests.
//!
//! Siblings never import one another, and only the engine sees source, transcode and target. Tests may
//! reach further: dev-dependencies have a list of their own.

use super::Source;
use toml::{Table, Value};

/// Package, what it may depend on, what its tests may use besides.
type Edges = (&'static str, &'static [&'static str], &'static [&'static str]);

const ALLOWED: &[Edges] = &[
    ("howdah-model", &[], &[]),
    ("howdah-source", &["howdah-model"], &["howdah-testkit"]),
    ("howdah-transcode", &["howdah-model"], &["howdah-testkit"]),
    ("howdah-target", &["howdah-model"], &["howdah-testkit"]),
    (
        "howdah-engine",
        &["howdah-model", "howdah-source", "howdah-transcode", "howdah-target"],
        &["howdah-testkit"],
    ),
    ("howdah-cli", &["howdah-engine"], &["howdah-testkit"]),
    ("howdah-testkit", &["howdah-model", "howdah-target"], &[]),
    ("howdah-python", &["howdah-engine", "howdah-cli"], &["howdah-testkit"]),
    ("howdah-datasets", &[], &[]),
    (
        "howdah-fuzz",
        &["howdah-model", "howdah-source", "howdah-transcode", "howdah-target", "howdah-cli"],
        &[],
    ),
    ("xtask", &["howdah-model", "howdah-cli"], &[]),
];

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let manifests = sources.iter().filter(|source| {
        source.path.ends_with("/Cargo.toml")
            && source.text.as_deref().is_some_and(|text| text.contains("[package]"))
    });
    manifests.flat_map(|source| offences(&source.path, source.text.as_deref().unwrap_or_default())).collect()
}

fn offences(path: &str, text: &str) -> Vec<String> {
    let manifest: Table = match text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![format!("{path}: {error}")],
    };
    let name = manifest.get("package").and_then(|package| package.get("name")).and_then(Value::as_str);
    let Some((name, normal, dev)) = ALLOWED.iter().find(|(known, _, _)| Some(*known) == name) else {
        return vec![format!("{path}: package is not in the list of xtask/src/tidy/edges.rs")];
    };
    let mut found = Vec::new();
    for (table, tests) in [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)]
    {
        for other in ours(&manifest, table) {
            let allowed = normal.contains(&other.as_str()) || tests && dev.contains(&other.as_str());
            if !allowed {
                found.push(format!("{path}: {name} must not have {other} in its {table}"));
            }
        }
    }
    found
}

/// Our packages in a table of dependencies, also in those of a target platform.
fn ours(manifest: &Table, table: &str) -> Vec<String> {
    let platforms = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let tables = platforms.filter_map(Value::as_table).chain([manifest]);
    let entries = tables.filter_map(|owner| owner.get(table)?.as_table()).flatten();
    let names =
        entries.map(|(key, value)| value.get("package").and_then(Value::as_str).unwrap_or(key).to_owned());
    names.filter(|name| name.starts_with("howdah") || name == "xtask").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sibling_is_named_wherever_it_hides() {
        let text = "[package]\nname = \"howdah-source\"\n[dependencies]\nhowdah-model = {}\n\
                    [target.'cfg(unix)'.dependencies]\nother = { package = \"howdah-target\" }\n\
                    [dev-dependencies]\nhowdah-testkit = {}\n";
        let found = offences("crates/source/Cargo.toml", text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("howdah-target"));
    }
}
