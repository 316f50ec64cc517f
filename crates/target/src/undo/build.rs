//! How much memory and how many workers the building of indexes gets, from what the server has.

use super::put_back::BuildSettings;
use crate::error::session_error;
use crate::session::Session;
use howdah_model::Result;

/// In the units of `pg_settings`: kB, blocks, a count.
const SETTINGS_SQL: &str = "\
    SELECT pg_catalog.max(setting::pg_catalog.int8) FILTER (WHERE name = 'maintenance_work_mem'), \
           pg_catalog.max(setting::pg_catalog.int8) FILTER (WHERE name = 'shared_buffers') \
             * (pg_catalog.current_setting('block_size')::pg_catalog.int8 / 1024), \
           pg_catalog.max(setting::pg_catalog.int8) FILTER (WHERE name = 'max_parallel_maintenance_workers') \
    FROM pg_catalog.pg_settings \
    WHERE name IN ('maintenance_work_mem', 'shared_buffers', 'max_parallel_maintenance_workers')";

/// All builders together get half of `shared_buffers`, which is an eighth of the machine's memory where the server is
/// set up as is usual. A server that is not has little, and then its own setting is kept.
const SHARED_BUFFERS_SHARE: u64 = 2;
/// More sorts no faster: a run of this size is merged in one pass.
const MEMORY_KB_MAX: u64 = 1 << 20;

/// For so many builds side by side. `server_cpus` is known of servers on this machine.
///
/// # Errors
/// Those of the session.
pub async fn settings(session: &Session, builders: u32, server_cpus: Option<u32>) -> Result<BuildSettings> {
    let rows = session.client().query_typed(SETTINGS_SQL, &[]).await;
    let rows = rows.map_err(|error| session_error(&error, "reading settings"))?;
    let value = |at: usize| -> u64 {
        let value = rows.first().and_then(|row| row.get::<_, Option<i64>>(at));
        value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0)
    };
    Ok(share(value(0), value(1), value(2), builders, server_cpus))
}

fn share(
    own_kb: u64,
    shared_kb: u64,
    workers: u64,
    builders: u32,
    server_cpus: Option<u32>,
) -> BuildSettings {
    let builders = builders.max(1);
    let kb = (shared_kb / SHARED_BUFFERS_SHARE / u64::from(builders)).min(MEMORY_KB_MAX);
    // A worker more than there are CPUs only adds to the merging.
    let spare = server_cpus.map(|cpus| (cpus / builders).saturating_sub(1));
    let fewer = spare.filter(|spare| u64::from(*spare) < workers);
    BuildSettings { memory_kb: (kb > own_kb).then_some(kb), workers: fewer }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_with_shared_buffers_and_never_shrinks() {
        assert_eq!(share(65_536, 131_072, 2, 2, None), BuildSettings { memory_kb: None, workers: None });
        assert_eq!(share(65_536, 4 << 20, 2, 2, None).memory_kb, Some(1 << 20));
        assert_eq!(share(65_536, 1 << 20, 2, 2, None).memory_kb, Some(1 << 18));
        assert_eq!(share(2 << 20, 1 << 20, 2, 1, None).memory_kb, None);
    }

    #[test]
    fn builds_side_by_side_leave_no_cpus_for_workers() {
        assert_eq!(share(1, 1, 2, 2, Some(2)).workers, Some(0));
        assert_eq!(share(1, 1, 2, 1, Some(2)).workers, Some(1));
        assert_eq!(share(1, 1, 2, 2, Some(16)).workers, None);
    }
}
