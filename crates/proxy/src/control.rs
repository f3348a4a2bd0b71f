//! What can be seen of a proxy or server while it runs.

use super::counters::ProxyCounters;
use super::service::Service;
use std::sync::Arc;

/// A handle to a proxy or server that runs, for others than who runs it. Clones are of the same.
#[derive(Clone)]
pub struct Control {
    service: Arc<Service>,
}

impl Control {
    pub(super) fn new(service: &Arc<Service>) -> Self {
        Self { service: Arc::clone(service) }
    }

    /// The totals until now.
    pub fn counters(&self) -> ProxyCounters {
        self.service.with_counters(|counters| *counters)
    }

    /// Clients that are served now.
    pub fn clients(&self) -> usize {
        self.service.clients()
    }
}
