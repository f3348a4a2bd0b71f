//! Two stacks of ours with UDP between them, over loopback and without privileges.

use anabranch_mptcp::Protocol;
use anabranch_mptcp::{ConnectionConfig, Policies};
use anabranch_policy::combination::Combination;
use anabranch_policy::ids::AddressId;
use anabranch_stack::DeviceId;
use anabranch_stack::device::TunnelConfig;
use anabranch_stack::{Device, Stack, StackConfig, Stream};
use anabranch_wire::encapsulation::{Place, SERVER};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

const PORT: u16 = 443;
const SESSION: u64 = 0x5e55_1011;

fn config() -> ConnectionConfig {
    ConnectionConfig::new(Policies::of(&Combination::default()).expect("the default exists"))
}

/// A stack whose event loop runs in the background.
fn stack() -> Stack {
    stack_and_loop().0
}

fn stack_and_loop() -> (Stack, JoinHandle<io::Result<()>>) {
    let path_manager = Combination::default().build_path_manager().expect("the default exists");
    let (stack, driver) = Stack::new(StackConfig::new(path_manager)).expect("a stack");
    (stack, tokio::spawn(driver))
}

/// A server, and where its socket is.
fn server() -> (Stack, DeviceId, SocketAddr) {
    server_at(SocketAddr::from(([127, 0, 0, 1], 0)))
}

fn server_at(bind: SocketAddr) -> (Stack, DeviceId, SocketAddr) {
    let stack = stack();
    let device = Device::tunnel_server(bind).expect("a port is free");
    let Device::Tunnel(tunnel) = &device else { unreachable!("it is a tunnel") };
    let address = tunnel.local_address().expect("it is bound");
    let device = stack.attach(device);
    stack.address_up(device, AddressId(1), SERVER).expect("the device is there");
    (stack, device, address)
}

/// Adds path `path` to a client, through the server's socket or a relay in front of it.
fn add_path(stack: &Stack, path: u8, server: SocketAddr) -> DeviceId {
    let place = Place { session: SESSION, path };
    let device = Device::tunnel(&TunnelConfig { server, interface: None, place }).expect("a socket");
    let device = stack.attach(device);
    stack.address_up(device, AddressId(path), place.address()).expect("the device is there");
    device
}

/// Sends `length` bytes each way at once and checks what arrives.
async fn exchange(client: Stream, server: Stream, length: usize) {
    let one_way = |stream: Stream, seed: u8| async move {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let sending = async {
            writer.write_all(&pattern(seed, length)).await.expect("the peer reads");
            writer.shutdown().await.expect("it is open");
        };
        let receiving = async {
            let mut received = Vec::new();
            reader.read_to_end(&mut received).await.expect("the peer closes");
            assert!(received == pattern(1 - seed, length), "what arrived differs from what was sent");
        };
        tokio::join!(sending, receiving);
    };
    tokio::join!(one_way(client, 0), one_way(server, 1));
}

fn pattern(seed: u8, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[usize::from(seed)]).collect()
}

async fn connect(client: &Stack, listener: &anabranch_stack::Listener) -> (Stream, Stream) {
    let remote = SocketAddr::new(SERVER, PORT);
    let (outgoing, incoming) = tokio::join!(client.connect(None, remote, config()), listener.accept());
    (outgoing.expect("the server accepts"), incoming.expect("the stack is up"))
}

async fn within_a_minute(test: impl Future<Output = ()>) {
    tokio::time::timeout(Duration::from_secs(60), test).await.expect("it ends within a minute");
}

#[tokio::test]
async fn a_client_is_told_of_by_the_address_that_its_datagrams_come_from() {
    within_a_minute(async {
        // A socket of both families, which tells addresses of IPv4 as mapped ones.
        let (server, _, address) = server_at("[::]:0".parse().expect("an address"));
        let client = stack();
        add_path(&client, 1, SocketAddr::from(([127, 0, 0, 1], address.port())));
        let listener = server.listen(PORT, config()).expect("the port is free");
        let (_outgoing, incoming) = connect(&client, &listener).await;
        assert_eq!(incoming.peer_address().ip(), Place { session: SESSION, path: 1 }.address());
        let source = incoming.peer_source();
        assert_eq!(source.ip(), "127.0.0.1".parse::<IpAddr>().expect("an address"));
        let report = server.connections(1).pop().expect("there is one");
        assert_eq!((report.remote, report.paths[0].subflow.remote), (source, source));
        // A server is not behind its clients' sockets.
        assert_eq!(client.connections(1).pop().expect("there is one").remote, SocketAddr::new(SERVER, PORT));
    })
    .await;
}

#[tokio::test]
async fn when_the_event_loop_ends_all_who_wait_for_it_are_told() {
    within_a_minute(async {
        let (server, _, address) = server();
        let (client, event_loop) = stack_and_loop();
        add_path(&client, 1, address);
        let far = server.listen(PORT, config()).expect("the port is free");
        let near = client.listen(PORT, config()).expect("the port is free");
        let (mut stream, _peer) = connect(&client, &far).await;
        let ending = async {
            tokio::task::yield_now().await;
            event_loop.abort();
            assert!(event_loop.await.is_err_and(|error| error.is_cancelled()));
        };
        let mut bytes = [0; 1];
        let remote = SocketAddr::new(SERVER, PORT + 1);
        let (read, accepted, connected, ()) =
            tokio::join!(stream.read(&mut bytes), near.accept(), client.connect(None, remote, config()), ending);
        assert_eq!(read.map_err(|error| error.kind()), Err(io::ErrorKind::ConnectionAborted));
        assert!(accepted.is_none() && connected.is_err());
        assert!(stream.write_all(&[1]).await.is_err());
        assert!(client.listen(PORT + 2, config()).is_err());
    })
    .await;
}

