//! Sends a line to a server over two paths and prints the answer: `ask ADDRESS:PORT`, as root.
#![allow(clippy::print_stdout)]

use anabranch_attach::{Attachment, HostOptions, Local, attach};
use anabranch_mptcp::{ConnectionConfig, Policies};
use anabranch_policy::combination::Combination;
use anabranch_stack::{PathChange, StackConfig};
use std::{error::Error, net::SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::main(flavor = "current_thread")]
pub async fn main() -> Result<(), Box<dyn Error>> {
    let remote = std::env::args().nth(1).ok_or("which ADDRESS:PORT?")?.parse()?;
    let paths = Attachment::Local(Local { paths: 2, options: HostOptions::default() });
    println!("{}", ask(&paths, remote).await?);
    Ok(())
}

/// Sends a line to `remote`, and returns the answer.
pub async fn ask(attachment: &Attachment, remote: SocketAddr) -> Result<String, Box<dyn Error>> {
    let policies: Combination = "scheduler=redundant,congestion=olia".parse()?;
    let attached = attach(attachment, StackConfig::new(policies.build_path_manager()?)).await?;
    let config = ConnectionConfig { priority: 2, ..ConnectionConfig::new(Policies::of(&policies)?) };
    let mut stream = attached.stack().connect(None, remote, config).await?;
    if let Some(PathChange::Established(subflow)) = stream.path_change().await {
        println!("{subflow:?} on {}", stream.paths().first().map_or("?", |path| &path.name));
    }
    stream.write_all(b"What is an anabranch?\n").await?;
    stream.shutdown().await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    attached.detach().await?;
    Ok(answer)
}
