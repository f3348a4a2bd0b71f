//! Meshes in the lab: what nodes forward, and transport over several hops.

mod forwarding;
mod scene;
mod tables;
