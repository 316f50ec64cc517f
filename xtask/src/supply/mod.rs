//! `cargo xtask supply`: what other people's packages may be, as `deny.toml` says, and the list of them.
//!
//! Enters: `cargo metadata` of the workspace and of the fuzz targets, as the lock files have them. Leaves:
//! one line per offence, and the page of third-party licences. Of `cargo deny` this is what needs no
//! database; whoever has that program gets advisories from `make check`, too.

mod expression;
mod packages;
mod page;

pub(crate) use page::page;

use crate::Result;
use packages::{Package, packages};
use std::fs;
use std::path::Path;
use toml::{Table, Value};

/// What `deny.toml` says.
struct Rules {
    licences: Vec<String>,
    banned: Vec<String>,
    registries: Vec<String>,
}

/// Holds every dependency to the rules.
pub(crate) fn run(workspace: &Path) -> Result<()> {
    let rules = Rules::read(workspace)?;
    let mut found = Vec::new();
    let mut count = 0;
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let all = packages(&workspace.join(manifest))?;
        count += all.len();
        let offences = all.iter().flat_map(|package| rules.offences(package));
        found.extend(offences.map(|offence| format!("{manifest}: {offence}")));
    }
    if found.is_empty() {
        println!("supply: {count} packages");
        return Ok(());
    }
    found.dedup();
    Err(found.join("\n"))
}

impl Rules {
    fn read(workspace: &Path) -> Result<Rules> {
        let text =
            fs::read_to_string(workspace.join("deny.toml")).map_err(|error| format!("deny.toml: {error}"))?;
        Rules::parse(&text)
    }

    fn parse(text: &str) -> Result<Rules> {
        let table: Table = text.parse().map_err(|error| format!("deny.toml: {error}"))?;
        let list = |section: &str, key: &str| -> Result<Vec<Value>> {
            let value = table.get(section).and_then(|section| section.get(key)).and_then(Value::as_array);
            value.cloned().ok_or_else(|| format!("deny.toml: [{section}] has no list {key}"))
        };
        let words = |values: Vec<Value>| values.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let names = |values: Vec<Value>| {
            let name = |value: &Value| Some(value.get("crate")?.as_str()?.to_owned());
            values.iter().filter_map(name).collect()
        };
        Ok(Rules {
            licences: words(list("licenses", "allow")?),
            banned: names(list("bans", "deny")?),
            registries: words(list("sources", "allow-registry")?),
        })
    }

    fn offences(&self, package: &Package) -> Vec<String> {
        let name = package.full_name();
        let mut found = Vec::new();
        if self.banned.contains(&package.name) {
            found.push(format!("{name} is banned"));
        }
        match package.source.as_deref() {
            None => {}
            Some(source) if self.registries.iter().any(|known| source == format!("registry+{known}")) => {}
            Some(source) => found.push(format!("{name} comes from {source}")),
        }
        match package.licence.as_deref().map(|licence| expression::holds(licence, &self.licences)) {
            Some(Ok(true)) => {}
            Some(Ok(false)) => {
                found.push(format!(
                    "{name} has the licence {}",
                    package.licence.as_deref().unwrap_or_default()
                ));
            }
            Some(Err(error)) => found.push(format!("{name}: {error}")),
            None => found.push(format!("{name} names no licence")),
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_banned_copyleft_or_from_elsewhere_is_found() {
        let rules = Rules::parse(
            "[licenses]\nallow = [\"MIT\"]\n[bans]\ndeny = [{ crate = \"openssl\" }]\n\
             [sources]\nallow-registry = [\"https://index\"]",
        )
        .unwrap();
        let package = |name: &str, source: Option<&str>, licence: Option<&str>| Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: licence.map(str::to_owned),
            source: source.map(str::to_owned),
            repository: None,
            is_shipped: true,
        };
        let index = Some("registry+https://index");
        assert!(rules.offences(&package("a", index, Some("MIT OR GPL-3.0"))).is_empty());
        assert!(rules.offences(&package("ours", None, Some("MIT"))).is_empty());
        assert_eq!(rules.offences(&package("openssl", index, Some("MIT"))), ["openssl 1.0.0 is banned"]);
        assert_eq!(
            rules.offences(&package("a", index, Some("GPL-3.0"))),
            ["a 1.0.0 has the licence GPL-3.0"]
        );
        assert_eq!(rules.offences(&package("a", index, None)), ["a 1.0.0 names no licence"]);
        assert_eq!(
            rules.offences(&package("a", Some("git+https://x"), Some("MIT"))),
            ["a 1.0.0 comes from git+https://x"]
        );
    }
}
