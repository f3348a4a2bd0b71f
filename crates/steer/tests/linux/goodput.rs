//! Goodput with and without a daemon, where a slow second path drags a fast one, and where a path dies.

use crate::scene::{Path, PathManager, Scene, Transfer};
use crate::steered::Steered;
use libtest_mimic::Trial;
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("a_path_that_drags_is_demoted", || {
            a_path_that_drags_is_demoted();
            Ok(())
        }),
        Trial::test("a_path_that_dies_with_its_link_up_is_left_and_used_again", || {
            a_path_that_dies_with_its_link_up_is_left_and_used_again();
            Ok(())
        }),
    ]
}

/// The policy under test.
const POLICY: &str = "goodput_trial";

/// Before measuring, and for it.
const WARM_UP: Duration = Duration::from_secs(8);
const MEASURED: Duration = Duration::from_secs(8);

/// Receive buffer, bytes, which the kernel doubles.
const RECEIVE_BUFFER: usize = 128 << 10;

/// Mbit/s from client to server, over 20 Mbit/s with 10 ms and 1 Mbit/s with 150 ms.
fn goodput(path_manager: PathManager, policy: Option<&'static str>) -> f64 {
    let slow = Path { queue: 50, ..Path::new(1, 150) };
    let scene = Scene::new(&[Path::new(20, 10), slow], path_manager);
    let steered = policy.map(|policy| Steered::start(&scene, policy, path_manager));
    let (client, server) = scene.connect_with(|listener| {
        listener.set_recv_buffer_size(RECEIVE_BUFFER).expect("an option that sockets have");
    });
    let transfer = Transfer::start(client, server);
    std::thread::sleep(WARM_UP);
    let (begin, before) = (Instant::now(), transfer.received());
    std::thread::sleep(MEASURED);
    let rate = (transfer.received() - before) as f64 * 8.0 / begin.elapsed().as_secs_f64() / 1e6;
    if let Some(steered) = &steered {
        assert!(steered.commands("SetBackup") > 0, "nothing was demoted: {:#?}", steered.notices());
    }
    rate
}

fn a_path_that_drags_is_demoted() {
    let unsteered = goodput(PathManager::Kernel, None);
    // Nobody opens a second subflow there.
    let best_path = goodput(PathManager::UserSpace, None);
    let steered = goodput(PathManager::UserSpace, Some(POLICY));
    let by_endpoints = goodput(PathManager::Kernel, Some(POLICY));
    eprintln!(
        "Mbit/s: unsteered {unsteered:.2}, best path alone {best_path:.2}, steered {steered:.2}, by endpoints {by_endpoints:.2}"
    );
    assert!(unsteered < 0.5 * best_path, "the slow path drags: {unsteered} of {best_path}");
    assert!(steered > 0.7 * best_path, "{steered} of {best_path}");
    assert!(by_endpoints > 0.7 * best_path, "{by_endpoints} of {best_path}");
}

/// Nothing passes the second path from 6 s to 16 s after the links' beginning.
fn a_path_that_dies_with_its_link_up_is_left_and_used_again() {
    let dying = Path { dead: Some((6, 16)), ..Path::new(10, 10) };
    let scene = Scene::new(&[Path::new(10, 10), dying], PathManager::UserSpace);
    let begin = Instant::now();
    let steered = Steered::start(&scene, POLICY, PathManager::UserSpace);
    let (client, server) = scene.connect();
    let transfer = Transfer::start(client, server);
    let mut last = 0;
    let mut rates = Vec::new();
    while begin.elapsed() < Duration::from_secs(22) {
        std::thread::sleep(Duration::from_millis(500));
        let received = transfer.received();
        rates.push((begin.elapsed().as_secs_f64(), (received - last) as f64 * 16.0 / 1e6));
        last = received;
    }
    let words: Vec<String> = rates.iter().map(|(at, rate)| format!("{at:.1} s: {rate:.1}")).collect();
    eprintln!("Mbit/s: {}", words.join(", "));
    let mean = |from: f64, to: f64| {
        let within: Vec<f64> = rates.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, rate)| *rate).collect();
        within.iter().sum::<f64>() / within.len() as f64
    };
    let (both, one, again) = (mean(3.0, 6.0), mean(8.0, 16.0), mean(19.5, 22.0));
    eprintln!("both {both:.1}, one {one:.1}, again {again:.1}");
    assert!(one > 6.0, "the path that works carries on: {one}");
    assert!(again > 12.0, "both are used again: {again}: {:#?}", steered.notices());
    drop(steered);
}
