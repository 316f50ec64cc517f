//! One partitioned table: which of its partitions takes a row.
//!
//! Source: PostgreSQL documentation, CREATE TABLE, PARTITION OF; `get_partition_for_tuple` in
//! `execPartition.c`.

use super::exact::Exact;
use super::hash::RowHash;
use super::key;
use super::rows::Values;
use howdah_model::route::{Bound, Destination, Edge, KeyKind, PartitionedTable, Strategy};
use std::cmp::Ordering;
use std::collections::HashMap;

/// Slots of a hash partitioned table; PostgreSQL's moduli are limited by nothing but the number of
/// partitions.
const MODULUS_MAX: u32 = 1 << 16;

/// A partitioned table, ready to be asked.
#[derive(Debug, Clone)]
pub(super) struct Table {
    keys: Vec<Key>,
    partitions: Partitions,
    /// Where rows of each partition go, the default one last.
    to: Vec<Target>,
    default: Option<usize>,
}

/// A column of the key.
#[derive(Debug, Clone)]
struct Key {
    /// Which of the values that are read for routing it is.
    value_no: usize,
    kind: KeyKind,
    exact: Exact,
}

impl Key {
    /// `Some(None)` is NULL; `None` is not known: what is read, or what is stored of it.
    fn value<'a>(&self, values: &'a Values) -> Option<Option<&'a [u8]>> {
        let value = values.get(self.value_no)?;
        value.is_none_or(|binary| self.exact.holds(binary)).then_some(value)
    }
}

#[derive(Debug, Clone)]
enum Target {
    Leaf(u32),
    Table(Box<Table>),
    Server,
}

#[derive(Debug, Clone)]
enum Partitions {
    /// For each remainder of the greatest modulus.
    Hash(Vec<Option<usize>>),
    List {
        values: HashMap<Vec<u8>, usize>,
        null: Option<usize>,
    },
    /// In order; they do not overlap.
    Range(Vec<Range>),
}

#[derive(Debug, Clone)]
struct Range {
    from: Vec<Place>,
    to: Vec<Place>,
    partition: usize,
}

/// Where a range begins or ends in one column, values in their ordered form. The order of these is that of
/// the places.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Min,
    Value(Vec<u8>),
    Max,
}

impl Table {
    /// `value_no` tells which value a field of the row is; `binary` how the server writes a bound. `None`
    /// where a bound cannot be read.
    pub(super) fn new(
        plan: &PartitionedTable,
        value_no: &impl Fn(u32) -> Option<usize>,
        binary: &impl Fn(usize, &str) -> Option<Vec<u8>>,
    ) -> Option<Table> {
        let key = |key: &howdah_model::route::PartitionKey| {
            Some(Key { value_no: value_no(key.field_no)?, kind: key.kind, exact: Exact::of(key) })
        };
        let keys: Vec<Key> = plan.keys.iter().map(key).collect::<Option<_>>()?;
        let ordered = |no: usize, text: &str| {
            let (key, mut out) = (keys.get(no)?, Vec::new());
            key::order(key.kind, &binary(key.value_no, text)?, &mut out)?;
            Some(out)
        };
        let partitions = match plan.strategy {
            Strategy::Hash => hash(plan)?,
            Strategy::List => list(plan, &ordered)?,
            Strategy::Range => range(plan, &ordered)?,
        };
        let target = |to: &Destination| {
            Some(match to {
                Destination::Leaf(no) => Target::Leaf(*no),
                Destination::Server => Target::Server,
                Destination::Partitioned(table) => {
                    Target::Table(Box::new(Table::new(table, value_no, binary)?))
                }
            })
        };
        let all = plan.partitions.iter().map(|partition| &partition.to).chain(&plan.default);
        let to = all.map(target).collect::<Option<_>>()?;
        Some(Table { keys, partitions, to, default: plan.default.as_ref().map(|_| plan.partitions.len()) })
    }

    /// The leaf that takes a row with these values, in binary form; `None` where the server has to tell.
    pub(super) fn leaf(&self, values: &Values, scratch: &mut Vec<u8>) -> Option<u32> {
        let found = match &self.partitions {
            Partitions::Hash(slots) => self.hashed(slots, values)?,
            Partitions::List { values: known, null } => self.listed(known, *null, values, scratch)?,
            Partitions::Range(ranges) => self.ranged(ranges, values, scratch)?,
        };
        match self.to.get(found.or(self.default)?)? {
            Target::Leaf(no) => Some(*no),
            Target::Table(table) => table.leaf(values, scratch),
            Target::Server => None,
        }
    }

    fn hashed(&self, slots: &[Option<usize>], values: &Values) -> Option<Option<usize>> {
        let mut hash = RowHash::default();
        for key in &self.keys {
            if let Some(binary) = key.value(values)? {
                hash.add(key.kind, binary)?;
            }
        }
        let slot = hash.value().checked_rem(slots.len() as u64)?;
        Some(*slots.get(usize::try_from(slot).ok()?)?)
    }

