//! Places for DNS queries over TCP: each needs a socket, and nobody takes them all.

use crate::share::Owner;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most queries at a time.
const MOST: usize = 256;

/// Whose a query is: of those with a key, or of a client if all have the same.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Holder {
    Key(Arc<str>),
    Client(u64),
}

/// Who asks how much.
#[derive(Clone, Default)]
pub struct Questions(Arc<Mutex<HashMap<Holder, usize>>>);

/// A place, until this is dropped.
pub struct Question {
    questions: Questions,
    holder: Holder,
}

impl Questions {
    fn lock(&self) -> MutexGuard<'_, HashMap<Holder, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a query, unless who asks has as many as are free: one gets half of them at most.
    pub fn begin(&self, client: u64, owner: &Owner) -> Option<Question> {
        let holder = owner.clone().map_or(Holder::Client(client), Holder::Key);
        let mut all = self.lock();
        let free = MOST.saturating_sub(all.values().sum());
        if all.get(&holder).copied().unwrap_or(0) >= free {
            return None;
        }
        *all.entry(holder.clone()).or_default() += 1;
        Some(Question { questions: self.clone(), holder })
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        let mut all = self.questions.lock();
        let count = all.get(&self.holder).copied().unwrap_or(0);
        if count > 1 {
            all.insert(self.holder.clone(), count - 1);
        } else {
            all.remove(&self.holder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_all_places_and_those_of_a_key_count_together() {
        let questions = Questions::default();
        let ask = |client, owner: &Owner| (0..1_000).map_while(|_| questions.begin(client, owner)).collect::<Vec<_>>();
        let ann: Owner = Some("ann".into());
        let first = ask(1, &ann);
        assert_eq!(first.len(), 128);
        assert!(questions.begin(2, &ann).is_none(), "the same key");
        let second = ask(3, &None);
        assert_eq!(second.len(), 64);
        let third = ask(4, &None);
        assert_eq!(third.len(), 32);
        drop((first, second, third));
        assert_eq!(questions.lock().len(), 0);
        assert_eq!(ask(4, &None).len(), 128);
    }
}
