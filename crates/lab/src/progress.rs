//! Who is told how far the runs of a command are.

/// Is told of progress, from any thread.
pub trait Progress: Sync {
    /// A batch of runs with this name begins, of so many units of work.
    fn begin(&self, name: &str, units: u64);

    /// So many units of the batch are done.
    fn done(&self, units: u64);

    /// Something that a user should know at once.
    fn remark(&self, text: &str);
}

/// Nobody is told.
#[derive(Clone, Copy, Debug)]
pub struct Unseen;

impl Progress for Unseen {
    fn begin(&self, _: &str, _: u64) {}

    fn done(&self, _: u64) {}

    fn remark(&self, _: &str) {}
}
