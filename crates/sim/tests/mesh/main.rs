//! Meshes in the lab: forwarding by nodes, and transport over several hops.

mod crowded;
mod forwarding;
mod moving;
mod paper;
mod routers;
mod scene;
mod tables;
