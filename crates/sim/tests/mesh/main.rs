//! Meshes in the lab: what nodes forward, and transport over several hops.

mod forwarding;
mod moving;
mod paper;
mod routers;
mod scene;
mod tables;