    fn listed(
        &self,
        known: &HashMap<Vec<u8>, usize>,
        null: Option<usize>,
        values: &Values,
        scratch: &mut Vec<u8>,
    ) -> Option<Option<usize>> {
        let key = self.keys.first()?;
        let Some(binary) = key.value(values)? else { return Some(null) };
        scratch.clear();
        key::order(key.kind, binary, scratch)?;
        Some(known.get(scratch.as_slice()).copied())
    }

    fn ranged(&self, ranges: &[Range], values: &Values, scratch: &mut Vec<u8>) -> Option<Option<usize>> {
        scratch.clear();
        let mut ends = [0; KEYS_MAX];
        for (key, end) in self.keys.iter().zip(&mut ends) {
            // NULL is in no range.
            let Some(binary) = key.value(values)? else { return Some(None) };
            key::order(key.kind, binary, scratch)?;
            *end = scratch.len();
        }
        let row = Row { bytes: scratch, ends: ends.get(..self.keys.len())? };
        // The last one that does not begin behind the row.
        let behind = ranges.partition_point(|range| row.compare(&range.from) != Ordering::Less);
        let range = behind.checked_sub(1).and_then(|no| ranges.get(no));
        Some(range.filter(|range| row.compare(&range.to) == Ordering::Less).map(|range| range.partition))
    }
}

/// `PARTITION_MAX_KEYS`
const KEYS_MAX: usize = 32;

/// The key of a row, in its ordered form.
struct Row<'a> {
    bytes: &'a [u8],
    /// Where each of its columns ends.
    ends: &'a [usize],
}

impl Row<'_> {
    /// On which side of these places it lies.
    fn compare(&self, places: &[Place]) -> Ordering {
        let mut start = 0;
        for (end, place) in self.ends.iter().zip(places) {
            let value = self.bytes.get(start..*end).unwrap_or_default();
            let side = match place {
                Place::Min => Ordering::Greater,
                Place::Value(of) => value.cmp(of),
                Place::Max => Ordering::Less,
            };
            if side != Ordering::Equal {
                return side;
            }
            start = *end;
        }
        Ordering::Equal
    }
}

/// Each modulus divides the next larger one, so every partition has whole slots of the greatest.
fn hash(plan: &PartitionedTable) -> Option<Partitions> {
    let bounds: Vec<(u32, u32)> = plan
        .partitions
        .iter()
        .map(|partition| match partition.bound {
            Bound::Hash { modulus, remainder } => Some((modulus, remainder)),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let greatest = bounds.iter().map(|(modulus, _)| *modulus).max().unwrap_or(1);
    let fits = |(modulus, remainder): &(u32, u32)| remainder < modulus && greatest.is_multiple_of(*modulus);
    if greatest > MODULUS_MAX || !bounds.iter().all(fits) {
        return None;
    }
    let mut slots = vec![None; greatest as usize];
    for (no, (modulus, remainder)) in bounds.into_iter().enumerate() {
        for slot in slots.iter_mut().skip(remainder as usize).step_by(modulus as usize) {
            *slot = Some(no);
        }
    }
    Some(Partitions::Hash(slots))
}

fn list(plan: &PartitionedTable, ordered: &impl Fn(usize, &str) -> Option<Vec<u8>>) -> Option<Partitions> {
    let (mut values, mut null) = (HashMap::new(), None);
    for (no, partition) in plan.partitions.iter().enumerate() {
        let Bound::List(listed) = &partition.bound else { return None };
        for value in listed {
            match value {
                Some(text) => drop(values.insert(ordered(0, text)?, no)),
                None => null = Some(no),
            }
        }
    }
    Some(Partitions::List { values, null })
}

fn range(plan: &PartitionedTable, ordered: &impl Fn(usize, &str) -> Option<Vec<u8>>) -> Option<Partitions> {
    let places = |edges: &[Edge]| {
        let place = |(no, edge): (usize, &Edge)| {
            Some(match edge {
                Edge::Min => Place::Min,
                Edge::Value(text) => Place::Value(ordered(no, text)?),
                Edge::Max => Place::Max,
            })
        };
        edges.iter().enumerate().map(place).collect::<Option<Vec<_>>>()
    };
    let mut ranges = Vec::new();
    for (partition, of) in plan.partitions.iter().enumerate() {
        let Bound::Range { from, to } = &of.bound else { return None };
        ranges.push(Range { from: places(from)?, to: places(to)?, partition });
    }
    ranges.sort_by(|one, other| one.from.cmp(&other.from));
    (plan.keys.len() <= KEYS_MAX).then_some(Partitions::Range(ranges))
}
