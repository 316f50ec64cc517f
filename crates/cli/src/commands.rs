//! The verbs, one file each.

pub mod bench;
pub mod generate;
pub mod load;
pub mod pg;
pub mod plan;
pub mod restore;
pub mod resume;
pub mod status;
mod tuning;

use crate::printer::Printer;
use crate::settings;
use howdah_engine::Connection;
use howdah_engine::model::Result;
use std::path::PathBuf;

/// The server, after saying what the user should know about it.
async fn connect(to: Option<String>, printer: &Printer, site_packages: &[PathBuf]) -> Result<Connection> {
    let connection = settings::connection(to, site_packages).await?;
    connection.warnings().iter().for_each(|warning| printer.warn(warning));
    Ok(connection)
}
