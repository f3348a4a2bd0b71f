//! Routers side by side where links are of unequal quality: a random mesh on the lab's radio with path loss, shadows and fading,
//! the same places and pairs for hop count, ETX (`--link-cost etx`) and babeld with its own ETX.
//!
//! `ANABRANCH_UNEQUAL=4 cargo test -p anabranch-router --test route -- unequal --test-threads 1 --nocapture` makes 4 draws and prints
//! a table (docs/measurements/routing.md has one), with `ANABRANCH_SEED=5` of the draws 5 to 8: downloads between random pairs by the kernel's TCP, one after the other,
//! and control traffic while nothing else is sent.

use crate::beside::{Kind, Router, draws_beside_babeld, sent, start};
use crate::convergence::summary;
use crate::scene::{Scene, config};
use anabranch_emulate::{ChannelModel, Ether, Mesh, MeshConfig, mesh};
use anabranch_router::Family;
use anabranch_routing::LinkCost;
use anabranch_sim::forecast_score::Setting;
use anabranch_sim::radio::Position;
use anabranch_sim::random::RandomStream;
use anabranch_system::Namespace;
use libtest_mimic::Trial;
use socket2::{Domain, Socket, Type};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::time::{Duration, Instant};

/// As dense as the forty nodes in a square of 700 m of the lab's `mesh_quality`.
pub const NODES: usize = 20;
pub const SIDE: f64 = 495.0;
const RANGE: f64 = 250.0;

const PAIRS: usize = 12;
const DOWNLOAD: Duration = Duration::from_secs(6);

/// From the start of all until routes and link costs have settled.
const SETTLE: Duration = Duration::from_secs(45);

/// Idle time in which control traffic is counted.
const IDLE: Duration = Duration::from_secs(20);

const PORT: u16 = 4_700;

/// Cost of a link without loss, as `--link-cost etx` has it.
const ETX_COST: u16 = 10;

pub fn trials() -> Vec<Trial> {
    draws_beside_babeld("unequal::downloads", "ANABRANCH_UNEQUAL", side_by_side)
}

