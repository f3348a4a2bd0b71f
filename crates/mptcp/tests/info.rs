//! `Endpoint::info` for a connection with several subflows, and for one that fell back.

mod pair;

use anabranch_mptcp::Protocol;
use anabranch_mptcp::TcpState as State;
use anabranch_policy::path_manager::Role;
use anabranch_policy::time::Duration;
use pair::{Pair, config, pattern};

#[test]
fn subflows_add_up_to_their_connection() {
    let mut pair = Pair::new(2);
    let id = pair.connect(config(), config());
    let length = 500_000;
    assert_eq!(pair.write_all(0, id, &pattern(length), Duration::from_secs(60)), 0);
    pair.run(Duration::from_secs(1));
    let server = pair.accepted().expect("it is open");
    let [ours, theirs] =
        [(0, id), (1, server)].map(|(host, id): (usize, _)| pair.hosts[host].info(pair.now, id).unwrap());
    assert_eq!((ours.role, theirs.role), (Role::Client, Role::Server));
    for info in [&ours, &theirs] {
        assert_eq!((info.protocol, info.fell_back, info.csum_enabled), (Protocol::Multipath, false, false));
        assert!(info.subflows.len() >= 2 && info.subflows.iter().all(|subflow| subflow.state == State::Established));
    }
    assert!(ours.token.is_some() && ours.token != theirs.token);
    let length = length as u64;
    assert_eq!((ours.write_seq, ours.snd_una, ours.snd_nxt, ours.bytes_acked), (length, length, length, length));
    assert_eq!((theirs.rcv_nxt, theirs.bytes_received), (length, length));
    let acked: u64 = ours.subflows.iter().map(|subflow| subflow.bytes.acked).sum();
    let received: u64 = theirs.subflows.iter().map(|subflow| subflow.bytes.received).sum();
    assert_eq!((acked, received), (length + ours.bytes_reinjected + ours.bytes_duplicated, length));
    assert!(
        ours.subflows.iter().all(
            |subflow| subflow.round_trip.rtt >= subflow.round_trip.min_rtt && !subflow.round_trip.min_rtt.is_zero()
        )
    );
    let syns = theirs.subflows.len() as u64;
    assert_eq!(theirs.segs_in + syns, ours.segs_out);
}

#[test]
fn a_fallback_shows_and_plain_tcp_by_choice_is_none() {
    for (client, server) in [(true, false), (false, true), (false, false)] {
        let mut pair = Pair::new(1);
        let plain = |multipath| {
            let mut config = config();
            config.multipath = multipath;
            config
        };
        let id = pair.connect(plain(client), plain(server));
        pair.run(Duration::from_secs(1));
        let info = pair.hosts[0].info(pair.now, id).unwrap();
        assert_eq!((info.protocol, info.fell_back, info.token), (Protocol::Tcp, client, None));
    }
}
