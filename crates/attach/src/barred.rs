//! Uplinks that are excluded for now.

use tokio::sync::watch;

/// Their names; tasks that follow the uplinks are notified of changes.
#[derive(Clone)]
pub(crate) struct Barred(watch::Sender<Vec<String>>);

impl Default for Barred {
    fn default() -> Self {
        Self(watch::channel(Vec::new()).0)
    }
}

impl Barred {
    /// Replaces the names.
    pub(crate) fn set(&self, names: &[String]) {
        self.0.send_if_modified(|known| {
            let differs = known != names;
            if differs {
                *known = names.to_vec();
            }
            differs
        });
    }

    /// Notifies those tasks of another change.
    pub(crate) fn wake(&self) {
        self.0.send_modify(|_| ());
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.borrow().iter().any(|barred| barred == name)
    }

    pub(crate) fn listen(&self) -> watch::Receiver<Vec<String>> {
        self.0.subscribe()
    }
}
