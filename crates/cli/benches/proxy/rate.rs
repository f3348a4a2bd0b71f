//! Sequential connections of several concurrent clients: rate, and time from connecting to the proxy to the first byte
//! of the target.

use crate::scene::{Scene, TARGET, run_in};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Connections that take longer count as failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// Results of an interval.
#[derive(Default)]
struct Stretch {
    took: Vec<Duration>,
    failed: usize,
}

/// Opens connections for this many intervals, and prints the results. Returns the CPU time of both programs per
/// connection for each interval, µs.
pub fn measure(scene: &Scene, stretches: usize, stretch_time: Duration, at_once: usize) -> Vec<f64> {
    let listener = run_in(&scene.server, || TcpListener::bind((Ipv4Addr::LOCALHOST, TARGET)).expect("it is free"));
    let over = AtomicBool::new(false);
    let stretch = Mutex::new(Stretch::default());
    thread::scope(|scope| {
        let greeters = 4 * at_once; // most of them wait for the end of a connection
        (0..greeters).for_each(|_| drop(scope.spawn(|| greet(&listener, &over))));
        (0..at_once)
            .for_each(|_| drop(scope.spawn(|| run_in(&scene.client, || connect(scene.entrance, &over, &stretch)))));
        println!("  {:>7} {:>9} {:>9} {:>9} {:>7}", "per s", "p50 ms", "p99 ms", "most ms", "failed");
        let mut cpu = (scene.proxy.cpu(), scene.serve.cpu());
        let mut each = Vec::new();
        for _ in 0..stretches {
            let from = Instant::now();
            thread::sleep(stretch_time);
            let past = std::mem::take(&mut *stretch.lock().expect("nobody panics with it"));
            let now = (scene.proxy.cpu(), scene.serve.cpu());
            each.push(past.print(from.elapsed(), now.0 - cpu.0, now.1 - cpu.1));
            cpu = now;
        }
        over.store(true, Ordering::Relaxed);
        println!("  memory: proxy {} kB, serve {} kB", scene.proxy.memory(), scene.serve.memory());
        // Unblocks the accepting tasks.
        for _ in 0..greeters {
            let _ = run_in(&scene.server, || TcpStream::connect((Ipv4Addr::LOCALHOST, TARGET)));
        }
        each
    })
}

/// The target: sends one byte to each client, and waits until it closes.
fn greet(listener: &TcpListener, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let Ok((mut socket, _)) = listener.accept() else { continue };
        let _ = socket.set_read_timeout(Some(PATIENCE));
        if socket.write_all(&[1]).is_ok() {
            let _ = socket.read(&mut [0; 16]);
        }
    }
}

/// A client: connects, reads the byte, closes.
fn connect(entrance: SocketAddr, over: &AtomicBool, stretch: &Mutex<Stretch>) {
    while !over.load(Ordering::Relaxed) {
        let from = Instant::now();
        let outcome = TcpStream::connect(entrance).and_then(|mut socket| {
            socket.set_read_timeout(Some(PATIENCE))?;
            socket.read_exact(&mut [0])
        });
        let took = from.elapsed();
        let mut stretch = stretch.lock().expect("nobody panics with it");
        match outcome {
            Ok(()) => stretch.took.push(took),
            Err(_refused_or_late) => stretch.failed += 1,
        }
    }
}

impl Stretch {
    /// Returns the CPU time of both programs per connection, µs.
    fn print(mut self, time: Duration, proxy: Duration, serve: Duration) -> f64 {
        self.took.sort_unstable();
        let count = self.took.len();
        let at = |part: f64| {
            let index = ((count as f64 * part) as usize).min(count.saturating_sub(1));
            self.took.get(index).map_or(f64::NAN, |took| took.as_secs_f64() * 1e3)
        };
        let rate = count as f64 / time.as_secs_f64();
        let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / count.max(1) as f64;
        println!(
            "  {rate:>7.0} {:>9.2} {:>9.2} {:>9.2} {:>7}   CPU us each: proxy {:.0}, serve {:.0}",
            at(0.5),
            at(0.99),
            at(1.0),
            self.failed,
            each(proxy),
            each(serve)
        );
        each(proxy + serve)
    }
}
