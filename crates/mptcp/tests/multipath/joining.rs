//! Joins: MP_JOIN and its authentication (RFC 8684, section 3.2).

use super::orders::{Obedient, Orders, create, established, obedient_pair};
use super::peer::{Peer, SYN_ACK, capable, options, reset_reason};
use crate::pair::{Fate, Pair, address, config, pattern};
use anabranch_mptcp::{Event, FallbackCause};
use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::path_manager::{self, CloseReason, PathAction};
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::Duration;
use anabranch_policy::view::SubflowState;
use anabranch_wire::mptcp::{CapableKeys, Dss};
use anabranch_wire::tcp::{TcpOptions, Timestamps};
use anabranch_wire::{Flags, IcmpError, MptcpOption, Packet, SeqNumber, Trouble, Unreachable};
use std::net::SocketAddr;

/// A pair that has exchanged data, so that joins may start.
fn warm_pair(paths: usize) -> (Pair, [Orders; 2], ConnectionId, ConnectionId) {
    let (mut pair, orders) = obedient_pair(paths);
    let id = pair.connect(config(), config());
    pair.write_all(0, id, b"hello", Duration::ZERO);
    pair.run(Duration::from_millis(100));
    let server = pair.accepted().unwrap();
    pair.write_all(1, server, b"hello", Duration::ZERO);
    pair.run(Duration::from_millis(100));
    pair.received = [Vec::new(), Vec::new()];
    pair.sent = [Vec::new(), Vec::new()];
    (pair, orders, id, server)
}

fn join_of(packet: &Packet) -> Option<&MptcpOption> {
    packet.segment.options.mptcp.iter().find(|option| {
        matches!(option, MptcpOption::JoinSyn { .. } | MptcpOption::JoinSynAck { .. } | MptcpOption::JoinAck { .. })
    })
}

#[test]
fn a_join_whose_syn_does_not_reach_the_peer_is_dropped_with_that_reason_and_tried_again_by_the_full_mesh() {
    for what in [Unreachable::Network, Unreachable::Host, Unreachable::Port] {
        let full_mesh = table::build(path_manager::TABLE, "full_mesh", &Settings::new()).unwrap();
        // A server that announces nothing.
        let mut pair = Pair::with_managers(2, [full_mesh, Box::new(Obedient(Orders::default()))]);
        pair.judge = Box::new(|_, _, packet| match join_of(packet) {
            Some(_) => Fate::Drop,
            None => Fate::Deliver,
        });
        let id = pair.connect(config(), config());
        pair.write_all(0, id, b"hello", Duration::ZERO);
        pair.run(Duration::from_millis(100));
        let joins = |pair: &Pair| -> Vec<Packet> {
            pair.sent[0].iter().map(|(_, packet)| packet.clone()).filter(|packet| join_of(packet).is_some()).collect()
        };
        let [syn] = joins(&pair).try_into().expect("one join");
        let error = IcmpError {
            source: SocketAddr::new(syn.ip.source, syn.segment.source_port),
            destination: SocketAddr::new(syn.ip.destination, syn.segment.destination_port),
            seq: syn.segment.seq,
            trouble: Trouble::Unreachable(what),
        };
        let other = IcmpError { seq: error.seq + 1, ..error };
        assert!(!pair.hosts[0].handle_icmp_error(pair.now, &other));
        assert!(pair.hosts[0].handle_icmp_error(pair.now, &error));
        pair.settle();
        assert!(pair.events[0].contains(&Event::SubflowClosed(id, SubflowId(1), CloseReason::Unreachable)));
        assert_eq!((pair.hosts[0].subflow_views(pair.now, id).len(), joins(&pair).len()), (1, 1));
        pair.judge = Box::new(|_, _, _| Fate::Deliver);
        // A second later, from another port.
        pair.run(Duration::from_millis(1_050));
        assert_eq!(established(&pair, 0), 2, "{what:?}");
        assert_ne!(joins(&pair)[1].segment.source_port, syn.segment.source_port);
    }
}

