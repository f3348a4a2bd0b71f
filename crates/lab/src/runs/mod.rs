//! Runs as data: a row per run, with all that it was a function of and all that was measured.
//!
//! A run is a pure function of the scenario's text, the options that change it, the contender with its settings, the paths,
//! and the seed. [`Row::key`] is a hash of these. Rows are appended to `runs.jsonl` as runs end ([`Store`]), so that what
//! was killed goes on where it was; `runs.parquet` is made from that file.

mod grid;
mod keep;
mod merge;
mod origin;
mod row;
mod shard;
mod store;
mod table;

pub use grid::Grid;
pub use keep::{Keep, Memory};
pub use merge::{Merged, merge};
pub use origin::Origin;
pub use row::{Line, Row};
pub use shard::Shard;
pub use store::Store;
pub use table::{columns, is_column, write};
