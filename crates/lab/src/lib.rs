//! The lab: scenarios as data, their runs in the simulator, metrics, and verdicts.
//!
//! A [`scenario::Document`] is a TOML text with options applied; an [`experiment`] runs every contender of it with every
//! seed on all cores, each run being a pure function of scenario, contender and seed ([`simulation::run`]).

#[cfg(test)]
mod baselines;
pub mod build;
pub mod columns;
pub mod derived;
pub mod environment;
pub mod experiment;
pub mod files;
pub mod journal;
pub mod kernel_model;
pub mod library;
pub mod means;
pub mod measured;
pub mod metric;
pub mod progress;
pub mod quality;
pub mod record;
pub mod runner;
pub mod runs;
pub mod scenario;
pub mod simulation;
pub mod spread;
pub mod statistics;
pub mod summary;
pub mod sweep;
pub mod timeseries;
pub mod verdict;
