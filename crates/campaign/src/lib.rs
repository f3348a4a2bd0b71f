//! Random histories between the engine and a peer, and what must come of them: the engine meets itself, or a second machine
//! that was written from the RFCs' texts alone and takes the paths they allow and the engine does not take.

pub mod campaign;
pub mod history;
pub mod literal;
pub mod luck;
pub mod settings;
pub mod shrink;
