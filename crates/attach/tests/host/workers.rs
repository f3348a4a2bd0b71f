//! Several stacks, each in its own thread, that form one host; two such hosts with two paths between them.

use crate::scene::{BOTH, PORT, Scene, config, exchange_until};
use anabranch_attach::{Attached, Attachment, HostOptions, Tunnels, Uplinks, Worker, attach_workers};
use anabranch_policy::combination::Combination;
use anabranch_policy::view::SubflowState;
use anabranch_stack::{Stack, StackConfig, Stream};
use anabranch_wire::encapsulation::SERVER;
use libtest_mimic::Trial;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{oneshot, watch};

/// Per host.
const WORKERS: usize = 4;
const CONNECTIONS: usize = 32;
/// Timeout of any operation.
const DEADLINE: Duration = Duration::from_secs(60);

pub fn trials() -> Vec<Trial> {
    let trial = |name: &str, udp: bool| {
        Trial::test(format!("workers::connections_are_spread_and_joins_find_them_{name}"), move || {
            both(udp);
            Ok(())
        })
    };
    vec![trial("tun", false), trial("udp", true)]
}

/// Threads with runtimes, in the namespace of the thread that created them.
struct Threads {
    over: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
    runtimes: Vec<Handle>,
}

impl Threads {
    fn start() -> Self {
        let (over, is_over) = watch::channel(false);
        let (mut threads, mut runtimes) = (Vec::new(), Vec::new());
        for _ in 0..WORKERS {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtimes.push(runtime.handle().clone());
            let mut is_over = is_over.clone();
            threads.push(spawn(move || {
                let _ = runtime.block_on(is_over.wait_for(|over| *over));
            }));
        }
        Self { over, threads, runtimes }
    }

    async fn attach(&self, attachment: &Attachment) -> Attached {
        let worker = |runtime: &Handle| {
            let path_manager = Combination::default().build_path_manager().expect("the default exists");
            Worker { runtime: runtime.clone(), config: StackConfig::new(path_manager) }
        };
        let workers = self.runtimes.iter().map(worker).collect();
        attach_workers(attachment, workers).await.expect("we may")
    }

    fn end(self) {
        self.over.send_replace(true);
        self.threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(DEADLINE, work).await.expect("it ends in a minute") })
}

/// Echoes until the end of the stream.
async fn echo(mut stream: Stream) {
    let mut bytes = vec![0; 65_536];
    while let Ok(length @ 1..) = stream.read(&mut bytes).await {
        if stream.write_all(&bytes[..length]).await.is_err() {
            return;
        }
    }
}

/// Accepts on all stacks of the world until stopped. Returns the number of connections per stack.
fn server(attachment: &Attachment, listens: &mpsc::Sender<()>, stop: oneshot::Receiver<()>) -> Vec<usize> {
    let threads = Threads::start();
    let counts = block_on(async {
        let attached = threads.attach(attachment).await;
        let counts: Vec<Arc<AtomicUsize>> = attached.stacks().iter().map(accept).collect();
        listens.send(()).expect("somebody waits");
        stop.await.expect("somebody stops it");
        attached.detach().await.expect("all is undone");
        counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    });
    threads.end();
    counts
}

fn accept(stack: &Stack) -> Arc<AtomicUsize> {
    let (count, listener) = (Arc::new(AtomicUsize::new(0)), stack.listen(PORT, config()).expect("the port is free"));
    let counted = Arc::clone(&count);
    stack.runtime().spawn(async move {
        while let Some(stream) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(echo(stream));
        }
    });
    count
}

/// The number of subflows that carry data.
fn carrying(stream: &Stream) -> usize {
    stream.paths().iter().filter(|path| path.subflow.view.state == SubflowState::Established).count()
}

fn both(udp: bool) {
    let scene = Scene::new();
    let before = scene.state();
    let names = |prefix: &str| (0..BOTH.len()).map(|n| format!("{prefix}{n}")).collect::<Vec<_>>();
    let journal = scene.journal().join("world");
    let place: SocketAddr = "10.1.0.1:4433".parse().expect("an address");
    let (ours, theirs, to) = if udp {
        let tunnels = Tunnels { server: place.into(), interfaces: names("up") };
        let bind = SocketAddr::new([0, 0, 0, 0].into(), place.port());
        (Attachment::Tunnels(tunnels), Attachment::TunnelServer(bind), SocketAddr::new(SERVER, PORT))
    } else {
        let options = HostOptions { mtu: None, journal: Some(journal.clone()) };
        let uplinks = Uplinks { interfaces: names("down"), ports: vec![PORT], options };
        let to = SocketAddr::new(place.ip(), PORT);
        (Attachment::Uplinks(scene.uplinks(&[])), Attachment::Uplinks(uplinks), to)
    };
    std::fs::create_dir(&journal).expect("there is room");
    let (stop, stopped) = oneshot::channel();
    let (listens, listening) = mpsc::channel();
    let counts = std::thread::scope(|scope| {
        let world = &scene.world;
        let server = scope.spawn(move || world.run(|| server(&theirs, &listens, stopped)).expect("it can be entered"));
        listening.recv().expect("it listens");
        scene.in_ours(|| client(&ours, to));
        stop.send(()).expect("it still runs");
        server.join().expect("it does not panic")
    });
    std::fs::remove_dir(&journal).expect("it is empty");
    scene.assert_as_before(&before);
    assert_eq!(counts.iter().sum::<usize>(), CONNECTIONS, "{counts:?}");
    if udp {
        assert_eq!(counts, [CONNECTIONS / WORKERS; WORKERS], "sessions in a row");
    } else {
        // A hash assigns them: all on two of four stacks has a probability of 1 in 700 million.
        assert!(counts.iter().filter(|count| **count > 0).count() > 2, "{counts:?}");
    }
}

/// Concurrent connections from all stacks. Each carries bytes in both directions until it uses two paths, and some
/// more.
fn client(attachment: &Attachment, to: SocketAddr) {
    let threads = Threads::start();
    block_on(async {
        let attached = threads.attach(attachment).await;
        let mut tasks = Vec::new();
        for stack in attached.stacks().iter().cycle().take(CONNECTIONS) {
            let (runtime, stack) = (stack.runtime(), stack.clone());
            tasks.push(runtime.spawn(async move {
                let mut stream = stack.connect(None, to, config()).await.expect("it accepts");
                let mut left = 10;
                exchange_until(&mut stream, |stream| {
                    left -= usize::from(carrying(stream) >= 2 && left > 0);
                    left == 0
                })
                .await;
            }));
        }
        for task in tasks {
            task.await.expect("what came back is what was sent");
        }
        let refused: u64 = attached.stacks().iter().map(|stack| stack.counters().endpoint.refused_joins).sum();
        assert_eq!(refused, 0);
        attached.detach().await.expect("all is undone");
    });
    threads.end();
}
