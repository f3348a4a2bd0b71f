//! Uplinks that are not to be used for now although they could be.

use tokio::sync::watch;

/// Their names; whoever follows the uplinks hears of a change.
#[derive(Clone)]
pub(crate) struct Barred(watch::Sender<Vec<String>>);

impl Default for Barred {
    fn default() -> Self {
        Self(watch::channel(Vec::new()).0)
    }
}

impl Barred {
    /// These, and no others.
    pub(crate) fn set(&self, names: &[String]) {
        self.0.send_if_modified(|known| {
            let differs = known != names;
            if differs {
                *known = names.to_vec();
            }
            differs
        });
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.borrow().iter().any(|barred| barred == name)
    }

    pub(crate) fn listen(&self) -> watch::Receiver<Vec<String>> {
        self.0.subscribe()
    }
}
