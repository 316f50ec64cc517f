//! Replicas that are further behind than they may be: each is a reason to pause, and for a while also one
//! that has gone meanwhile. It is most often one that restarts, and would be hit by all that the load writes
//! when it is needed least.

use howdah_model::ReplicaLag;
use howdah_target::guards::Replica;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A standby that restarts replays what it has before it connects again.
const WAITED_FOR_MAX: Duration = Duration::from_secs(300);

/// Those that were too far behind when they were seen last, by their names: the process that sends to one is
/// another when it comes back.
#[derive(Default)]
pub(super) struct Lagging(BTreeMap<String, Seen>);

struct Seen {
    /// So many of this name were connected: many have none of their own.
    connected: usize,
    /// One of them is not.
    gone_since: Option<Instant>,
}

/// What people are to know.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News {
    /// It is waited for while it is not connected.
    Gone(String),
    /// It is not waited for any more.
    StaysAway(String),
}

impl Lagging {
    /// One that has gone is waited for so long. A pause that is about to end says so of those that are there.
    pub(super) fn waited_for(pause_for: Duration) -> Duration {
        WAITED_FOR_MAX.min(pause_for / 2)
    }

    /// Notes who is connected now.
    pub(super) fn look(
        &mut self,
        replicas: &[Replica],
        most: ReplicaLag,
        waited_for: Duration,
        now: Instant,
    ) -> Vec<News> {
        let connected = |name: &str| replicas.iter().filter(|replica| replica.name == name).count();
        let any_too_far =
            |name: &str| replicas.iter().any(|replica| replica.name == name && is_too_far(replica, most));
        let comes_back = |replica: &&Replica| !ends_by_itself(&replica.name);
        for replica in replicas.iter().filter(|replica| is_too_far(replica, most)).filter(comes_back) {
            let seen = self.0.entry(replica.name.clone()).or_insert(Seen { connected: 0, gone_since: None });
            seen.connected = seen.connected.max(connected(&replica.name));
        }
        let mut news = Vec::new();
        self.0.retain(|name, seen| {
            if connected(name) >= seen.connected {
                seen.gone_since = None;
                return any_too_far(name);
            }
            if seen.gone_since.is_none() {
                news.push(News::Gone(name.clone()));
            }
            let stays_away = now.duration_since(*seen.gone_since.get_or_insert(now)) >= waited_for;
            if stays_away {
                news.push(News::StaysAway(name.clone()));
            }
            !stays_away
        });
        news
    }

    /// Why the load waits for one that has gone.
    pub(super) fn reason(&self) -> Option<String> {
        let (name, _) = self.0.iter().find(|(_, seen)| seen.gone_since.is_some())?;
        Some(format!(
            "the replica {name} was too far behind and is not connected any more (--max-replica-lag)"
        ))
    }
}

/// A subscriber copies a table by a worker of its own, which ends when the table is there:
/// `pg_16394_sync_16389_7398347`.
fn ends_by_itself(name: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = name.split('_').collect();
    matches!(parts[..], ["pg", subscription, "sync", table, system]
        if is_number(subscription) && is_number(table) && is_number(system))
}

fn is_too_far(replica: &Replica, most: ReplicaLag) -> bool {
    match most {
        ReplicaLag::Bytes(most) => replica.behind_bytes > most,
        ReplicaLag::Ms(most) => replica.behind_ms > most,
    }
}

/// The first that is further behind than it may be.
pub(super) fn too_far(replicas: &[Replica], most: ReplicaLag) -> Option<String> {
    let Replica { name, behind_bytes, behind_ms, .. } =
        replicas.iter().find(|replica| is_too_far(replica, most))?;
    Some(match most {
        ReplicaLag::Bytes(most) => format!(
            "the replica {name} is {} MB behind, more than {} MB (--max-replica-lag)",
            behind_bytes >> 20,
            most >> 20
        ),
        ReplicaLag::Ms(most) => format!(
            "the replica {name} is {:.1} s behind, more than {:.1} s (--max-replica-lag)",
            *behind_ms as f64 / 1000.0,
            most as f64 / 1000.0
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replica(name: &str, behind_bytes: u64, behind_ms: u64) -> Replica {
        Replica { name: name.to_owned(), sender: 7, behind_bytes, behind_ms, replied_at_us: 0 }
    }

    #[test]
    fn the_replica_that_is_too_far_behind_is_named() {
        let seen = [replica("far", 3 << 20, 900)];
        assert!(
            too_far(&seen, ReplicaLag::Bytes(2 << 20)).unwrap().starts_with("the replica far is 3 MB behind")
        );
        assert!(too_far(&seen, ReplicaLag::Ms(500)).unwrap().contains("0.9 s behind, more than 0.5 s"));
        assert!(too_far(&seen, ReplicaLag::Ms(900)).is_none());
    }

    #[test]
    fn one_that_goes_while_it_is_behind_is_waited_for_until_it_is_near_again_or_stays_away() {
        let (mut lagging, begun) = (Lagging::default(), Instant::now());
        let mut look = |seen: &[(&str, u64)], after_s| {
            let seen: Vec<Replica> = seen.iter().map(|(name, bytes)| replica(name, *bytes, 0)).collect();
            let now = begun + Duration::from_secs(after_s);
            let news = lagging.look(&seen, ReplicaLag::Bytes(10), Duration::from_secs(60), now);
            (news, lagging.reason().is_some())
        };
        let gone = |name: &str| (vec![News::Gone(name.to_owned())], true);
        let nothing = (Vec::new(), false);
        assert_eq!(look(&[("near", 9)], 0), nothing);
        assert_eq!(look(&[], 1), nothing, "it was not waited for");
        assert_eq!(look(&[("far", 11)], 2), nothing, "that is another reason");
        assert_eq!(look(&[("far", 11), ("pg_16394_sync_16389_7398347", 11)], 2), nothing);
        assert_eq!(look(&[("far", 11)], 2), nothing, "it has ended as it should");
        assert_eq!(look(&[], 3), gone("far"));
        assert_eq!(look(&[], 62), (Vec::new(), true));
        assert_eq!(look(&[("far", 500)], 62), nothing);
        assert_eq!(look(&[("far", 0)], 63), nothing);
        assert_eq!(look(&[], 64), nothing);
        assert_eq!(look(&[("pg_sync_16389", 11)], 65), nothing);
        assert_eq!(look(&[], 66), gone("pg_sync_16389"), "a name that somebody has given");
        assert_eq!(look(&[("pg_sync_16389", 0)], 67), nothing);
        // Two that have no names of their own.
        assert_eq!(look(&[("walreceiver", 0), ("walreceiver", 11)], 70), nothing);
        assert_eq!(look(&[("walreceiver", 0)], 71), gone("walreceiver"));
        let stays_away = (vec![News::StaysAway("walreceiver".to_owned())], false);
        assert_eq!(look(&[("walreceiver", 0)], 131), stays_away);
        assert_eq!(look(&[("walreceiver", 0)], 132), nothing);
    }
}
