//! What a file alone does not show, and those beside it do: a header, in a part without a row or where names
//! are numbers as the values are; that backslashes escape, in a part that has none or few; and which words
//! are no values.

use super::finding::{self, Found, look_at};
use super::head::{HEADS_AT_ONCE, Head, HeadReader, Heads};
use crate::feed::Opened;
use crate::retry::patiently;
use futures_util::{StreamExt, TryStreamExt, stream};
use howdah_model::{Error, Escape, Result, Told};
use howdah_transcode::dialect::{Given, NULL_OPTION, Spellings};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A table as written, and the names in a header of its files.
pub(super) type Names = (String, Vec<String>);

/// A table as written, the delimiter and the width of its files.
type Shape = (String, String, usize);

impl Heads<'_> {
    /// Looks again at files that others of their table tell more about.
    pub(super) async fn settle_siblings(&self, heads: &mut [Head]) -> Result<()> {
        if let Some(told) = self.told {
            self.settle_escapes(heads, told).await?;
            self.settle_headers(heads, told).await?;
            self.settle_null_words(heads, told).await?;
        }
        for head in heads {
            head.forget_sample(0);
            // They have told what they had to tell, and there may be tens of thousands of files.
            if let Some(found) = &mut head.found {
                found.finding.spellings = Spellings::default();
            }
        }
        Ok(())
    }

    /// Where backslashes escape in a file of a table, they do in all that are cut alike, unless one speaks
    /// against it.
    async fn settle_escapes(&self, heads: &mut [Head], told: &Told) -> Result<()> {
        let mut known: BTreeMap<Shape, BTreeSet<Option<u8>>> = BTreeMap::new();
        for head in heads.iter() {
            if let Some((shape, quote)) = shape(head).zip(escaping_quote(head)) {
                known.entry(shape).or_default().insert(quote);
            }
        }
        for no in 0..heads.len() {
            let quotes =
                shape(&heads[no]).filter(|_| is_first(heads, no)).and_then(|shape| known.get(&shape));
            let Some(quote) = quotes.filter(|quotes| quotes.len() == 1).and_then(BTreeSet::first) else {
                continue;
            };
            let head = &mut heads[no];
            let finding = head.found.as_ref().map(|found| &found.finding);
            if let Some(finding) = finding.filter(|finding| finding.may_escape_with.contains(quote)) {
                let told = Told {
                    delimiter: Some(finding.dialect.delimiter.clone()),
                    quote: Some(*quote),
                    escape: Some(b'\\'),
                    ..told.clone()
                };
                self.look_again(head, finding::given(&told, self.columns), |_, _| true).await?;
            }
        }
        Ok(())
    }

    /// A file whose first record holds the very names that another file of the table has for a header has
    /// them for one, too.
    async fn settle_headers(&self, heads: &mut [Head], told: &Told) -> Result<()> {
        if told.header.is_some() {
            return Ok(());
        }
        let known: BTreeSet<Names> = heads.iter().filter_map(header).collect();
        for no in 0..heads.len() {
            let is_first = is_first(heads, no);
            let head = &mut heads[no];
            if is_first && first_record(head).is_some_and(|first| known.contains(&first)) {
                let mut told = Told { header: Some(true), ..told.clone() };
                // Others may have told of them.
                if let Some((quote, found)) = escaping_quote(head).zip(head.found.as_ref()) {
                    let delimiter = Some(found.finding.dialect.delimiter.clone());
                    told = Told { delimiter, quote: Some(quote), escape: Some(b'\\'), ..told };
                }
                let is_header =
                    |head: &Head, found: &Found| header_of(&head.table, found) == first_record(head);
                self.look_again(head, finding::given(&told, self.columns), is_header).await?;
            }
        }
        Ok(())
    }

    /// A word that is NULL in one file of a table is NULL in each: files that are cut alike are judged
    /// together.
    async fn settle_null_words(&self, heads: &mut [Head], told: &Told) -> Result<()> {
        let mut alike: BTreeMap<(Shape, &[String]), Vec<usize>> = BTreeMap::new();
        for (no, head) in heads.iter().enumerate() {
            if let Some((shape, found)) = shape(head).zip(head.found.as_ref()) {
                alike.entry((shape, &found.finding.names)).or_default().push(no);
            }
        }
        let spellings = |no: &usize| heads[*no].found.as_ref().map(|found| &found.finding.spellings);
        let mut otherwise: BTreeMap<usize, Arc<Spellings>> = BTreeMap::new();
        for files in alike.values().filter(|files| files.len() > 1) {
            let all: Vec<&Spellings> = files.iter().filter_map(spellings).collect();
            let all = Arc::new(Spellings::of_all(&all));
            let is_other = |no: &&usize| {
                is_first(heads, **no) && spellings(no).is_some_and(|own| own.are_otherwise_in(&all))
            };
            otherwise.extend(files.iter().filter(is_other).map(|no| (*no, Arc::clone(&all))));
        }
        let others = heads.iter_mut().enumerate();
        let others = others.filter_map(|(no, head)| Some((head, otherwise.remove(&no)?)));
        // Of a store far away each takes a round trip or two.
        stream::iter(others)
            .map(Ok)
            .try_for_each_concurrent(HEADS_AT_ONCE, |(head, all)| self.look_at_words_again(head, all, told))
            .await
    }

    async fn look_at_words_again(&self, head: &mut Head, all: Arc<Spellings>, told: &Told) -> Result<()> {
        let Some(found) = &head.found else { return Ok(()) };
        let finding = &found.finding;
        // Others may have told of them, and of its header.
        let dialect = finding.dialect.clone();
        let given = Given {
            delimiter: Some(dialect.delimiter),
            quote: Some(dialect.quote),
            escape: Some(dialect.escape),
            header: Some(finding.header_rows > 0),
            spellings: Some(all),
            ..finding::given(told, self.columns)
        };
        let begins = |found: &Found| {
            let finding = &found.finding;
            (finding.header_rows, finding.width, finding.plain.start_byte)
        };
        let as_before = begins(found);
        // What is told now was unsure before.
        let mut unsure = finding.unsure.clone();
        unsure.retain(|unsure| unsure.option != NULL_OPTION);
        let is_cut_as_before = |_: &Head, found: &Found| begins(found) == as_before;
        if self.look_again(head, given, is_cut_as_before).await?
            && let Some(found) = &mut head.found
        {
            let now = &mut found.finding.unsure;
            unsure.retain(|before| !now.contains(before));
            now.append(&mut unsure);
        }
        Ok(())
    }

    /// Looks at the file again, as at one of which more is told, and takes what is found if it is as it
    /// should be. False if it is not.
    async fn look_again(
        &self,
        head: &mut Head,
        given: Given,
        is_right: impl Fn(&Head, &Found) -> bool,
    ) -> Result<bool> {
        let object = head.object().clone();
        let opened = std::mem::replace(&mut head.opened, Opened::new(object.clone()));
        // What was read of a pipe is there, and does not come again.
        let patience = if object.rereadable() { self.patience } else { Duration::ZERO };
        let mut opened = Some(opened);
        let look = || {
            let opened = opened.take().unwrap_or_else(|| Opened::new(object.clone()));
            look_at(HeadReader::behind_head(opened), &given)
        };
        let in_file = |error: Error| error.in_file(object.location());
        let looked = patiently(self.context, patience, look).await.map_err(in_file)?;
        let is_right = is_right(head, &looked.found);
        let again =
            self.head_of(looked.reader.into_opened(), head.table.clone(), looked.codec, looked.found).await;
        let mut again = again.map_err(in_file)?;
        again.keeps_sample = head.keeps_sample;
        self.let_go(&mut again);
        if is_right {
            again.forget_sample(usize::from(again.names.is_none()));
            *head = again;
        } else {
            head.opened = again.opened;
        }
        Ok(is_right)
    }
}

