//! Blind attackers, attackers on the path, and malicious peers: the limits of what they can do.
//!
//! The tests of the RFCs' tables include attacks that violate a single sentence; these violate none, or many.

mod announcing;
mod blind;
mod garbage;
mod joining;
mod mapping;
mod middleboxes;
mod optimists;
#[path = "../pair/mod.rs"]
mod pair;
mod stamps;
mod withholding;

#[allow(dead_code)]
#[path = "../multipath/orders.rs"]
mod orders;
#[allow(dead_code)]
#[path = "../multipath/peer.rs"]
mod peer;
#[allow(dead_code)]
#[path = "../tcp/transcript.rs"]
mod transcript;
