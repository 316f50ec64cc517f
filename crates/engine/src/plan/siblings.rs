//! Headers that a file alone cannot tell from its records, and those beside it can: a part without a row, or one whose names are
//! numbers as its values are.

use super::finding::{self, Found, look_at};
use super::head::{Head, HeadReader, Heads};
use crate::feed::Opened;
use crate::retry::patiently;
use howdah_model::{Result, Told};
use std::collections::BTreeSet;
use std::time::Duration;

/// A table as written, and the names in a header of its files.
type Names = (String, Vec<String>);

impl Heads<'_> {
    /// A file whose first record holds the very names that another file of the table has for a header has them for one, too.
    pub(super) async fn settle_headers(&self, heads: &mut [Head]) -> Result<()> {
        if let Some(told) = self.told.filter(|told| told.header.is_none()) {
            let known: BTreeSet<Names> = heads.iter().filter_map(header).collect();
            for no in 0..heads.len() {
                // Of several tables in a file the first alone is looked at from the beginning.
                let is_first =
                    no == 0 || heads[no - 1].object().real_location() != heads[no].object().real_location();
                let head = &mut heads[no];
                if is_first && first_record(head).is_some_and(|first| known.contains(&first)) {
                    let location = head.object().location().to_owned();
                    self.take_header(head, told).await.map_err(|error| error.in_file(location))?;
                }
            }
        }
        heads.iter_mut().for_each(|head| head.forget_sample(0));
        Ok(())
    }

    /// Looks at the file again, as at one that has a header.
    async fn take_header(&self, head: &mut Head, told: &Told) -> Result<()> {
        let given = finding::given(&Told { header: Some(true), ..told.clone() }, self.columns);
        let object = head.object().clone();
        let opened = std::mem::replace(&mut head.opened, Opened::new(object.clone()));
        // What was read of a pipe is there, and does not come again.
        let patience = if object.rereadable() { self.patience } else { Duration::ZERO };
        let mut opened = Some(opened);
        let look = || {
            let opened = opened.take().unwrap_or_else(|| Opened::new(object.clone()));
            look_at(HeadReader::behind_head(opened), &given)
        };
        let looked = patiently(self.context, patience, look).await?;
        let is_header = header_of(&head.table, &looked.found) == first_record(head);
        let mut again =
            self.head_of(looked.reader.into_opened(), head.table.clone(), looked.codec, looked.found).await?;
        again.keeps_sample = head.keeps_sample;
        self.let_go(&mut again);
        if is_header {
            *head = again;
        } else {
            head.opened = again.opened;
        }
        Ok(())
    }
}

/// The names in the file's header of one record.
fn header(head: &Head) -> Option<Names> {
    header_of(&head.table, head.found.as_ref()?)
}

fn header_of(table: &str, found: &Found) -> Option<Names> {
    let finding = &found.finding;
    (finding.header_rows == 1).then(|| (table.to_owned(), finding.names.clone()))
}

/// The first record of a file without a header.
fn first_record(head: &Head) -> Option<Names> {
    let found = head.found.as_ref().filter(|found| found.finding.header_rows == 0)?;
    let fields = found.columns.preview.first()?.iter();
    let fields = fields.map(|field| field.as_deref().unwrap_or_default().trim().to_owned());
    Some((head.table.clone(), fields.collect()))
}
