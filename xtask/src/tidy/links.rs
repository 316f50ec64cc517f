//! Links between the pages of the project lead somewhere: to a file that is there, and in a page to a heading
//! of it.

use super::Source;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let pages: BTreeMap<&str, BTreeSet<String>> = sources
        .iter()
        .filter(|source| is_page(source))
        .map(|page| (page.path.as_str(), anchors(page)))
        .collect();
    let files: BTreeSet<&str> = sources.iter().map(|source| source.path.as_str()).collect();
    let mut offences = Vec::new();
    for page in sources.iter().filter(|source| is_page(source)) {
        for (number, link) in links(page) {
            if !leads_somewhere(&page.path, link, &files, &pages) {
                offences.push(format!("{}:{number}: `{link}` leads nowhere", page.path));
            }
        }
    }
    offences
}

fn is_page(source: &Source) -> bool {
    source.path.ends_with(".md")
}

/// The lines outside of code, numbered from 1.
fn prose(page: &Source) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    (1..).zip(page.text.as_deref().unwrap_or_default().lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence && !line.starts_with("    ")
    })
}

/// Where links to other places of the project lead.
fn links(page: &Source) -> impl Iterator<Item = (usize, &str)> {
    prose(page).flat_map(|(number, line)| {
        let ends = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let ours = ends.filter(|link| !link.contains(':') && !link.is_empty());
        ours.map(move |link| (number, link))
    })
}

/// As web pages of Git servers name headings: in lower case, without punctuation, with a hyphen for each
/// blank; a second one of the same name has a number.
fn anchors(page: &Source) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(page).filter(|(_, line)| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let again = (1..).map(|no| format!("{name}-{no}"));
        let free = std::iter::once(name.clone()).chain(again).find(|name| !anchors.contains(name));
        anchors.extend(free);
    }
    anchors
}

fn leads_somewhere(
    from: &str,
    link: &str,
    files: &BTreeSet<&str>,
    pages: &BTreeMap<&str, BTreeSet<String>>,
) -> bool {
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let path = if path.is_empty() { from.to_owned() } else { joined(from, path) };
    match anchor {
        Some(anchor) => pages.get(path.as_str()).is_some_and(|anchors| anchors.contains(anchor)),
        None => {
            let folder = format!("{}/", path.trim_end_matches('/'));
            files.contains(path.as_str()) || files.iter().any(|file| file.starts_with(&folder))
        }
    }
}

/// The path from the root.
fn joined(from: &str, path: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), bytes: text.len() as u64, text: Some(text.to_owned()) }
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let sources = [
            page(
                "docs/guides/a.md",
                "# A\n\n[b](../b.md#what-is-left), [c](#a), [d](../../crates/), [e](https://x.y/#z)\n",
            ),
            page(
                "docs/b.md",
                "## What is `left`?\n\n```sh\n# no heading\n```\n[x](guides/a.md#b) [y](no.md) [z](#no-heading)\n",
            ),
            page("crates/x.rs", ""),
        ];
        assert_eq!(
            check(&sources),
            [
                "docs/b.md:6: `guides/a.md#b` leads nowhere",
                "docs/b.md:6: `no.md` leads nowhere",
                "docs/b.md:6: `#no-heading` leads nowhere"
            ]
        );
    }
}