/// A peer whose connection has exchanged data.
fn warm_peer() -> Peer {
    let mut peer = Peer::connected(config());
    peer.send_data(0, 0, b"hello");
    peer.take();
    peer.received.clear();
    peer
}

#[test]
fn a_join_is_syn_syn_ack_ack_with_proofs_and_a_fourth_segment() {
    let (mut pair, orders, id, _) = warm_pair(2);
    orders[0].give(&mut pair, 0, create(id, 2, 0, false));
    pair.run(Duration::from_millis(100));
    let ours: Vec<&Packet> = pair.sent[0].iter().map(|(_, packet)| packet).collect();
    let theirs: Vec<&Packet> = pair.sent[1].iter().map(|(_, packet)| packet).collect();
    assert_eq!((ours.len(), theirs.len()), (2, 2));
    assert!(matches!(join_of(ours[0]), Some(MptcpOption::JoinSyn { backup: false, address_id: 2, .. })));
    assert!(matches!(join_of(theirs[0]), Some(MptcpOption::JoinSynAck { address_id: 0, .. })));
    assert!(matches!(join_of(ours[1]), Some(MptcpOption::JoinAck { .. })));
    assert_eq!((theirs[1].segment.flags, join_of(theirs[1])), (Flags::ACK, None));
    assert_eq!((established(&pair, 0), established(&pair, 1)), (2, 2));
    let view = &pair.hosts[0].subflow_views(pair.now, id)[1];
    assert_eq!((view.local_address, view.remote_address), (AddressId(2), AddressId(0)));
}

#[test]
fn the_fourth_segment_goes_by_itself_before_the_data_that_waits() {
    let mut peer = warm_peer();
    // More than the first subflow's window.
    peer.write(&pattern(100_000));
    peer.take();
    let flow = peer.join(1);
    let port = 41_001;
    let on_the_second = peer.take().into_iter().filter(|packet| packet.segment.destination_port == port);
    let [fourth, first, ..] = &on_the_second.collect::<Vec<_>>()[..] else { panic!("data waits for {flow}") };
    assert!(
        fourth.segment.payload.is_empty()
            && fourth.segment.options.dss.as_ref().is_some_and(|dss| dss.data_ack.is_some())
    );
    assert_eq!((fourth.segment.flags, fourth.segment.seq), (Flags::ACK, first.segment.seq));
    assert!(!first.segment.payload.is_empty());
}

/// Linux resets a join on which anything arrives before the first byte, for example because of reordering after the
/// fourth segment.
#[test]
fn a_join_that_came_in_carries_one_segment_until_the_peer_has_acknowledged_it() {
    let mut peer = warm_peer();
    peer.write(&pattern(100_000));
    peer.take();
    let (flow, nonce) = peer.begin_join(1, false);
    let hmac = peer.keys.sign_join_ack(77, nonce);
    peer.send(flow, Flags::ACK, options(vec![MptcpOption::JoinAck { hmac }]), &[]);
    let data = |packet: &Packet| packet.segment.destination_port == 41_001 && !packet.segment.payload.is_empty();
    let mut said = peer.take();
    said.retain(data);
    assert_eq!(said.len(), 1);
    peer.run(Duration::from_millis(100));
    assert!(!peer.take().iter().any(data));
    // The proof again: the fourth segment was lost or delayed. Its answer also precedes the data.
    let arrived = std::mem::replace(&mut peer.flows[flow].ack, 1);
    let hmac = peer.keys.sign_join_ack(77, nonce);
    peer.send(flow, Flags::ACK, options(vec![MptcpOption::JoinAck { hmac }]), &[]);
    let answers = peer.take().into_iter().filter(|packet| packet.segment.destination_port == 41_001);
    let places: Vec<_> = answers.map(|packet| (packet.segment.seq, packet.segment.payload.len())).collect();
    assert_eq!(places, [(said[0].segment.seq, 0)]);
    peer.flows[flow].ack = arrived;
    peer.signal(flow, data_ack(&peer, said[0].segment.payload.len() as u64));
    assert!(peer.take().into_iter().filter(data).count() >= 10, "the initial window is open");
}

