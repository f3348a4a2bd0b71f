//! The experiments of Zhang, Zhao, Cheng, "Multipath Routing and MPTCP-Based Data Delivery Over MANETs", IEEE Access 8, 2020,
//! section V: one host downloads from another over three hops of an ad-hoc network with four interfaces per node.
//!
//! [`combination`] has the paper's combinations of protocols, [`network`] builds the mesh for one of them,
//! [`run`](run()) runs it, and [`measure`] holds the results. What the paper leaves open, or contradicts, is a field of
//! [`Case`] or of [`combination::Combination`].

mod case;
pub mod combination;
pub mod measure;
pub mod network;
mod run;

pub use case::{Case, Rates, Transfer};
pub use run::{FLOW, MOMENTS, Moments, PATIENCE, Whole, run, run_whole};
