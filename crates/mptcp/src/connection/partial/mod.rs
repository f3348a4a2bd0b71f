//! Messages and abandoned data: the optional state of a connection with either, and its records.

mod ahead;
mod assembler;
mod elsewhere;
mod exchange;
mod messages;
mod missing;
mod notices;
mod ranges;
mod recent;
mod records;
mod side;
mod skip;
mod state;
mod tell;
#[cfg(test)]
mod tests;

mod withdraw;
mod withdrawn;
mod written;

pub use state::MessageError;
pub(super) use state::Partial;
