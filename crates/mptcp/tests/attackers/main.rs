//! Attackers who do not see the packets, who see and change them, and peers that mean no good: what they can do, and that it
//! is no more.
//!
//! The tests of the RFCs' tables have attacks of their own, each beside the sentence that it breaks; these are those that belong
//! to no sentence, or to many.

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
