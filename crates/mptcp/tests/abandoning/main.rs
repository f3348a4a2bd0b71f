//! The receiver gives up: the rules that keep a sender that knows nothing of it unharmed, one test each.

#[path = "../pair/mod.rs"]
mod pair;

mod bench;
mod data_level;
mod reported_losses;
mod guards;
mod hostile;
mod messages;
mod queued;
mod subflow_level;
mod duplicates;
mod withdrawing;
