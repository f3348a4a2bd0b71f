//! What the clients of each key do, for servers whose clients have keys of their own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counters of the clients with one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NamedCounters {
    /// Connections now.
    pub now: usize,
    /// Connections with a request, in all.
    pub accepted: u64,
    /// Bytes from the client of connections that have ended.
    pub bytes_up: u64,
    /// Bytes to the client of connections that have ended.
    pub bytes_down: u64,
}

/// Counters by the names of keys.
#[derive(Default)]
pub(super) struct Named(Mutex<BTreeMap<Arc<str>, NamedCounters>>);

/// A connection of a client whose name is known; it counts until this is dropped.
pub(super) struct Present {
    named: Arc<Named>,
    name: Arc<str>,
}

impl Named {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, NamedCounters>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection of this client begins.
    pub(super) fn begin(self: &Arc<Self>, name: &Arc<str>) -> Present {
        let mut all = self.lock();
        let counters = all.entry(Arc::clone(name)).or_default();
        counters.now += 1;
        counters.accepted += 1;
        Present { named: Arc::clone(self), name: Arc::clone(name) }
    }

    /// Forgets clients that have no connection and are not `known` any more.
    pub(super) fn keep(&self, known: impl Fn(&str) -> bool) {
        self.lock().retain(|name, counters| counters.now > 0 || known(name));
    }

    pub(super) fn all(&self) -> BTreeMap<Arc<str>, NamedCounters> {
        self.lock().clone()
    }
}

impl Present {
    /// So many bytes went from the client and to it.
    pub(super) fn count(&self, up: u64, down: u64) {
        if let Some(counters) = self.named.lock().get_mut(&self.name) {
            counters.bytes_up += up;
            counters.bytes_down += down;
        }
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        if let Some(counters) = self.named.lock().get_mut(&self.name) {
            counters.now = counters.now.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_count_for_their_key_while_they_last_and_what_is_gone_is_forgotten_with_its_key() {
        let (named, ann, bob) = (Arc::new(Named::default()), Arc::from("ann"), Arc::from("bob"));
        let (first, second, other) = (named.begin(&ann), named.begin(&ann), named.begin(&bob));
        first.count(10, 20);
        drop(first);
        second.count(1, 2);
        let of = |name: &str| named.all().get(name).copied();
        assert_eq!(of("ann"), Some(NamedCounters { now: 1, accepted: 2, bytes_up: 11, bytes_down: 22 }));
        assert_eq!(of("bob"), Some(NamedCounters { now: 1, accepted: 1, ..NamedCounters::default() }));
        drop(other);
        named.keep(|_| false);
        assert!(of("ann").is_some_and(|ann| ann.now == 1) && of("bob").is_none());
    }
}
