//! What the kernel does when it is told, and the events that it sends.

use crate::scene::{Path, PathManager, Scene, client_address, server_address, wait_for};
use anabranch_steer::{Events, Hands, open_path_manager};
use anabranch_steering::command::{Command, Outcome};
use anabranch_steering::event::Event;
use anabranch_steering::sample::{ConnectionSample, Endpoints, SubflowSample, TcpState, Token};
use libtest_mimic::Trial;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

pub fn trials() -> Vec<Trial> {
    type Test = fn();
    let all: [(&str, Test); 6] = [
        (
            "the_address_of_the_first_subflow_is_removed_by_the_peer",
            the_address_of_the_first_subflow_is_removed_by_the_peer,
        ),
        ("a_subflow_is_created_demoted_and_destroyed", a_subflow_is_created_demoted_and_destroyed),
        ("an_address_is_announced_and_removed", an_address_is_announced_and_removed),
        (
            "the_kernels_connections_are_demoted_by_their_endpoint",
            the_kernels_connections_are_demoted_by_their_endpoint,
        ),
        ("a_queue_of_events_that_overflows_says_so", a_queue_of_events_that_overflows_says_so),
        ("what_is_not_there_is_refused", what_is_not_there_is_refused),
    ];
    all.into_iter()
        .map(|(name, test)| {
            Trial::test(name, move || {
                test();
                Ok(())
            })
        })
        .collect()
}

fn paths() -> [Path; 2] {
    [Path::new(50, 5), Path::new(50, 5)]
}

/// The events of a host from now on.
fn events(scene: &Scene, at_server: bool) -> Receiver<Event> {
    let (sender, receiver) = channel();
    let open = move || {
        let (ready, is_ready) = channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let path_manager = open_path_manager().expect("the kernel has MPTCP");
                let mut source = Events::open(&path_manager).expect("we may listen");
                ready.send(()).expect("it is waited for");
                let mut heard = Vec::new();
                while source.next(&mut heard).await.is_ok() {
                    if heard.drain(..).any(|event| sender.send(event).is_err()) {
                        return;
                    }
                }
            });
        });
        is_ready.recv().expect("it listens");
    };
    if at_server {
        scene.server(open)
    } else {
        scene.client(open)
    }
    receiver
}

/// The next event for which `wanted` has an answer.
fn next<T>(events: &Receiver<Event>, wanted: impl Fn(&Event) -> Option<T>) -> T {
    let mut others = Vec::new();
    loop {
        let event = events.recv_timeout(Duration::from_secs(30)).unwrap_or_else(|_| panic!("only {others:#?}"));
        match wanted(&event) {
            Some(found) => return found,
            None => others.push(event),
        }
    }
}

fn established(event: &Event) -> Option<(Token, Endpoints)> {
    match *event {
        Event::Established { token, endpoints, server: false, .. } => Some((token, endpoints)),
        _ => None,
    }
}

pub fn carry_out(scene: &Scene, command: Command) -> Outcome {
    scene.client(|| {
        let mut hands = Hands::new(open_path_manager().expect("the kernel has MPTCP"));
        let outcome = hands.carry_out(&command);
        hands.refusal().into_iter().for_each(|refusal| eprintln!("{command:?}: {refusal}"));
        outcome
    })
}

/// The event may come before the kernel has added the subflow to the connection: commands for it are refused until
/// then.
fn set_backup(scene: &Scene, token: Token, endpoints: Endpoints, backup: bool) {
    wait_for(|| match carry_out(scene, Command::SetBackup { token, endpoints, backup }) {
        Outcome::Done => Ok(()),
        outcome => Err(format!("{outcome:?}")),
    });
}

fn create(token: Token, backup: bool) -> Command {
    Command::CreateSubflow { token, local: client_address(2), local_id: 2, remote: server_address(), backup }
}

fn a_subflow_is_created_demoted_and_destroyed() {
    let scene = Scene::new(&paths(), PathManager::UserSpace);
    let heard = events(&scene, false);
    let (_client, _server) = scene.connect();
    let (token, first) = next(&heard, established);
    assert_eq!((first.local.ip(), first.remote), (client_address(1), server_address()));
    // The kernel joins nothing by itself.
    assert_eq!(scene.client_sees(|_| true).subflows.len(), 1);

    assert_eq!(carry_out(&scene, create(token, false)), Outcome::Done);
    let join = next(&heard, |event| match *event {
        Event::SubflowEstablished { endpoints, local_id: 2, backup: false, .. } => Some(endpoints),
        _ => None,
    });
    assert_eq!((join.local.ip(), join.remote), (client_address(2), server_address()));
    let second = |connection: &ConnectionSample| connection.subflows.get(1).cloned();
    assert_eq!(scene.client_sees(|seen| second(seen).is_some()).subflows[1].endpoints, join);

    // Both ends learn that it is a backup, and that it is not.
    for backup in [true, false] {
        set_backup(&scene, token, join, backup);
        scene.client_sees(|seen| second(seen).is_some_and(|subflow| subflow.backup_local == backup));
        let server = scene.server_sees(|seen| second(seen).is_some_and(|subflow| subflow.backup_remote == backup));
        assert!(!server.subflows[0].backup_remote, "the first subflow is left alone");
    }

    assert_eq!(carry_out(&scene, Command::DestroySubflow { token, endpoints: join }), Outcome::Done);
    let closed = next(&heard, |event| match *event {
        Event::SubflowClosed { endpoints, .. } => Some(endpoints),
        _ => None,
    });
    assert_eq!(closed, join);
    scene.client_sees(|seen| seen.subflows.len() == 1);
}

