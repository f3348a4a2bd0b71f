//! Answers each line of one client after another, without an async runtime: `answer PORT`, as root.
#![allow(clippy::print_stdout)]

use anabranch_attach::blocking::Stack;
use anabranch_attach::{Attachment, HostOptions, Local};
use anabranch_mptcp::{ConnectionConfig, Policies};
use anabranch_policy::combination::Combination;
use anabranch_stack::StackConfig;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};

/// Answers for ever.
pub fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args().nth(1).ok_or("which PORT?")?.parse()?;
    answer(&Attachment::Local(Local { paths: 2, options: HostOptions::default() }), port, usize::MAX)
}

/// Serves `clients` clients.
pub fn answer(attachment: &Attachment, port: u16, clients: usize) -> Result<(), Box<dyn Error>> {
    let policies = Combination::default();
    let stack = Stack::attach(attachment, StackConfig::new(policies.build_path_manager()?))?;
    let listener = stack.listen(port, ConnectionConfig::new(Policies::of(&policies)?))?;
    for _ in 0..clients {
        let stream = listener.accept(None)?;
        println!("{} over {:?}", stream.peer_address(), stream.stream().protocol());
        for line in BufReader::new(&stream).lines() {
            writeln!(&stream, "{}? An arm of a river that comes back to it.", line?.trim_end_matches('?'))?;
        }
        stream.finish(None);
    }
    Ok(())
}