#[tokio::test]
async fn the_totals_of_a_name_do_not_fall_when_its_device_is_opened_anew() {
    within_a_minute(async {
        let (server, _, address) = server();
        let client = stack();
        let device = add_path(&client, 1, address);
        client.name_address(AddressId(1), "wlan0");
        let listener = server.listen(PORT, config()).expect("the port is free");
        let (outgoing, incoming) = connect(&client, &listener).await;
        exchange(outgoing, incoming, 1 << 16).await;
        let before = client.device_counters(device).expect("it is attached");
        assert!(before.bytes_sent > 1 << 16, "{before:?}");
        client.detach(device);
        assert_eq!(client.device_counters(device), None);
        let [other, again] = [2, 1].map(|path| add_path(&client, path, address));
        client.name_address(AddressId(1), "wlan0");
        let sent = |device| client.device_counters(device).expect("it is attached").bytes_sent;
        assert!(sent(again) >= before.bytes_sent && sent(other) < 1 << 16, "{} {}", sent(again), sent(other));
    })
    .await;
}

#[tokio::test]
async fn two_paths_carry_bytes_both_ways() {
    within_a_minute(async {
        let (server, server_device, address) = server();
        let client = stack();
        let devices = [1, 2].map(|path| add_path(&client, path, address));
        let listener = server.listen(PORT, config()).expect("the port is free");
        let (outgoing, incoming) = connect(&client, &listener).await;
        assert_eq!(outgoing.protocol(), Some(Protocol::Multipath));
        exchange(outgoing, incoming, 8 << 20).await;
        for device in devices {
            let counters = client.device_counters(device).expect("it is attached");
            // Which of them carries one direction is a matter of moments, above all on a busy machine.
            let carried = counters.bytes_sent + counters.bytes_received;
            assert!(carried > 1 << 20, "both paths carry a part: {counters:?}");
            assert_eq!(counters.malformed, 0);
        }
        assert_eq!(server.device_counters(server_device).expect("it is attached").malformed, 0);
    })
    .await;
}

/// Passes datagrams on between a client and the server, and after the signal goes on from another port, as a NAT does
/// that has forgotten the flow.
async fn forgetful_nat(outside: SocketAddr, forget: Arc<AtomicBool>) -> SocketAddr {
    let inside = UdpSocket::bind("127.0.0.1:0").await.expect("a port is free");
    let address = inside.local_addr().expect("it is bound");
    tokio::spawn(async move {
        let mut client = None;
        let mut upstream = UdpSocket::bind("127.0.0.1:0").await.expect("a port is free");
        let (mut up, mut down) = ([0; 2_048], [0; 2_048]);
        loop {
            if forget.swap(false, Ordering::Relaxed) {
                upstream = UdpSocket::bind("127.0.0.1:0").await.expect("a port is free");
            }
            tokio::select! {
                received = inside.recv_from(&mut up) => {
                    let (length, from) = received.expect("the socket is open");
                    client = Some(from);
                    upstream.send_to(&up[..length], outside).await.expect("the server's socket is open");
                }
                received = upstream.recv_from(&mut down) => {
                    let (length, _) = received.expect("the socket is open");
                    let client = client.expect("the server answers a client");
                    inside.send_to(&down[..length], client).await.expect("the client's socket is open");
                }
            }
        }
    });
    address
}

#[tokio::test]
async fn a_connection_outlives_the_memory_of_a_nat() {
    within_a_minute(async {
        let (server, _, address) = server();
        let forget = Arc::new(AtomicBool::new(false));
        let client = stack();
        add_path(&client, 1, forgetful_nat(address, Arc::clone(&forget)).await);
        let listener = server.listen(PORT, config()).expect("the port is free");
        let (mut outgoing, mut incoming) = connect(&client, &listener).await;
        outgoing.write_all(b"before").await.expect("room");
        let mut text = [0; 6];
        incoming.read_exact(&mut text).await.expect("it arrives");
        forget.store(true, Ordering::Relaxed);
        exchange(outgoing, incoming, 1 << 20).await;
    })
    .await;
}

#[tokio::test]
async fn what_strangers_send_changes_nothing_but_counters() {
    within_a_minute(async {
        let (server, server_device, address) = server();
        let client = stack();
        add_path(&client, 1, address);
        let listener = server.listen(PORT, config()).expect("the port is free");
        let (outgoing, incoming) = connect(&client, &listener).await;
        let stranger = UdpSocket::bind("127.0.0.1:0").await.expect("a port is free");
        let mut forged = vec![0x11, 1];
        forged.extend_from_slice(&SESSION.to_be_bytes());
        forged.extend_from_slice(&[0; 20]);
        let garbage: [&[u8]; 4] = [&[], &[0x11], &[0xff; 1_400], &forged];
        for datagram in garbage {
            stranger.send_to(datagram, address).await.expect("the server's socket is open");
        }
        exchange(outgoing, incoming, 1 << 20).await;
        // An empty datagram is none.
        assert_eq!(server.device_counters(server_device).expect("it is attached").malformed, 3);
    })
    .await;
}
