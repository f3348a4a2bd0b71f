//! A daemon's beginning and end, and connections that outlive it.

use crate::hands::carry_out;
use crate::scene::{Path, PathManager, Scene, client_address, wait_for};
use crate::steered::Steered;
use anabranch_steering::command::{Command, Outcome};
use anabranch_steering::sample::{ConnectionSample, TcpState};
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("subflows_are_opened_and_one_that_is_closed_is_opened_again", || {
            subflows_are_opened_and_one_that_is_closed_is_opened_again();
            Ok(())
        }),
        Trial::test("a_connection_outlives_its_daemon_and_is_adopted_by_the_next", || {
            a_connection_outlives_its_daemon_and_is_adopted_by_the_next();
            Ok(())
        }),
        Trial::test("a_connection_of_the_kernels_path_manager_is_adopted_and_left_in_peace", || {
            a_connection_of_the_kernels_path_manager_is_adopted_and_left_in_peace();
            Ok(())
        }),
    ]
}

fn paths() -> [Path; 2] {
    [Path::new(50, 5), Path::new(50, 5)]
}

fn has_both(connection: &ConnectionSample) -> bool {
    connection.subflows.iter().filter(|subflow| subflow.state == TcpState::Established).count() == 2
}

/// Closes the second path's subflow, as a middlebox or the peer could.
fn close_second(scene: &Scene, connection: &ConnectionSample) {
    let second = |at: usize| connection.subflows.get(at).filter(|s| s.endpoints.local.ip() == client_address(2));
    let subflow = second(0).or(second(1)).expect("it is there");
    let close = Command::DestroySubflow { token: connection.token, endpoints: subflow.endpoints };
    assert_eq!(carry_out(scene, close), Outcome::Done);
    // A new one has another port.
    scene.client_sees(|seen| seen.subflows.iter().all(|other| other.endpoints != subflow.endpoints));
}

fn subflows_are_opened_and_one_that_is_closed_is_opened_again() {
    let scene = Scene::new(&paths(), PathManager::UserSpace);
    let steered = Steered::start(&scene, "full_mesh", PathManager::UserSpace);
    let (_client, _server) = scene.connect();
    let connection = scene.client_sees(has_both);
    assert_eq!(steered.commands("CreateSubflow"), 1);
    close_second(&scene, &connection);
    let begin = std::time::Instant::now();
    scene.client_sees(has_both);
    eprintln!("open again after {:?}", begin.elapsed());
    assert_eq!(steered.commands("CreateSubflow"), 2);
}

fn a_connection_outlives_its_daemon_and_is_adopted_by_the_next() {
    let scene = Scene::new(&paths(), PathManager::UserSpace);
    let first = Steered::start(&scene, "full_mesh", PathManager::UserSpace);
    let (_client, _server) = scene.connect();
    let connection = scene.client_sees(has_both);
    drop(first);
    // While there is no daemon, nobody opens what is closed.
    close_second(&scene, &connection);
    assert_eq!(scene.client_sees(|seen| seen.subflows.len() == 1).token, connection.token);
    let second = Steered::start(&scene, "full_mesh", PathManager::UserSpace);
    scene.client_sees(has_both);
    assert_eq!(second.notices().iter().filter(|notice| notice.starts_with("Adopted")).count(), 1);
}

fn a_connection_of_the_kernels_path_manager_is_adopted_and_left_in_peace() {
    let scene = Scene::new(&paths(), PathManager::Kernel);
    let (_client, _server) = scene.connect();
    scene.client_sees(has_both);
    let steered = Steered::start(&scene, "full_mesh", PathManager::UserSpace);
    wait_for(|| {
        let notices = steered.notices();
        let is_there = notices.iter().any(|notice| notice.starts_with("Adopted"));
        if is_there { Ok(()) } else { Err(format!("{notices:?}")) }
    });
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(has_both(&scene.client_sees(|_| true)));
    assert!(!steered.notices().iter().any(|notice| notice.starts_with("Command")), "{:#?}", steered.notices());
}
