//! Random histories between the engine and a peer, and checks of their outcomes: the engine is paired with itself, or
//! with an independent implementation that was written only from the RFCs and uses the options that they allow and the
//! engine does not use.

pub mod campaign;
pub mod history;
pub mod literal;
pub mod luck;
pub mod settings;
pub mod shrink;
