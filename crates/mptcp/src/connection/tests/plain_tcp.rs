//! A connection that is plain TCP, or falls back to it.

use super::*;

#[test]
fn the_first_data_without_a_mapping_is_a_fallback_only_before_our_own_mappings_went_out() {
    // RFC 8684, section 3.7: who has sent a DSS on this path knows that options pass, and so does who has had data with
    // a mapping, in order or not.
    let protocol = |dss_sent: bool, mapped: Option<u64>| {
        let mut connection = connected(config(), 1);
        connection.association.dss_sent = dss_sent;
        if let Some(data_seq) = mapped {
            connection.receiver.buffer.insert(Instant::ZERO, data_seq, Bytes::from_static(b"mapped"));
        }
        let handle = first(&connection);
        let next = connection.subflows[handle].receiver.next;
        connection.record_unmapped(Instant::ZERO, handle, next, Bytes::from_static(b"plain"));
        connection.association.protocol
    };
    assert_eq!(protocol(false, None), Protocol::Tcp);
    assert_eq!(protocol(true, None), Protocol::Multipath);
    assert_eq!(protocol(false, Some(0)), Protocol::Multipath);
    assert_eq!(protocol(false, Some(9)), Protocol::Multipath);
}

#[test]
fn only_a_segment_of_plain_tcp_shows_that_the_peer_knows_of_the_fallback() {
    let told = |dss: Option<Dss>, options: &[MptcpOption]| {
        let mut connection = connected(config(), 1);
        connection.association.protocol = Protocol::Tcp;
        connection.association.fallback.fail(5);
        let mut segment = Segment::default();
        segment.options.dss = dss;
        segment.options.mptcp.extend(options.iter().cloned());
        let handle = first(&connection);
        connection.watch_fallback(Instant::ZERO, handle, &segment);
        let again = connection.subflows[handle].control.contains(&MptcpOption::Fail { data_seq: 5 });
        (connection.association.fallback.unheard().is_none(), again)
    };
    let mapped = |length: u16| {
        let data_seq = DataSequence::Long(9);
        let mapping = Mapping { data_seq, subflow_seq: 1, length, checksum: None };
        Some(Dss { mapping: Some(mapping), ..Dss::default() })
    };
    let answer = MptcpOption::Fail { data_seq: 5 };
    assert_eq!(told(None, &[]), (true, false), "bare");
    assert_eq!(told(None, std::slice::from_ref(&answer)), (true, false), "its answer");
    assert_eq!(told(None, &[MptcpOption::Priority { backup: true }]), (false, false), "beside it a DSS has no room");
    assert_eq!(told(mapped(4), &[]), (false, true), "it goes on: it is told again");
    assert_eq!(told(Some(Dss::default()), &[]), (false, false), "a bare acknowledgement was perhaps sent before");
    assert_eq!(told(mapped(4), &[answer]), (true, false), "its answer, beside a mapping");
    assert_eq!(told(mapped(0), &[]), (true, false), "an infinite mapping");
}

#[test]
fn a_peer_that_has_acknowledged_at_data_level_has_not_lost_its_options_by_one_bare_segment() {
    // RFC 8684, section 3.7: fallback in silence is possible until then only.
    let is_lost = |acknowledged: u64| {
        let mut connection = connected(config(), 1);
        let handle = first(&connection);
        let initial = connection.subflows[handle].send.initial;
        connection.sender.window_edge = 50_000;
        write(&mut connection, 2_000);
        connection.subflows[handle].counters.bytes_acked = 1_000;
        connection.sender.buffer.acknowledge(acknowledged);
        let segment = Segment { ack: initial + 1_001, payload: Bytes::from_static(b"data"), ..Segment::default() };
        connection.lost_its_options(handle, &segment)
    };
    assert!(is_lost(0));
    assert!(!is_lost(1_000));
}