fn data_ack(peer: &Peer, offset: u64) -> Dss {
    Dss { data_ack: Some(peer.data_ack(offset)), ..Dss::default() }
}

#[test]
fn the_first_data_of_a_join_is_acknowledged_at_once() {
    let (mut pair, orders, id, server) = warm_pair(2);
    orders[0].give(&mut pair, 0, create(id, 2, 0, false));
    pair.run(Duration::from_millis(100));
    pair.sent = [Vec::new(), Vec::new()];
    pair.write_all(1, server, &pattern(100_000), Duration::ZERO);
    pair.run(Duration::from_millis(100));
    let data = |packet: &Packet| packet.ip.destination == address(0, 1) && !packet.segment.payload.is_empty();
    let (sent, first) = pair.sent[1].iter().find(|(_, packet)| data(packet)).expect("the first path is full");
    let end = first.segment.seq + first.segment.payload.len() as u32;
    let answers = |packet: &Packet| packet.ip.source == address(0, 1) && packet.segment.ack == end;
    let (answered, _) = pair.sent[0].iter().find(|(_, packet)| answers(packet)).expect("it is acknowledged by itself");
    assert_eq!(answered.since(*sent), pair.delay[1]);
}

#[test]
fn nothing_is_sent_on_a_joined_subflow_before_the_fourth_segment() {
    let (mut pair, orders, id, _) = warm_pair(2);
    pair.judge = Box::new(|from, _, packet| {
        // The server's packets on the new path are lost, except SYN/ACKs.
        let new = packet.ip.destination == address(0, 1);
        if from == 1 && new && packet.segment.flags != SYN_ACK { Fate::Drop } else { Fate::Deliver }
    });
    orders[0].give(&mut pair, 0, create(id, 2, 0, false));
    pair.run(Duration::from_millis(100));
    assert_eq!(pair.write_all(0, id, &pattern(100_000), Duration::from_secs(1)), 0);
    pair.run(Duration::from_secs(3));
    assert_eq!(pair.received[1], pattern(100_000));
    let on_new = |packet: &&Packet| packet.ip.source == address(0, 1);
    let new: Vec<&Packet> = pair.sent[0].iter().map(|(_, packet)| packet).filter(on_new).collect();
    assert!(new.iter().all(|packet| packet.segment.payload.is_empty()));
    let proofs = new.iter().filter(|packet| matches!(join_of(packet), Some(MptcpOption::JoinAck { .. }))).count();
    assert!(proofs >= 3, "the proof is sent again until it is answered: {proofs}");
    assert_eq!(established(&pair, 0), 1);
}

#[test]
fn any_one_segment_of_a_join_may_be_lost() {
    for (host, nth) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let (mut pair, orders, id, server) = warm_pair(2);
        let mut seen = 0;
        pair.judge = Box::new(move |from, _, _| {
            seen += usize::from(from == host);
            if from == host && seen == nth + 1 { Fate::Drop } else { Fate::Deliver }
        });
        orders[0].give(&mut pair, 0, create(id, 2, 0, false));
        pair.run(Duration::from_secs(4));
        for (side, id) in [(0, id), (1, server)] {
            let views = pair.hosts[side].subflow_views(pair.now, id);
            let states: Vec<_> = views.iter().map(|view| view.state).collect();
            assert_eq!(states, [SubflowState::Established; 2], "packet {nth} of host {host} lost");
        }
    }
}

#[test]
fn a_syn_ack_again_is_answered_with_the_proof_again() {
    let (mut pair, orders, id, _) = warm_pair(2);
    orders[0].give(&mut pair, 0, create(id, 2, 0, false));
    let mut first = None;
    pair.judge = Box::new(move |from, _, packet| match join_of(packet) {
        Some(MptcpOption::JoinAck { .. }) if first.is_none() => {
            first = Some(());
            Fate::Drop
        }
        Some(MptcpOption::JoinSynAck { .. }) if from == 1 => Fate::Twice,
        _ => Fate::Deliver,
    });
    pair.run(Duration::from_millis(60));
    assert_eq!((established(&pair, 0), established(&pair, 1)), (2, 2));
}

