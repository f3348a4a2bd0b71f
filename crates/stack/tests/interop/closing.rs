//! How connections end: DATA_FIN in every order, aborts and resets, each side first.

use crate::middlebox::{Middlebox, Way};
use crate::scene::{Role, Scene, blocking};
use crate::traffic::{Close, End, exchange};
use anabranch_wire::{Flags, Packet};
use libtest_mimic::Trial;
use socket2::Socket;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Who closes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    WeFirst,
    KernelFirst,
    AtOnce,
}

impl Order {
    const ALL: [(Self, &'static str); 3] =
        [(Self::WeFirst, "we_first"), (Self::KernelFirst, "the_kernel_first"), (Self::AtOnce, "both_at_once")];
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (role, who) in Role::ALL {
        for (v6, family) in [(false, "ipv4"), (true, "ipv6")] {
            for paths in [1, 2] {
                for (end, longer) in [(true, "the_kernel_goes_on"), (false, "we_go_on")] {
                    let name = format!("closing::{who}_and_{longer}_for_long_on_{paths}_paths_{family}");
                    trials.push(Trial::test(name, move || {
                        half_closed(role, end, Scene::new(paths, v6).links(5, 0.0));
                        Ok(())
                    }));
                }
                trials.push(Trial::test(
                    format!("closing::{who}_and_close_with_data_in_flight_on_{paths}_paths_{family}"),
                    move || {
                        in_flight(role, Scene::new(paths, v6).links(20, 0.0));
                        Ok(())
                    },
                ));
                for (order, first) in Order::ALL {
                    let name = format!("closing::{who}_and_close_{first}_on_{paths}_paths_{family}");
                    trials.push(Trial::test(name, move || {
                        orderly(role, order, Scene::new(paths, v6));
                        Ok(())
                    }));
                }
            }
        }
    }
    for (role, who) in Role::ALL {
        for (lost, what) in Lost::ALL {
            trials.push(Trial::test(format!("closing::{who}_and_{what}_is_lost_twice"), move || {
                loses(role, lost);
                Ok(())
            }));
        }
    }
    trials
}

/// What is lost of the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lost {
    DataFin(Way),
    Fin(Way),
    /// The answers to the other side's DATA_FIN.
    Answer(Way),
}

impl Lost {
    const ALL: [(Self, &'static str); 6] = [
        (Self::DataFin(Way::ToKernel), "our_data_fin"),
        (Self::DataFin(Way::ToUs), "the_kernels_data_fin"),
        (Self::Fin(Way::ToKernel), "our_fin"),
        (Self::Fin(Way::ToUs), "the_kernels_fin"),
        (Self::Answer(Way::ToKernel), "our_answer"),
        (Self::Answer(Way::ToUs), "the_kernels_answer"),
    ];

    /// Whether this packet is one of those; `ended` says which end has sent a DATA_FIN before.
    fn hits(self, ended: Option<Way>, way: Way, packet: &Packet) -> bool {
        let data_fin = packet.segment.options.dss.as_ref().is_some_and(|dss| dss.data_fin);
        match self {
            Self::DataFin(whose) => way == whose && data_fin,
            Self::Fin(whose) => way == whose && packet.segment.flags.contains(Flags::FIN),
            Self::Answer(whose) => way == whose && ended.is_some_and(|first| first != whose),
        }
    }
}

/// What ends the connection is lost twice, on whatever path it goes.
fn loses(role: Role, lost: Lost) {
    for (order, _) in Order::ALL {
        let scene = Scene::new(2, false).links(2, 0.0);
        close_in_order(role, order, scene, move |middlebox, shared| {
            middlebox.obey(move |way, packet| {
                let mut shared = shared.lock().expect("no rule panicked");
                let hit = shared.left > 0 && lost.hits(shared.ended, way, &packet);
                if packet.segment.options.dss.as_ref().is_some_and(|dss| dss.data_fin) {
                    shared.ended = shared.ended.or(Some(way));
                }
                shared.left -= u32::from(hit);
                if hit { Vec::new() } else { vec![packet] }
            });
        });
    }
}

/// One direction has ended, and the other goes on for long.
fn half_closed(role: Role, kernel_goes_on: bool, scene: Scene) {
    scene.run(|hosts| async move {
        let (stream, socket) = hosts.open(role, hosts.config()).await;
        let (long, short) = (End::new(2_000_000), End::new(0));
        let (ours, kernel) = if kernel_goes_on { (short, long) } else { (long, short) };
        exchange(stream, socket, &ours, &kernel, Duration::from_secs(30)).await;
        hosts.nothing_lingers().await;

        let (stream, socket) = hosts.open(role, hosts.config()).await;
        let late = |end: &End| End { close: Close::AfterReading, bytes: end.bytes / 4, ..end.clone() };
        let (ours, kernel) = if kernel_goes_on { (ours, late(&kernel)) } else { (late(&ours), kernel) };
        exchange(stream, socket, &ours, &kernel, Duration::from_secs(30)).await;
        hosts.nothing_lingers().await;
    });
}

/// Both close when all is written and nothing has arrived.
fn in_flight(role: Role, scene: Scene) {
    scene.run(|hosts| async move {
        let (stream, socket) = hosts.open(role, hosts.config()).await;
        exchange(stream, socket, &End::new(1_000_000), &End::new(1_000_000), Duration::from_secs(30)).await;
        hosts.nothing_lingers().await;
    });
}

/// Both send a text, and close in an order; both read the other's text and its end.
fn orderly(role: Role, order: Order, scene: Scene) {
    close_in_order(role, order, scene, |_, _| {});
}

/// What the middleboxes of a connection know together.
struct Knowledge {
    /// Packets still to be lost.
    left: u32,
    /// Which end has sent a DATA_FIN first.
    ended: Option<Way>,
}

fn close_in_order(role: Role, order: Order, scene: Scene, meddle: impl Fn(&Middlebox, Arc<Mutex<Knowledge>>) + Send) {
    scene.run(|hosts| async move {
        let knowledge = Arc::new(Mutex::new(Knowledge { left: 2, ended: None }));
        hosts.middleboxes.iter().for_each(|middlebox| meddle(middlebox, Arc::clone(&knowledge)));
        let (mut stream, mut socket) = hosts.open(role, hosts.config()).await;
        stream.write_all(b"down the river").await.expect("open");
        socket.write_all(b"up the river").expect("open");
        match order {
            Order::WeFirst => {
                stream.shutdown().await.expect("open");
                socket = kernel_reads(socket, b"down the river".to_vec()).await;
                socket.shutdown(Shutdown::Write).expect("open");
                we_read(&mut stream, b"up the river").await;
            }
            Order::KernelFirst => {
                socket.shutdown(Shutdown::Write).expect("open");
                we_read(&mut stream, b"up the river").await;
                stream.shutdown().await.expect("open");
                socket = kernel_reads(socket, b"down the river".to_vec()).await;
            }
            Order::AtOnce => {
                stream.shutdown().await.expect("open");
                socket.shutdown(Shutdown::Write).expect("open");
                we_read(&mut stream, b"up the river").await;
                socket = kernel_reads(socket, b"down the river".to_vec()).await;
            }
        }
        drop((stream, socket));
        hosts.nothing_lingers().await;
    });
}

async fn we_read(stream: &mut anabranch_stack::Stream, expected: &[u8]) {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.expect("the stream ends well");
    assert!(bytes == expected, "we read {} bytes, other than were written", bytes.len());
}

async fn kernel_reads(mut socket: Socket, expected: Vec<u8>) -> Socket {
    blocking(move || {
        let mut bytes = Vec::new();
        socket.read_to_end(&mut bytes).expect("the stream ends well");
        assert!(bytes == expected, "the kernel read {} bytes, other than were written", bytes.len());
        socket
    })
    .await
}