pub fn kinds() -> [(&'static str, Kind); 3] {
    let hops = config(Family::Ipv4, 1);
    let mut etx = hops.clone();
    (etx.manet.cost, etx.manet.link_cost) = (ETX_COST, LinkCost::Etx);
    [("hop count", Some(hops)), ("ETX", Some(etx)), ("babeld", None)]
}

/// What was measured of a kind.
#[derive(Default)]
struct Measured {
    /// Mbit/s of all downloads.
    throughput: Vec<f64>,
    /// Their mean by draw.
    means: Vec<f64>,
    /// Bytes per second and node, by draw.
    control: Vec<f64>,
}

fn side_by_side(draws: Range<u64>) {
    let mut all: Vec<(&str, Measured)> = kinds().into_iter().map(|(name, _)| (name, Measured::default())).collect();
    for draw in draws {
        for ((_, kind), (name, measured)) in kinds().iter().zip(&mut all) {
            let (throughput, control) = measure(draw, kind);
            let mean = throughput.iter().sum::<f64>() / throughput.len() as f64;
            eprintln!(
                "draw {draw}, {name}: {mean:.3} Mbit/s, {control:.0} control bytes per second and node: {throughput:.2?}"
            );
            measured.throughput.extend(throughput);
            measured.means.push(mean);
            measured.control.push(control);
        }
    }
    for (name, mut measured) in all {
        let mean = measured.means.iter().sum::<f64>() / measured.means.len() as f64;
        eprintln!("{name}:");
        eprintln!("  Mbit/s, mean {mean:.3}; of all downloads {}", summary(&mut measured.throughput));
        eprintln!("  Mbit/s, means of draws {}", summary(&mut measured.means));
        eprintln!("  control bytes per second and node {}", summary(&mut measured.control));
    }
}

/// The places of a draw, and the pairs that download.
fn draw(number: u64) -> (Vec<Position>, Vec<(usize, usize)>) {
    let mut luck = RandomStream::new(number, "unequal");
    let positions = (0..NODES).map(|_| Position { x: luck.between(0.0, SIDE), y: luck.between(0.0, SIDE) }).collect();
    let pairs = (0..PAIRS).map(|_| random_pair(&mut luck)).collect();
    (positions, pairs)
}

/// The numbers of two different hosts.
pub fn random_pair(luck: &mut RandomStream) -> (usize, usize) {
    let from = luck.below(NODES as u64);
    let to = (from + 1 + luck.below(NODES as u64 - 1)) % NODES as u64;
    (from as usize + 1, to as usize + 1)
}

/// Hosts at these places.
pub fn mesh_on_radio(positions: Vec<Position>, seed: u64) -> Scene {
    let radio = ChannelModel::Radio(Box::new(Setting::standard_radio(RANGE)));
    let network = MeshConfig { positions, seed, ..MeshConfig::figure_8(vec![radio]) };
    let (mesh, air, ends) = Mesh::new(&network).expect("namespaces were there a moment ago");
    let ether = Ether::start(air, ends, None).expect("a thread");
    Scene { routers: Vec::new(), mesh, ether }
}

/// Mbit/s of each pair, and control bytes per second and node.
fn measure(number: u64, kind: &Kind) -> (Vec<f64>, f64) {
    let (positions, pairs) = draw(number);
    let scene = mesh_on_radio(positions, number);
    let _routers: Vec<Router> = (1..=NODES).map(|node| start(scene.node(node), kind)).collect();
    std::thread::sleep(SETTLE);
    let (before, since) = (sent(&scene), Instant::now());
    std::thread::sleep(IDLE);
    let control = (sent(&scene) - before) as f64 / since.elapsed().as_secs_f64() / NODES as f64;
    (pairs.into_iter().map(|(from, to)| download(&scene, from, to)).collect(), control)
}

/// Mbit/s of a download by `to` from `from`; 0 without a connection.
fn download(scene: &Scene, from: usize, to: usize) -> f64 {
    let address = SocketAddr::from((mesh::loopback_ipv4(from), PORT));
    let listener = in_node(scene.node(from), || listen(address));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let _ = stream.set_write_timeout(Some(DOWNLOAD));
            // Ends when the other end closes, or takes nothing any more.
            while stream.write_all(&[0; 16_384]).is_ok() {}
        });
        let received = in_node(scene.node(to), || receive(mesh::loopback_ipv4(to).into(), address));
        // The listener of a pair without a way is reached from its own host, so that its thread ends.
        if received == 0 {
            let _ = in_node(scene.node(from), || TcpStream::connect(address));
        }
        received as f64 * 8.0 / DOWNLOAD.as_secs_f64() / 1e6
    })
}

fn listen(address: SocketAddr) -> TcpListener {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_reuse_address(true).expect("a flag");
    // For the connections that it accepts too.
    socket.set_tcp_congestion(b"cubic").expect("a kernel with CUBIC");
    socket.bind(&address.into()).expect("the address is the node's");
    socket.listen(1).expect("it can listen");
    socket.into()
}

/// Bytes received within [`DOWNLOAD`], connecting included.
fn receive(own: IpAddr, address: SocketAddr) -> usize {
    let until = Instant::now() + DOWNLOAD;
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::new(own, 0).into()).expect("the address is the node's");
    if socket.connect_timeout(&address.into(), DOWNLOAD).is_err() {
        return 0;
    }
    let mut stream = TcpStream::from(socket);
    let (mut bytes, mut total) = ([0; 65_536], 0);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return total;
        }
        match stream.read(&mut bytes) {
            Ok(count) if count > 0 => total += count,
            _ => return total,
        }
    }
}

fn in_node<T: Send>(namespace: &Namespace, work: impl FnOnce() -> T + Send) -> T {
    namespace.run(work).expect("it can be entered")
}
