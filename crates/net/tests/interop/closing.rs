//! How connections end: DATA_FIN in every order, aborts and resets, each side first.

use crate::scene::{Role, Scene, blocking};
use libtest_mimic::Trial;
use socket2::Socket;
use std::io::{Read, Write};
use std::net::Shutdown;
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
    trials
}

/// Both send a text, and close in an order; both read the other's text and its end.
fn orderly(role: Role, order: Order, scene: Scene) {
    scene.run(|hosts| async move {
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

async fn we_read(stream: &mut anabranch_net::Stream, expected: &[u8]) {
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
