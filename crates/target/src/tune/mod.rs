//! Settings changed for a load and put back as they were: storage parameters of tables ([`table`]), settings
//! of the whole server ([`server`]). Which jobs hold a change stands in the ledger (`ledger/tuned.rs`),
//! committed before the change or together with it.
//!
//! Put back is only what has the value that was given to it: what somebody has set meanwhile is his.

pub mod server;
pub mod table;
pub mod tuners;

/// What came of giving up a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GivenUp {
    /// It is as it was.
    PutBack,
    /// Another load holds it too, and will put it back.
    HeldByAnother,
    /// It was as it was: the change was never made, or somebody has put it back by hand.
    WasThere,
    /// Somebody has set it to something else meanwhile.
    SetByAnother,
    /// The table is gone.
    TableGone,
    /// The same; another one of its name has that value, be it from the old one or of its own.
    TableNew,
    /// It was noted on another server, from which the ledger has come: what is set here is none of its
    /// business.
    OfAnotherServer,
    /// Another process has done it meanwhile.
    ByAnother,
}

/// What is to be done about something that has this value now.
fn verdict(now: Option<&str>, before: Option<&str>, during: &str) -> Option<GivenUp> {
    match now {
        now if now == before => Some(GivenUp::WasThere),
        Some(now) if now == during => None,
        _ => Some(GivenUp::SetByAnother),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_has_set_meanwhile_is_left_alone() {
        assert_eq!(verdict(Some("false"), None, "false"), None);
        assert_eq!(verdict(None, None, "false"), Some(GivenUp::WasThere));
        assert_eq!(verdict(Some("true"), Some("true"), "false"), Some(GivenUp::WasThere));
        assert_eq!(verdict(Some("true"), None, "false"), Some(GivenUp::SetByAnother));
        assert_eq!(verdict(None, Some("true"), "false"), Some(GivenUp::SetByAnother));
    }
}