#[test]
fn the_server_may_open_a_subflow_too() {
    let (mut pair, orders, id, server) = warm_pair(2);
    orders[1].give(&mut pair, 1, create(server, 2, 0, false));
    pair.run(Duration::from_millis(100));
    assert_eq!((established(&pair, 0), established(&pair, 1)), (2, 2));
    let syn = &pair.sent[1][0].1;
    assert_eq!((syn.ip.source, syn.ip.destination), (address(1, 1), address(0, 0)));
    pair.write_all(0, id, &pattern(200_000), Duration::from_secs(5));
    pair.run(Duration::from_secs(1));
    assert!(pair.hosts[0].subflow_views(pair.now, id).iter().all(|view| view.counters.bytes_acked > 10_000));
}

#[test]
fn a_wrong_proof_in_the_third_segment_is_reset_with_a_reason() {
    let mut peer = warm_peer();
    let (flow, nonce) = peer.begin_join(1, false);
    let mut hmac = peer.keys.sign_join_ack(77, nonce);
    hmac[19] ^= 1;
    peer.send(flow, Flags::ACK, options(vec![MptcpOption::JoinAck { hmac }]), &[]);
    assert_eq!(peer.take().iter().map(reset_reason).collect::<Vec<_>>(), [Some(1)]);
    assert_eq!(peer.host.subflow_views(peer.now, peer.id()).len(), 1);
}

#[test]
fn a_third_segment_without_a_proof_is_reset_with_a_reason() {
    let mut peer = warm_peer();
    let (flow, _) = peer.begin_join(1, false);
    peer.send(flow, Flags::ACK, TcpOptions::default(), &[]);
    assert_eq!(peer.take().iter().map(reset_reason).collect::<Vec<_>>(), [Some(1)]);
}

#[test]
fn an_unknown_token_is_refused_with_a_reason() {
    let mut peer = warm_peer();
    let token = peer.remote.token ^ 1;
    peer.syn(1, 41_000, vec![MptcpOption::JoinSyn { backup: false, address_id: 1, token, nonce: 7 }]);
    assert_eq!(peer.take().iter().map(reset_reason).collect::<Vec<_>>(), [Some(1)]);
    assert_eq!(peer.host.counters().refused_joins, 1);
}

/// The client's reaction to a changed answer to its join.
fn with_changed_syn_ack(change: fn(&mut MptcpOption) -> bool) -> (Pair, ConnectionId) {
    let (mut pair, orders, id, _) = warm_pair(2);
    pair.judge = Box::new(move |_, _, packet| {
        let mut packet = packet.clone();
        if packet.segment.flags == SYN_ACK {
            packet.segment.options.mptcp.retain_mut(change);
        }
        Fate::Instead(Box::new(packet))
    });
    orders[0].give(&mut pair, 0, create(id, 2, 0, false));
    pair.run(Duration::from_millis(100));
    (pair, id)
}

#[test]
fn a_syn_ack_with_a_wrong_proof_or_none_is_reset_with_a_reason() {
    let wrong = |option: &mut MptcpOption| {
        if let MptcpOption::JoinSynAck { truncated_hmac, .. } = option {
            *truncated_hmac ^= 1;
        }
        true
    };
    for change in [wrong as fn(&mut MptcpOption) -> bool, |_| false] {
        let (pair, id) = with_changed_syn_ack(change);
        let last = &pair.sent[0].last().unwrap().1;
        assert_eq!(reset_reason(last), Some(1));
        assert!(pair.events[0].contains(&Event::SubflowClosed(id, SubflowId(1), CloseReason::ProtocolError)));
        assert_eq!(established(&pair, 0), 1);
    }
}

/// The endpoint opened the connection, has begun a join to the peer's initial address, and its SYN is known; the join is
/// flow 1.
fn joining_client() -> Peer {
    let (mut peer, connection) = Peer::connecting(config());
    peer.send_data(0, 0, b"x");
    peer.take();
    peer.orders.clone().give_to(&mut peer.host, peer.now, create(connection, 2, 0, false));
    peer.settle();
    let syn = peer.take().pop().unwrap();
    peer.meet(&syn);
    peer
}

