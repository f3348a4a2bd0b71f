//! Executes runs on several threads, the most expensive first.

use crate::progress::Progress;
use anabranch_settings::diagnostic::Diagnostic;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// A run: a pure function of what it holds.
pub trait Task: Sync {
    /// What it results in.
    type Done: Send;

    /// Cost, in units of progress.
    fn cost(&self) -> u64;

    /// Name in messages.
    fn name(&self) -> String;

    /// Executes it.
    ///
    /// # Errors
    /// It cannot be run as described; all other runs end too.
    fn run(&self) -> Result<Self::Done, Diagnostic>;
}

/// How runs are executed.
#[derive(Clone, Copy)]
pub struct Runner<'a> {
    /// Threads; more than there are tasks do not start.
    pub jobs: usize,
    /// When it is set, the runner ends after the present runs.
    pub stop: &'a AtomicBool,
    pub progress: &'a dyn Progress,
}

/// The number of processors that this process may use.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Is handed each result, with the index of its task.
pub type OnDone<'a, D> = dyn Fn(usize, &D) -> Result<(), Diagnostic> + Sync + 'a;

impl Runner<'_> {
    /// Executes `tasks` and hands each result, with its index, to `keep` on the thread that it was computed on. Gives
    /// the results in the order of the tasks, and none for those that were not executed because of `stop`.
    ///
    /// # Errors
    /// The first error of a task or of `keep`, after the present runs have ended. A task that panics is an error too.
    pub fn all<T: Task>(&self, tasks: &[T], keep: &OnDone<'_, T::Done>) -> Result<Vec<Option<T::Done>>, Diagnostic> {
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        // A stable sort keeps neighbours together.
        order.sort_by_key(|place| std::cmp::Reverse(tasks[*place].cost()));
        let (next, failed, done) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(Vec::new()));
        let ends = || self.stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
        let work = || {
            while let Some(place) = order.get(next.fetch_add(1, Ordering::Relaxed)).copied().filter(|_| !ends()) {
                let task = &tasks[place];
                let result = execute(task).and_then(|result| keep(place, &result).map(|()| result));
                self.progress.done(task.cost());
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
                done.lock().unwrap_or_else(PoisonError::into_inner).push((place, result));
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.jobs.min(tasks.len()) {
                scope.spawn(work);
            }
            work();
        });
        let mut results: Vec<Option<T::Done>> = tasks.iter().map(|_| None).collect();
        for (place, result) in done.into_inner().unwrap_or_else(PoisonError::into_inner) {
            results[place] = Some(result?);
        }
        Ok(results)
    }
}

fn execute<T: Task>(task: &T) -> Result<T::Done, Diagnostic> {
    catch_unwind(AssertUnwindSafe(|| task.run()))
        .unwrap_or_else(|_| Err(Diagnostic::plain(format!("{}: the program has a fault, see above", task.name()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Unseen;

    struct Square(u64);

    impl Task for Square {
        type Done = u64;

        fn cost(&self) -> u64 {
            self.0
        }

        fn name(&self) -> String {
            format!("number {}", self.0)
        }

        fn run(&self) -> Result<u64, Diagnostic> {
            match self.0 {
                13 => Err(Diagnostic::plain("no luck")),
                14 => panic!("a test's own"),
                number => Ok(number * number),
            }
        }
    }

    fn all(numbers: &[u64], stop: &AtomicBool) -> (Result<Vec<Option<u64>>, Diagnostic>, Vec<u64>) {
        let tasks: Vec<Square> = numbers.iter().copied().map(Square).collect();
        let kept = Mutex::new(Vec::new());
        let keep = |place: usize, result: &u64| {
            assert_eq!(*result, numbers[place] * numbers[place]);
            kept.lock().unwrap().push(*result);
            Ok(())
        };
        let results = Runner { jobs: 3, stop, progress: &Unseen }.all(&tasks, &keep);
        let mut kept = kept.into_inner().unwrap();
        kept.sort_unstable();
        (results, kept)
    }

    #[test]
    fn results_come_in_the_order_of_the_tasks_and_each_is_kept_once() {
        let (results, kept) = all(&[3, 1, 2, 5, 4], &AtomicBool::new(false));
        assert_eq!(results.ok(), Some(vec![Some(9), Some(1), Some(4), Some(25), Some(16)]));
        assert_eq!(kept, [1, 4, 9, 16, 25]);
    }

    #[test]
    fn nothing_begins_after_stop() {
        let (results, kept) = all(&[1, 2], &AtomicBool::new(true));
        assert_eq!((results.ok(), kept), (Some(vec![None, None]), vec![]));
    }

    #[test]
    fn an_error_and_a_panic_end_all_and_what_was_done_is_kept() {
        let (results, kept) = all(&[20, 13, 1], &AtomicBool::new(false));
        assert!(results.is_err_and(|error| error.message() == "no luck"));
        assert!(kept.contains(&400));
        let (results, _) = all(&[14], &AtomicBool::new(false));
        assert!(results.is_err_and(|error| error.message() == "number 14: the program has a fault, see above"));
    }
}
