//! The packages that `cargo metadata` tells of, and which of them are part of what users get.

use crate::{Result, process};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

/// What users get is made from these.
const SHIPPED: [&str; 2] = ["howdah-cli", "howdah-python"];

/// One package of a dependency graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    /// An SPDX expression.
    pub(super) licence: Option<String>,
    /// `None` for our own.
    pub(super) source: Option<String>,
    pub(super) repository: Option<String>,
    /// In the binary or the wheel, on some platform.
    pub(super) is_shipped: bool,
}

impl Package {
    pub(super) fn full_name(&self) -> String {
        format!("{} {}", self.name, self.version)
    }
}

/// All packages of the lock file beside this manifest, by name and version.
pub(super) fn packages(manifest: &Path) -> Result<Vec<Package>> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--locked", "--format-version", "1", "--manifest-path"]).arg(manifest);
    let failed = || format!("cargo metadata of {} fails; is its Cargo.lock up to date?", manifest.display());
    let printed = process::printed(&mut cargo).ok_or_else(failed)?;
    let metadata: Value = serde_json::from_str(&printed).map_err(|error| error.to_string())?;
    let shipped = shipped(&metadata);
    let list = metadata["packages"].as_array().ok_or_else(failed)?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut packages: Vec<Package> = list
        .iter()
        .map(|package| Package {
            name: text(&package["name"]).unwrap_or_default(),
            version: text(&package["version"]).unwrap_or_default(),
            licence: text(&package["license"]),
            source: text(&package["source"]),
            repository: text(&package["repository"]),
            is_shipped: package["id"].as_str().is_some_and(|id| shipped.contains(id)),
        })
        .collect();
    packages.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
    Ok(packages)
}

/// The ids of packages that are reached without dependencies of tests and of building.
fn shipped(metadata: &Value) -> BTreeSet<&str> {
    let nodes: HashMap<&str, &Value> = metadata["resolve"]["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let is_root = |package: &&Value| package["name"].as_str().is_some_and(|name| SHIPPED.contains(&name));
    let roots = metadata["packages"].as_array().into_iter().flatten().filter(is_root);
    let mut open: Vec<&str> = roots.filter_map(|package| package["id"].as_str()).collect();
    let mut found = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !found.insert(id) {
            continue;
        }
        let Some(node) = nodes.get(id) else { continue };
        for dependency in node["deps"].as_array().into_iter().flatten() {
            let mut kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            if kinds.any(|kind| kind["kind"].is_null()) {
                open.extend(dependency["pkg"].as_str());
            }
        }
    }
    found
}
