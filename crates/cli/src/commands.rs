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
use howdah_engine::model::{Listener, Result};
use howdah_engine::{Absent, Connection, Context, Sources, Stop};
use std::path::PathBuf;
use std::sync::Arc;

/// What a command is given besides its options.
pub struct Process<'a> {
    /// Where it writes.
    pub printer: &'a Printer,
    /// Ends it early.
    pub stop: &'a Stop,
    /// Folders in which Python packages with server programs may be.
    pub site_packages: &'a [PathBuf],
}

impl Process<'_> {
    /// The options resolved, after saying what the user should know about them.
    fn resolve(&self, options: LoadOptions) -> Result<Settings> {
        let settings = Settings::resolve(options)?;
        settings.notice.iter().for_each(|notice| self.printer.say(&format!("notice: {notice}")));
        Ok(settings)
    }

    /// The server, after saying what the user should know about it, and asking for a password where one is
    /// wanted.
    async fn connect(&self, access: Access) -> Result<Connection> {
        self.stop.guard(connect_for(access, self.printer, self.site_packages, Absent::Made)).await
    }

    /// The same, for what only looks, or mends what loads have left: no server is made for that.
    async fn connect_again(&self, access: Access) -> Result<Connection> {
        self.stop.guard(connect_for(access, self.printer, self.site_packages, Absent::Refused)).await
    }

    /// For the engine.
    fn context(&self, connection: Connection, listener: Arc<dyn Listener>) -> Context {
        Context { sources: Sources::of_process(), connection, listener, stop: self.stop.clone() }
    }
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
