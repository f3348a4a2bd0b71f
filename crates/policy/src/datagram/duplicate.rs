//! A copy on each path: the first that arrives counts, and the receiver removes the others.
//!
//! The idea is that of frame replication and elimination (IEEE 802.1CB). Each path carries the full rate, so that the
//! slowest path limits the rate without queues.

use super::{DatagramPolicy, Decision, Outgoing, PathSet, PathView};
use crate::table::{Member, Reader, SettingError};
use crate::time::{Duration, Instant};

/// The entry in [`super::TABLE`].
pub const MEMBER: Member<dyn DatagramPolicy> = Member {
    name: "duplicate",
    summary: "A copy on each usable path; the receiver passes on the first that arrives.",
    source: "IEEE 802.1CB, without its sequence recovery across hops",
    build,
};

fn build(_reader: &mut Reader<'_>) -> Result<Box<dyn DatagramPolicy>, SettingError> {
    Ok(Box::new(Duplicate))
}

/// Sends every datagram on every path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Duplicate;

impl DatagramPolicy for Duplicate {
    fn choose(&mut self, _now: Instant, _datagram: &Outgoing, paths: &[PathView]) -> Decision {
        let usable = paths.iter().filter(|path| path.usable);
        Decision { paths: usable.fold(PathSet::NONE, |set, path| set.with(path.path)), hold: Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at, build, path};
    use super::*;

    #[test]
    fn all_usable_paths_have_a_copy() {
        let paths = [path(0, 0), PathView { usable: false, ..path(1, 0) }, path(5, 90)];
        let decision = build("duplicate").choose(at(0), &Outgoing { length: 100, flow: 1 }, &paths);
        assert_eq!(decision, Decision { paths: PathSet::of(0).with(5), hold: Duration::ZERO });
    }
}
