//! A program that uses only this crate.

use anabranch::{
    Attached, Attachment, Combination, ConnectionConfig, Framing, MessageOptions, Protocol, Record, StackConfig,
    Stream, Tunnels, attach,
};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PORT: u16 = 5_900;

/// An address whose port is free.
fn free_address() -> std::io::Result<SocketAddr> {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// A client and its server, over UDP on this host, which needs no privilege, with a connection between them.
struct Pair {
    near: Attached,
    far: Attached,
    stream: Stream,
    accepted: Stream,
}

impl Pair {
    async fn connect(server: SocketAddr, config: ConnectionConfig) -> Result<Self, Box<dyn Error>> {
        let far = attach(&Attachment::TunnelServer(server), StackConfig::default()).await?;
        let listener = far.stack().listen(PORT, config.clone())?;
        let tunnels = Tunnels { server: server.into(), interfaces: Vec::new() };
        let near = attach(&Attachment::Tunnels(tunnels), StackConfig::default()).await?;
        let inside = SocketAddr::new(Tunnels::SERVER, PORT);
        let (stream, accepted) = tokio::join!(near.stack().connect(None, inside, config), listener.accept());
        let accepted = accepted.ok_or("the stack has ended")?;
        Ok(Self { stream: stream?, accepted, near, far })
    }
}

async fn ask(server: SocketAddr) -> Result<(Option<Protocol>, String), Box<dyn Error>> {
    let pair = Pair::connect(server, ConnectionConfig::default()).await?;
    let Pair { near, far, mut stream, mut accepted } = pair;
    stream.write_all(b"ping").await?;
    let mut asked = [0; 4];
    accepted.read_exact(&mut asked).await?;
    accepted.write_all(&[&asked[..], b", pong"].concat()).await?;
    accepted.shutdown().await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let protocol = stream.protocol();
    near.detach().await?;
    far.detach().await?;
    Ok((protocol, answer))
}

#[tokio::test]
async fn two_stacks_with_the_defaults_talk_to_each_other_by_multipath_tcp() -> Result<(), Box<dyn Error>> {
    let asked = tokio::time::timeout(Duration::from_secs(60), ask(free_address()?)).await?;
    assert_eq!(asked?, (Some(Protocol::Multipath), "ping, pong".to_owned()));
    Ok(())
}

/// What a read into an empty buffer, and the messages of the other end, return.
async fn exchange(server: SocketAddr) -> Result<(usize, Vec<Record>), Box<dyn Error>> {
    let config = ConnectionConfig { framing: Framing::Messages, ..ConnectionConfig::default() };
    let Pair { near, far, mut stream, accepted } = Pair::connect(server, config).await?;
    let empty = stream.read(&mut []).await?;
    let options = MessageOptions { importance: 128, ..MessageOptions::default() };
    for text in ["one", "two"] {
        stream.write_message(text.into(), &options).await?;
    }
    stream.close();
    let mut records = Vec::new();
    while let Some(record) = accepted.read_record().await? {
        records.push(record);
    }
    near.detach().await?;
    far.detach().await?;
    Ok((empty, records))
}

#[tokio::test]
async fn messages_come_whole_and_a_read_into_an_empty_buffer_does_not_wait() -> Result<(), Box<dyn Error>> {
    let exchanged = tokio::time::timeout(Duration::from_secs(60), exchange(free_address()?)).await?;
    let (empty, records) = exchanged?;
    let messages: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::Message { header, payload, .. } => Some((header.number, header.importance, &payload[..])),
            _ => None,
        })
        .collect();
    assert_eq!((empty, records.len()), (0, 2));
    assert_eq!(messages, [(0, 128, &b"one"[..]), (1, 128, &b"two"[..])]);
    Ok(())
}

#[test]
fn the_defaults_are_those_of_the_commands() {
    let config = ConnectionConfig::default();
    assert_eq!(Combination::RECOMMENDED.parse(), Ok(Combination::recommended()));
    assert!(config.tcp.keepalive.is_some() && config.peer_timeout.is_some());
}

/// Connects where no server is, and then leads the tunnels to the server; returns what it is sent.
async fn follow(nowhere: SocketAddr, port: u16) -> Result<String, Box<dyn Error>> {
    let at = |last| SocketAddr::from(([127, 0, 0, last], port));
    let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let far = attach(&Attachment::TunnelServer(everywhere), StackConfig::default()).await?;
    let listener = far.stack().listen(PORT, ConnectionConfig::default())?;
    let tunnels = Tunnels { server: nowhere.into(), interfaces: Vec::new() };
    let near = attach(&Attachment::Tunnels(tunnels), StackConfig::default()).await?;
    let inside = SocketAddr::new(Tunnels::SERVER, PORT);
    near.set_server(at(1));
    let (stream, accepted) =
        tokio::join!(near.stack().connect(None, inside, ConnectionConfig::default()), listener.accept());
    let (mut stream, mut accepted) = (stream?, accepted.ok_or("the stack has ended")?);
    accepted.write_all(b"here").await?;
    // And back to the same server by another of its addresses, with the connection.
    let mut said = [0; 4];
    stream.read_exact(&mut said).await?;
    near.set_server(at(2));
    accepted.write_all(b" and there").await?;
    accepted.shutdown().await?;
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await?;
    near.detach().await?;
    far.detach().await?;
    Ok(String::from_utf8(said.to_vec())? + &rest)
}

#[tokio::test]
async fn tunnels_follow_a_server_to_another_address_and_connections_go_on() -> Result<(), Box<dyn Error>> {
    let nowhere = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = free_address()?.port();
    let followed = tokio::time::timeout(Duration::from_secs(60), follow(nowhere.local_addr()?, port)).await?;
    assert_eq!(followed?, "here and there");
    Ok(())
}