// RFC 9293, section 3.10.7.3: the peer heeds a reset that acknowledges its SYN; Linux drops one with another number in
// SYN-RECEIVED.
#[test]
fn the_reset_of_a_join_acknowledges_the_syn_that_answered_it() {
    let wrong = MptcpOption::JoinSynAck { backup: false, address_id: 0, truncated_hmac: 1, nonce: 3 };
    for (flags, options_of_answer) in [(SYN_ACK, vec![]), (SYN_ACK, vec![wrong]), (Flags::SYN, vec![])] {
        let mut peer = joining_client();
        peer.send(1, flags, options(options_of_answer), &[]);
        let [reset] = &peer.take()[..] else { panic!("one answer") };
        let flow = peer.flows[1];
        assert_eq!(reset.segment.flags, Flags::RST | Flags::ACK);
        assert_eq!((reset.segment.seq, reset.segment.ack), (flow.host_initial + 1, flow.peer_initial + 1));
        assert_eq!(reset_reason(reset), Some(1));
    }
}

// The same, section 3.5.3: nothing came that a reset could acknowledge.
#[test]
fn the_reset_of_a_join_that_nobody_has_answered_acknowledges_nothing() {
    let mut peer = joining_client();
    peer.send(0, Flags::ACK, options(vec![MptcpOption::RemoveAddress { address_ids: vec![0] }]), &[]);
    let resets: Vec<Packet> = peer.take().into_iter().filter(|p| p.segment.flags.contains(Flags::RST)).collect();
    let [reset] = &resets[..] else { panic!("one reset") };
    assert_eq!((reset.segment.flags, reset.segment.ack), (Flags::RST, SeqNumber(0)));
    assert_eq!(reset.segment.seq, peer.flows[1].host_initial + 1);
}

// RFC 8684, section 3.6: T says that a new attempt may succeed.
#[test]
fn a_join_that_is_refused_for_a_transient_condition_may_be_tried_again() {
    let (again, never) = (CloseReason::Reset, CloseReason::ProtocolError);
    for (transient, reason) in [(None, never), (Some(false), never), (Some(true), again)] {
        let mut peer = joining_client();
        let mptcp = transient.map(|transient| MptcpOption::TcpReset { transient, flags: 0, reason: 2 });
        peer.send(1, Flags::RST | Flags::ACK, options(mptcp.into_iter().collect()), &[]);
        let closed = |event: &Event| matches!(event, Event::SubflowClosed(_, SubflowId(1), why) if *why == reason);
        assert!(peer.events.iter().any(closed), "{transient:?}");
    }
}

#[test]
fn the_ninth_subflow_is_the_last_on_both_sides() {
    let (mut pair, orders, id, server) = warm_pair(10);
    for local in 2..=10 {
        orders[0].give(&mut pair, 0, create(id, local, 0, false));
        pair.run(Duration::from_millis(100));
    }
    assert_eq!(pair.hosts[0].subflow_views(pair.now, id).len(), 9);
    assert_eq!(pair.hosts[0].counters().impossible_actions, 1);
    orders[1].give(&mut pair, 1, create(server, 2, 0, false));
    assert_eq!(pair.hosts[1].counters().impossible_actions, 1);
}

#[test]
fn a_join_beyond_the_limit_is_refused_as_prohibited() {
    let mut two = config();
    two.max_subflows = 2;
    let mut peer = Peer::connected(two);
    peer.send_data(0, 0, b"x");
    peer.join(1);
    peer.take();
    let token = peer.remote.token;
    let stamps = Some(Timestamps { value: 1, echo: 0 });
    peer.stamps = Some(TcpOptions { timestamps: stamps, ..TcpOptions::default() });
    peer.syn(2, 41_002, vec![MptcpOption::JoinSyn { backup: false, address_id: 2, token, nonce: 7 }]);
    let [reset] = &peer.take()[..] else { panic!("one answer") };
    assert_eq!(reset_reason(reset), Some(3));
    // MP_TCPRST alone, as from Linux.
    assert_eq!((reset.segment.window, reset.segment.options.timestamps), (0, None));
    assert_eq!(reset.segment.options.mptcp.len(), 1);
}