fn an_address_is_announced_and_removed() {
    let scene = Scene::new(&paths(), PathManager::UserSpace);
    let (ours, theirs) = (events(&scene, false), events(&scene, true));
    let (_client, _server) = scene.connect();
    let (token, _) = next(&ours, established);
    let announce = Command::Announce { token, address: client_address(2), local_id: 5 };
    assert_eq!(carry_out(&scene, announce), Outcome::Done);
    let remote = next(&theirs, |event| match *event {
        Event::Announced { remote_id: 5, remote, .. } => Some(remote),
        _ => None,
    });
    assert_eq!(remote.ip(), client_address(2));
    assert_eq!(carry_out(&scene, Command::Remove { token, local_id: 5 }), Outcome::Done);
    next(&theirs, |event| matches!(event, Event::Removed { remote_id: 5, .. }).then_some(()));
}

fn the_address_of_the_first_subflow_is_removed_by_the_peer() {
    let scene = Scene::new(&paths(), PathManager::UserSpace);
    let ours = events(&scene, false);
    let (_client, _server) = scene.connect();
    let (token, _) = next(&ours, established);
    wait_for(|| match carry_out(&scene, create(token, false)) {
        Outcome::Done => Ok(()),
        refused => Err(format!("{refused:?}")),
    });
    let is_open = |subflow: &SubflowSample| subflow.state == TcpState::Established;
    scene.client_sees(|seen| seen.subflows.len() == 2 && seen.subflows.iter().all(is_open));
    assert_eq!(carry_out(&scene, Command::Remove { token, local_id: 0 }), Outcome::Done);
    // The peer closes the first subflow, whose identifier is 0.
    scene.server_sees(|seen| seen.subflows.iter().filter(|one| is_open(one)).all(|one| one.remote_id != 0));
}

fn the_kernels_connections_are_demoted_by_their_endpoint() {
    let scene = Scene::new(&paths(), PathManager::Kernel);
    let (_client, _server) = scene.connect();
    let is_open = |subflow: &SubflowSample| subflow.state == TcpState::Established;
    let seen = scene.client_sees(|seen| seen.subflows.len() == 2 && seen.subflows.iter().all(is_open));
    let (token, join) = (seen.token, seen.subflows[1].endpoints);
    assert_eq!(carry_out(&scene, create(token, false)), Outcome::Unsupported);
    scene.client(|| {
        let mut hands = Hands::new(open_path_manager().expect("the kernel has MPTCP"));
        assert_eq!(hands.carry_out(&Command::SetBackup { token, endpoints: join, backup: true }), Outcome::Done);
        assert_eq!(hands.demoted().iter().copied().collect::<Vec<_>>(), [client_address(2)]);
        scene.server_sees(|seen| seen.subflows.get(1).is_some_and(|subflow| subflow.backup_remote));
        assert!(hands.restore(|_| true).is_empty());
        assert_eq!(hands.restore(|_| false), [client_address(2)]);
        assert!(hands.demoted().is_empty());
        scene.server_sees(|seen| seen.subflows.get(1).is_some_and(|subflow| !subflow.backup_remote));
    });
}

fn a_queue_of_events_that_overflows_says_so() {
    let scene = Scene::new(&paths(), PathManager::UserSpace);
    let listener = scene.listen();
    let overrun = scene.client(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let path_manager = open_path_manager().expect("the kernel has MPTCP");
            let mut source = Events::with_queue(&path_manager, 4_096).expect("we may listen");
            for _ in 0..50 {
                drop(crate::scene::connect());
            }
            let mut heard = Vec::new();
            source.next(&mut heard).await.expect("events were sent");
            heard.contains(&Event::Overrun)
        })
    });
    drop(listener);
    assert!(overrun);
}

fn what_is_not_there_is_refused() {
    let scene = Scene::new(&paths(), PathManager::UserSpace);
    let nobody = Token(1);
    assert_eq!(carry_out(&scene, create(nobody, false)), Outcome::Refused(nix_errno("EINVAL")));
    let (_client, _server) = scene.connect();
    let seen = wait_for(|| {
        let seen = scene.client_sees(|_| true);
        if seen.subflows.len() == 1 { Ok(seen) } else { Err("no subflow".to_owned()) }
    });
    let mut endpoints = seen.subflows[0].endpoints;
    endpoints.local.set_port(1);
    let destroy = Command::DestroySubflow { token: seen.token, endpoints };
    assert_eq!(carry_out(&scene, destroy), Outcome::Refused(nix_errno("ESRCH")));
}

/// Numbers of errno(3) on Linux.
fn nix_errno(name: &str) -> i32 {
    if name == "ESRCH" { 3 } else { 22 }
}
