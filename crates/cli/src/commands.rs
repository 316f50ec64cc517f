//! The verbs, one file each.

pub mod bench;
pub mod check;
pub mod generate;
pub mod load;
pub mod pg;
pub mod plan;
pub mod restore;
pub mod resume;
pub mod status;
mod tuning;

use crate::access::Access;
use crate::printer::Printer;
use crate::{prompt, settings};
use howdah_engine::Connection;
use howdah_engine::model::Result;
use std::path::PathBuf;

/// The server, after saying what the user should know about it, and asking for a password where one is wanted.
async fn connect(access: Access, printer: &Printer, site_packages: &[PathBuf]) -> Result<Connection> {
    access.warning().iter().for_each(|warning| printer.warn(warning));
    let connection = settings::connection(access.to.clone(), site_packages).await?;
    connection.warnings().iter().for_each(|warning| printer.warn(warning));
    let asks = access.asks || (access.may_ask && prompt::is_possible() && connection.wants_password().await);
    if !asks {
        return Ok(connection);
    }
    let password = prompt::password(&format!("Password for {}: ", connection.display())).await?;
    Ok(connection.with_password(&password))
}