#[test]
fn a_reset_behind_the_end_of_both_streams_is_no_abortion() {
    // RFC 9293, section 3.10.7.4: in CLOSING, LAST-ACK and TIME-WAIT the connection is closed, in SYN-RECEIVED it was
    // refused.
    let cause = |state: State, unacknowledged: usize, both_ended: bool| {
        let mut connection = connected(config(), 1);
        connection.association.protocol = Protocol::Tcp;
        write(&mut connection, unacknowledged);
        if both_ended {
            connection.life.close_writing();
            connection.life.acknowledge_end();
            connection.receiver.buffer.set_end(0).unwrap();
        }
        let handle = first(&connection);
        connection.subflows[handle].state = state;
        connection.handle_reset(Instant::ZERO, handle, &Segment::default());
        connection.life.closed
    };
    assert_eq!(cause(State::Established, 0, true), Some(CloseCause::Finished));
    assert_eq!(cause(State::SynReceived, 0, false), Some(CloseCause::Refused));
    for (state, all_there, missing) in [
        (State::Closing, CloseCause::Finished, CloseCause::AbortedByPeer),
        (State::LastAck, CloseCause::Finished, CloseCause::AbortedByPeer),
        (State::TimeWait, CloseCause::Finished, CloseCause::Finished),
        (State::Established, CloseCause::AbortedByPeer, CloseCause::AbortedByPeer),
        (State::FinWait1, CloseCause::AbortedByPeer, CloseCause::AbortedByPeer),
        (State::FinWait2, CloseCause::AbortedByPeer, CloseCause::AbortedByPeer),
        (State::CloseWait, CloseCause::AbortedByPeer, CloseCause::AbortedByPeer),
    ] {
        assert_eq!(cause(state, 0, false), Some(all_there), "{state:?}");
        assert_eq!(cause(state, 9, false), Some(missing), "{state:?}");
    }
}

#[test]
fn no_subflow_is_added_to_plain_tcp_or_to_a_connection_that_ends() {
    let may = |change: fn(&mut Connection)| {
        let mut connection = connected(config(), 1);
        change(&mut connection);
        (connection.may_join(), connection.may_accept_join())
    };
    let our_end = |connection: &mut Connection| connection.life.acknowledge_end();
    let their_end = |connection: &mut Connection| assert!(connection.receiver.buffer.set_end(0).is_ok());
    assert_eq!(may(|_| {}), (true, true));
    assert_eq!([may(our_end), may(their_end)], [(true, true); 2], "the other stream goes on");
    assert_eq!(may(|connection| connection.association.confirmed = false), (false, true), "the peer knows itself");
    let ended: [fn(&mut Connection); 4] = [
        |connection| connection.association.protocol = Protocol::Tcp,
        |connection| connection.life.closed = Some(CloseCause::Finished),
        |connection| connection.life.verdict = Some(CloseCause::Finished),
        |connection| {
            connection.life.acknowledge_end();
            assert!(connection.receiver.buffer.set_end(0).is_ok());
        },
    ];
    assert_eq!(ended.map(may), [(false, false); 4]);
    let up_to = |max_subflows| {
        let connection = connected(ConnectionConfig { max_subflows, ..config() }, 2);
        (connection.may_join(), connection.may_accept_join())
    };
    assert_eq!([2, 3].map(up_to), [(false, false), (true, true)]);
}

/// Plain TCP of which as much is in flight, and queued, as `state` says of the congestion window, in segments as long as that
/// says: whether it sends more. The third number is what is queued.
fn sends_more(probe: bool, state: fn(u32) -> (u32, u32, u32)) -> bool {
    let mut connection = connected(config(), 1);
    connection.association.protocol = Protocol::Tcp;
    connection.sender.window_edge = 60_000;
    let handle = first(&connection);
    let (mss, in_flight, queued) = state(connection.congestion.window(SubflowId(0)) as u32);
    connection.subflows[handle].mss = mss;
    connection.subflows[handle].due.probe = probe;
    write(&mut connection, 60_000);
    if in_flight > 0 {
        put_new(&mut connection, handle, in_flight as usize);
        connection.subflows[handle].scoreboard.send_next(Instant::ZERO).unwrap();
    }
    if queued > 0 {
        put_new(&mut connection, handle, queued as usize);
    }
    connection.assign(Instant::ZERO, &mut Workspace::default())
}

#[test]
fn plain_tcp_sends_what_fits_the_congestion_window_and_a_segment_if_nothing_is_in_flight() {
    assert!(sends_more(false, |window| (window / 2, 0, 0)));
    assert!(
        sends_more(false, |window| (1_000, window - 1_000, 0))
            && sends_more(false, |window| (1_000, 0, window - 1_000))
    );
    assert!(
        !sends_more(false, |window| (1_000, window - 999, 0)) && !sends_more(false, |window| (1_000, 0, window - 999))
    );
    // A window smaller than a segment.
    assert!(sends_more(false, |window| (window + 1, 0, 0)) && !sends_more(false, |window| (window + 1, 1, 0)));
}

#[test]
fn a_loss_probe_of_plain_tcp_sends_new_data_beyond_the_congestion_window_if_none_is_queued() {
    assert!(sends_more(true, |window| (1_000, window, 0)) && !sends_more(false, |window| (1_000, window, 0)));
    assert!(!sends_more(true, |window| (1_000, window, 1)));
}