#[test]
fn a_server_that_answers_with_flag_b_is_heeded() {
    let (mut pair, orders, id, _) = warm_pair(2);
    pair.judge = Box::new(|_, _, packet| {
        let mut packet = packet.clone();
        for option in &mut packet.segment.options.mptcp {
            if let MptcpOption::JoinSynAck { backup, .. } = option {
                *backup = true; // its proof does not cover the flag
                return Fate::Instead(Box::new(packet));
            }
        }
        Fate::Deliver
    });
    orders[0].give(&mut pair, 0, create(id, 2, 0, false));
    pair.run(Duration::from_millis(100));
    assert_eq!(established(&pair, 0), 2);
    pair.write_all(0, id, &pattern(100_000), Duration::from_secs(5));
    let views = pair.hosts[0].subflow_views(pair.now, id);
    assert!(views[1].backup && views[1].counters.bytes_sent == 0 && views[0].counters.bytes_sent > 0);
}

#[test]
fn a_backup_is_not_used_until_no_other_subflow_is_left_and_both_sides_know_it() {
    for opener in [0, 1] {
        let (mut pair, orders, id, server) = warm_pair(2);
        let action = create([id, server][opener], 2, 0, true);
        orders[opener].give(&mut pair, opener, action);
        pair.run(Duration::from_millis(100));
        for (host, id) in [(0, id), (1, server)] {
            let before = pair.received[1 - host].len();
            pair.write_all(host, id, &pattern(100_000), Duration::from_secs(5));
            pair.run(Duration::from_secs(1));
            assert_eq!(pair.received[1 - host].len() - before, 100_000);
            let views = pair.hosts[host].subflow_views(pair.now, id);
            assert!(views[1].backup && views[1].counters.bytes_sent == 0, "host {host}, opened by {opener}");
        }
        pair.hosts[0].handle_address_down(pair.now, AddressId(1));
        pair.settle();
        let before = pair.received[1].len();
        if opener == 0 {
            pair.write_all(0, id, &pattern(50_000), Duration::from_secs(5));
            pair.run(Duration::from_secs(3));
            assert_eq!(pair.received[1].len() - before, 50_000, "the backup takes over");
        }
    }
}

#[test]
fn mp_prio_changes_both_ways_and_is_obeyed() {
    let (mut pair, orders, id, server) = warm_pair(2);
    orders[0].give(&mut pair, 0, create(id, 2, 0, false));
    pair.run(Duration::from_millis(100));
    for (backup, asker) in [(true, 0), (false, 0), (true, 1), (false, 1)] {
        let connection = [id, server][asker];
        orders[asker].give(&mut pair, asker, PathAction::SetBackup { connection, subflow: SubflowId(1), backup });
        pair.run(Duration::from_millis(100));
        let other = 1 - asker;
        assert!(orders[other].heard().contains(&super::orders::Heard::Priority(SubflowId(1), backup)));
        let before = pair.hosts[other].subflow_views(pair.now, [id, server][other])[1].counters.bytes_sent;
        pair.write_all(other, [id, server][other], &pattern(150_000), Duration::from_secs(5));
        pair.run(Duration::from_secs(2));
        let after = pair.hosts[other].subflow_views(pair.now, [id, server][other])[1].counters.bytes_sent;
        assert_eq!(after == before, backup, "backup {backup} asked by {asker}");
    }
}

#[test]
fn a_join_of_a_connection_that_fell_back_is_refused() {
    let mut peer = Peer::new(config());
    peer.open(vec![capable(CapableKeys::None)]);
    peer.send(0, Flags::ACK, TcpOptions::default(), &[]);
    assert!(peer.events.contains(&Event::FellBack(peer.id(), FallbackCause::OptionsStripped)));
    peer.take();
    let token = peer.remote.token;
    peer.syn(1, 41_001, vec![MptcpOption::JoinSyn { backup: false, address_id: 1, token, nonce: 7 }]);
    assert_eq!(peer.take().iter().map(reset_reason).collect::<Vec<_>>(), [Some(3)]);
}
