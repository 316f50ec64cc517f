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
use crate::options::LoadOptions;
use crate::printer::Printer;
use crate::settings::Settings;
use crate::{prompt, settings};
use howdah_engine::model::Result;
use howdah_engine::{Absent, Connection};
use std::path::PathBuf;

/// The options resolved, after saying what the user should know about them.
fn resolve(options: LoadOptions, printer: &Printer) -> Result<Settings> {
    let settings = Settings::resolve(options)?;
    settings.notice.iter().for_each(|notice| printer.say(&format!("notice: {notice}")));
    Ok(settings)
}

/// The server, after saying what the user should know about it, and asking for a password where one is wanted.
async fn connect(access: Access, printer: &Printer, site_packages: &[PathBuf]) -> Result<Connection> {
    connect_for(access, printer, site_packages, Absent::Made).await
}

/// The same, for what only looks, or mends what loads have left: no server is made for that.
async fn connect_again(access: Access, printer: &Printer, site_packages: &[PathBuf]) -> Result<Connection> {
    connect_for(access, printer, site_packages, Absent::Refused).await
}

async fn connect_for(
    access: Access,
    printer: &Printer,
    site_packages: &[PathBuf],
    absent: Absent,
) -> Result<Connection> {
    access.warning().iter().for_each(|warning| printer.warn(warning));
    let connection = access.complete(settings::connection(access.to.clone(), site_packages, absent).await?);
    connection.notice().iter().for_each(|notice| printer.say(&format!("notice: {notice}")));
    connection.warnings().iter().for_each(|warning| printer.warn(warning));
    let asks = access.asks || (access.may_ask && prompt::is_possible() && connection.wants_password().await);
    if !asks {
        return Ok(connection);
    }
    let password = prompt::password(&format!("Password for {}: ", connection.display())).await?;
    Ok(connection.with_password(&password))
}
