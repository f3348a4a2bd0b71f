//! The machine: [`Steering`].

mod actions;
mod events;
mod life;
mod outcomes;
mod reserve;
mod samples;
mod state;
#[cfg(test)]
mod tests;

pub use state::Steering;
