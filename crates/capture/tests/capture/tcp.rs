//! Connections that cannot be carried.

use crate::scene::{Scene, TARGET, TARGET_V6, target, trial};
use anabranch_proxy::{BoundSockets, Exit};
use libtest_mimic::Trial;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("tcp::a_connection_without_a_way_out_is_refused_as_by_a_router", no_way_out),
        trial("tcp::at_the_end_a_program_hears_that_a_target_that_was_silent_is_not_reached", silent),
    ]
}

async fn no_way_out(mut scene: Scene) {
    let running = scene.capture(None);
    let connect =
        || [TARGET, TARGET_V6].map(|to| TcpStream::connect(target(to, 80)).map(drop).expect_err("no way").kind());
    let seen = scene.program(connect).await;
    assert_eq!(seen, [std::io::ErrorKind::NetworkUnreachable; 2]);
    let counters = running.stop().await;
    assert_eq!((counters.unreachable, counters.refused, counters.connections.accepted), (2, 0, 2));
}

async fn silent(mut scene: Scene) {
    let exit = Exit::Sockets(BoundSockets::new(Arc::new(|| vec!["lo".to_owned()])));
    // Longer than the test may take.
    let running = scene.capture_to(exit, None, Duration::from_secs(3_600));
    // Nobody on loopback has this address, so nothing is answered.
    let connect = || TcpStream::connect(target("192.0.2.77", 80)).map(drop).expect_err("it is silent").kind();
    let (seen, counters) = tokio::join!(scene.program(connect), async {
        while running.clients() < 1 {
            sleep(Duration::from_millis(5)).await;
        }
        running.stop().await.connections
    });
    assert_eq!(seen, ErrorKind::HostUnreachable);
    assert_eq!((counters.accepted, counters.left_early, counters.stopped), (1, 1, 0));
}
