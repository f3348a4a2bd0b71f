//! A running proxy or server: its state, and a quicker end.

use super::counters::ProxyCounters;
use super::named::NamedCounters;
use super::service::Service;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A handle to query or hurry a running proxy or server. Clones refer to the same one.
#[derive(Clone)]
pub struct Control {
    service: Arc<Service>,
}

impl Control {
    pub(super) fn new(service: &Arc<Service>) -> Self {
        Self { service: Arc::clone(service) }
    }

    /// The totals so far.
    pub fn counters(&self) -> ProxyCounters {
        self.service.with_counters(|counters| *counters)
    }

    /// How long connections may go on after the end was asked for.
    pub fn drain(&self) -> Duration {
        self.service.limits().drain
    }

    /// Ends at once the clients that are let finish since the end was asked for, or will be.
    pub fn hurry(&self) {
        self.service.hurry();
    }

    /// Counters of the clients of a server that have keys of their own, by their names.
    pub fn named(&self) -> BTreeMap<Arc<str>, NamedCounters> {
        self.service.named.all()
    }

    /// Number of clients being served.
    pub fn clients(&self) -> usize {
        self.service.clients()
    }
}
