//! Readers that stop: the memory that both programs hold then.

use crate::bulk::{BLOCK, send};
use crate::scene::{Scene, TARGET, run_in};
use std::io::Read as _;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// For how long the targets read.
const READING: Duration = Duration::from_secs(3);
/// After this time without reading nothing moves any more.
const STOPPED: Duration = Duration::from_secs(5);

/// Uploads on many connections whose targets stop reading.
pub fn measure(scene: &Scene, connections: usize) {
    let listener = run_in(&scene.server, || TcpListener::bind((Ipv4Addr::UNSPECIFIED, TARGET)).expect("it is free"));
    let before = memory(scene);
    let connect = |_| {
        let near = run_in(&scene.client, || TcpStream::connect(scene.entrance)).expect("the proxy listens");
        (near, listener.accept().expect("the connection comes through").0)
    };
    let ends: Vec<(TcpStream, TcpStream)> = (0..connections).map(connect).collect();
    let over = AtomicBool::new(false);
    let stop = Instant::now() + READING;
    thread::scope(|scope| {
        for (source, sink) in &ends {
            scope.spawn(|| send(source, &over));
            scope.spawn(|| read_until(sink, stop));
        }
        thread::sleep(READING + STOPPED);
        let after = memory(scene);
        let [proxy, serve] = [0, 1].map(|at| (after[at] as i64 - before[at] as i64) / connections as i64);
        println!("  memory: proxy {} kB, serve {} kB; {proxy} and {serve} kB for each connection", after[0], after[1]);
        over.store(true, Ordering::Relaxed);
        for socket in ends.iter().flat_map(|(source, sink)| [source, sink]) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    });
}

/// Resident kB of the proxy and of the server.
fn memory(scene: &Scene) -> [u64; 2] {
    [scene.proxy.memory(), scene.serve.memory()]
}

fn read_until(mut socket: &TcpStream, stop: Instant) {
    let mut block = vec![0; BLOCK];
    while Instant::now() < stop && matches!(socket.read(&mut block), Ok(1..)) {}
}