/// Of several tables in a file the first alone is looked at from the beginning.
fn is_first(heads: &[Head], no: usize) -> bool {
    no == 0 || heads[no - 1].object().real_location() != heads[no].object().real_location()
}

/// How the files are cut that are parts of one export.
fn shape(head: &Head) -> Option<Shape> {
    let finding = &head.found.as_ref()?.finding;
    Some((head.table.clone(), finding.dialect.delimiter.clone(), finding.width))
}

/// The quote with which backslashes escape in the file, which COPY's text format has not.
fn escaping_quote(head: &Head) -> Option<Option<u8>> {
    let dialect = &head.found.as_ref()?.finding.dialect;
    (dialect.escape == Escape::Backslash).then_some(dialect.quote)
}

/// The names in the file's header of one record.
fn header(head: &Head) -> Option<Names> {
    header_of(&head.table, head.found.as_ref()?)
}

fn header_of(table: &str, found: &Found) -> Option<Names> {
    let finding = &found.finding;
    (finding.header_rows == 1).then(|| (table.to_owned(), finding.names.clone()))
}

/// The first record of a file without a header, where it was kept.
pub(super) fn first_record(head: &Head) -> Option<Names> {
    let found = head.found.as_ref().filter(|found| found.finding.header_rows == 0)?;
    let fields = found.columns.preview.first()?.iter();
    let fields = fields.map(|field| field.as_deref().unwrap_or_default().trim().to_owned());
    Some((head.table.clone(), fields.collect()))
}
