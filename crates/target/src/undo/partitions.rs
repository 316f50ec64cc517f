//! Indexes of partitions that are parts of a partitioned table's index: these are dropped and put back
//! together, or not at all.

use super::capture::Index;
use super::entries::{FoundIndex, Place};
use std::collections::BTreeMap;

/// One index as it stands in the catalog.
pub(super) struct Member {
    pub(super) oid: u32,
    /// The index of the partitioned table that it is a part of.
    pub(super) parent: Option<u32>,
    pub(super) method: String,
    pub(super) refuses: bool,
    pub(super) long_keys: bool,
    pub(super) computed: bool,
    pub(super) of_types: bool,
    pub(super) row_bytes: Option<u64>,
    pub(super) keep: Option<String>,
    pub(super) place: Place,
    pub(super) found: FoundIndex,
}

/// Each index that is not a part of another, with its parts. The order stays, so that the largest index comes
/// first, and of one index the largest part.
pub(super) fn together(members: &[Member], captured_oid: u32) -> Vec<Index> {
    let by_oid: BTreeMap<u32, &Member> = members.iter().map(|member| (member.oid, member)).collect();
    let parent = |member: &Member| member.parent.and_then(|oid| by_oid.get(&oid).copied());
    let mut roots: Vec<u32> = Vec::new();
    let mut parts: BTreeMap<u32, Vec<&Member>> = BTreeMap::new();
    for member in members {
        let mut root = member;
        while let Some(above) = parent(root) {
            root = above;
        }
        let of_root = parts.entry(root.oid).or_default();
        if of_root.is_empty() {
            roots.push(root.oid);
        }
        of_root.push(member);
    }
    let one = |root: &u32| Some(index(by_oid.get(root)?, parts.get(root)?, &parent, captured_oid));
    roots.iter().filter_map(one).collect()
}

fn index<'a>(
    root: &Member,
    parts: &[&'a Member],
    parent: &impl Fn(&'a Member) -> Option<&'a Member>,
    captured_oid: u32,
) -> Index {
    let mut entries = Vec::new();
    for part in parts {
        entries.extend(part.found.entries(&part.place));
        if let Some(above) = parent(part) {
            entries.push(part.found.attach(&part.place, &above.place.sibling(&above.found.name)));
        }
    }
    let keep = |part: &&Member| {
        let reason = part.keep.as_deref()?;
        let of = if part.oid == root.oid {
            String::new()
        } else {
            format!("its part {} of {}: ", part.found.name, part.place.relation)
        };
        Some(format!("{of}{reason}"))
    };
    Index {
        oids: parts.iter().map(|part| part.oid).collect(),
        name: root.found.name.clone(),
        relation: root.place.relation.clone(),
        of_partition: root.place.table_oid != captured_oid,
        what: root.found.what,
        method: root.method.clone(),
        refuses: root.refuses,
        long_keys: root.long_keys,
        compared_by_libc: root.found.compared_by_libc,
        computed: root.computed,
        of_types: root.of_types,
        row_bytes: root.row_bytes,
        keep: root.keep.clone().or_else(|| parts.iter().find_map(keep)),
        drop_sql: root.found.drop_sql(&root.place),
        entries,
    }
}
