//! A browser has no sessions of datagrams: their cryptography is not built for it.

use anabranch_policy::combination::Choice;
use anabranch_policy::datagram::DatagramPolicy;
use anabranch_sim::datagrams::Carrier;

/// # Errors
/// There are no sessions.
pub fn ends(_: Box<dyn DatagramPolicy>, _: Choice, _: usize) -> Result<[Box<dyn Carrier>; 2], String> {
    Err("programs that send datagrams run in the command's lab, not in a browser".to_owned())
}
