//! A client and a server of datagrams with a network between them that the input drives: it loses, repeats, swaps, changes and makes
//! up datagrams, moves the client and lets time pass. Nothing panics, nothing is passed on twice or that was not sent, and the server
//! answers who has not proven the key with no more than it got.

#![no_main]

use anabranch_datagram::session::{ClientSession, ServerSessions, Whereabouts};
use anabranch_datagram::{Datagram, Kind};
use anabranch_policy::datagram::TABLE;
use anabranch_policy::table::Settings;
use anabranch_policy::time::{Duration, Instant};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

const KEY: [u8; 32] = [7; 32];
const CLIENT: u64 = 99;

fn whereabouts(number: u8) -> Whereabouts {
    Whereabouts { client: SocketAddr::new([10, 0, 0, number].into(), 4_000), ours: None }
}

/// What a datagram carries behind its number: one of three is so large that it goes in pieces.
fn length(number: u32) -> usize {
    if number % 3 == 2 { number as usize * 97 % 9_000 } else { 0 }
}

struct World {
    now: Instant,
    client: ClientSession,
    server: ServerSessions,
    /// To the server or not, path, bytes.
    way: Vec<(bool, u8, Vec<u8>)>,
    sent: u32,
    passed: BTreeSet<u32>,
    place: u8,
}

impl World {
    fn collect(&mut self) {
        for path in 0..3 {
            let Some(outbox) = self.client.outbox(path) else { continue };
            outbox.drain(1, |batch| self.way.push((true, path, batch.bytes.to_vec())));
        }
        self.server.outbox().drain(1, |batch| self.way.push((false, 0, batch.bytes.to_vec())));
        let up = core::iter::from_fn(|| self.server.poll_datagram()).map(|(client, datagram)| {
            assert_eq!(client, CLIENT);
            datagram
        });
        let down = core::iter::from_fn(|| self.client.poll_datagram());
        for datagram in up.chain(down) {
            let number =
                datagram.payload.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)).expect("it is one of ours");
            assert!(number < self.sent, "it was sent");
            assert_eq!(datagram.payload.len(), 4 + length(number), "it is whole");
            assert!(self.passed.insert(number), "it was not passed on before");
        }
        // No queue is longer.
        self.way.truncate(512);
    }

    fn datagram(&mut self) -> Datagram {
        self.sent += 1;
        let number = self.sent - 1;
        let payload = Bytes::from([&number.to_be_bytes()[..], &vec![5; length(number)]].concat());
        let address = SocketAddr::new([192, 0, 2, 1].into(), 53);
        Datagram { kind: Kind::Udp, inside: address, outside: address, payload }
    }

    fn deliver(&mut self, (up, path, mut bytes): (bool, u8, Vec<u8>)) {
        if up {
            self.server.handle_datagram(self.now, whereabouts(self.place), &mut bytes);
        } else {
            // The server's answer to a path is known by its header.
            let path = bytes.get(1).copied().filter(|_| bytes[0] == 0x12).unwrap_or(path);
            self.client.handle_datagram(self.now, path, &mut bytes);
        }
    }

    fn step(&mut self, what: u8, value: u8) {
        let index = usize::from(value) % self.way.len().max(1);
        match what % 12 {
            0 | 1 if !self.way.is_empty() => {
                let entry = self.way.remove(0);
                self.deliver(entry);
            }
            2 if !self.way.is_empty() => {
                let entry = self.way.remove(index);
                self.deliver(entry);
            }
            3 if !self.way.is_empty() => {
                let entry = self.way[index].clone();
                self.deliver(entry);
            }
            4 if !self.way.is_empty() => drop(self.way.remove(index)),
            5 if !self.way.is_empty() => {
                let (up, path, mut bytes) = self.way[index].clone();
                let at = usize::from(value) * 7 % bytes.len();
                bytes[at] ^= 1 << (value % 8);
                self.deliver((up, path, bytes));
            }
            6 => {
                let datagram = self.datagram();
                self.client.send(self.now, &datagram);
            }
            7 => {
                let datagram = self.datagram();
                self.server.send(self.now, CLIENT, &datagram);
            }
            8 => self.now += Duration::from_millis(u64::from(value) * 20),
            9 => self.place = value % 4,
            10 => self.client.close_path(value % 3, self.now),
            11 => self.client.open_path(value % 3, self.now),
            _ => {}
        }
        if self.client.poll_timeout() <= self.now {
            self.client.handle_timeout(self.now);
        }
        if self.server.poll_timeout() <= self.now {
            self.server.handle_timeout(self.now);
        }
        while let Some(client) = self.server.poll_gone() {
            assert_eq!(client, CLIENT);
        }
        self.collect();
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, steps)) = data.split_first() else { return };
    let make = move |choice: u8| {
        let member = &TABLE[usize::from(choice) % TABLE.len()];
        Settings::new().read(member.build).expect("its defaults are good")
    };
    let now = Instant::ZERO + Duration::from_secs(1);
    let mut client = ClientSession::new(KEY, CLIENT, make(choice), now);
    (0..3).for_each(|path| client.open_path(path, now));
    let mut drawn = 0;
    let draw = move || {
        drawn += 1;
        drawn
    };
    let server = ServerSessions::new(vec![KEY.into()], Arc::new(move || make(choice / 16)), 2, draw);
    let (way, passed) = (Vec::new(), BTreeSet::new());
    let mut world = World { now, client, server, way, sent: 0, passed, place: 0 };
    for pair in steps.chunks_exact(2).take(2_000) {
        world.step(pair[0], pair[1]);
    }
});
