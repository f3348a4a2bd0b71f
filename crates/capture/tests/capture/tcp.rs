//! Connections that cannot be carried.

use crate::scene::{Scene, TARGET, TARGET_V6, target, trial};
use libtest_mimic::Trial;
use std::net::TcpStream;

pub fn trials() -> Vec<Trial> {
    vec![trial("tcp::a_connection_without_a_way_out_is_refused_as_by_a_router", no_way_out)]
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
