//! The receiver abandons data: the rules that protect a sender without partial reliability, one test each.

#[path = "../pair/mod.rs"]
mod pair;

mod bench;
mod data_level;
mod duplicates;
mod guards;
mod hostile;
mod messages;
mod queued;
mod reported_losses;
mod subflow_level;
mod withdrawing;
