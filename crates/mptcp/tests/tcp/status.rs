//! The status of a connection (RFC 9293, section 3.10.6: STATUS; `Endpoint::info`).

use crate::transcript::{Transcript, plain, plain_with};
use anabranch_mptcp::Protocol;
use anabranch_mptcp::TcpState as State;
use anabranch_mptcp::{ConnectionInfo, OptionsInfo};
use anabranch_policy::time::Duration;

fn info(t: &Transcript) -> ConnectionInfo {
    t.host.info(t.now, t.id()).expect("it is there")
}

// After a handshake with a round trip of 100 ms: by RFC 6298, section 2.2, the variation is half of that, and the
// timeout adds four times the variation.
#[test]
fn what_can_be_asked_follows_from_what_was_said() {
    let mut t = Transcript::accepted(plain());
    let (millis, opened) = (Duration::from_millis, info(&t));
    assert_eq!((opened.protocol, opened.fell_back, opened.token), (Protocol::Tcp, false, None));
    assert_eq!((opened.write_seq, opened.rcv_nxt, opened.snd_wnd, opened.rcv_wnd), (0, 0, 65_535, 50_000));
    let [subflow] = opened.subflows.as_slice() else { panic!("one") };
    assert_eq!(
        (subflow.state, subflow.identity.local, subflow.identity.remote),
        (State::Established, t.local, t.remote)
    );
    assert_eq!(
        (subflow.round_trip.rtt, subflow.round_trip.rttvar, subflow.round_trip.min_rtt, subflow.round_trip.rto),
        (millis(100), millis(50), millis(100), millis(300))
    );
    assert_eq!((subflow.snd_mss, subflow.snd_cwnd, subflow.snd_ssthresh), (1_000, 10_000, None));
    assert_eq!((subflow.last.data_sent, subflow.last.recv), (None, Duration::ZERO));
    // Three segments in flight, the first acknowledged with another window, and a segment of the peer after a hole.
    t.write(3_000);
    t.expect_segments(1, 3, 1);
    t.wait(100);
    t.peer("A 1001:2001 ack 1001 win 5000");
    t.expect("A 3001:3001 ack 1 sack 1001-2001");
    let half = info(&t);
    assert_eq!((half.write_seq, half.snd_nxt, half.snd_una, half.snd_wnd), (3_000, 3_000, 1_000, 5_000));
    assert_eq!((half.bytes_sent, half.bytes_acked, half.bytes_received, half.out_of_order), (3_000, 1_000, 0, 1_000));
    let subflow = &half.subflows[0];
    assert_eq!((subflow.in_flight, subflow.bytes.acked, subflow.snd_wnd, subflow.has_gap), (2_000, 1_000, 5_000, true));
    assert_eq!((subflow.last.data_sent, subflow.last.progress), (Some(millis(100)), Duration::ZERO));
    // The hole is filled; the rest of ours is unacknowledged until the timeout.
    t.wait(20);
    t.peer("A 1:1001 ack 1001 win 5000");
    t.expect("A 3001:3001 ack 2001");
    t.wait(1_000);
    t.take();
    let late = info(&t);
    assert_eq!((late.rcv_nxt, late.readable, late.out_of_order, late.bytes_received), (2_000, 2_000, 0, 2_000));
    let subflow = &late.subflows[0];
    assert!(!subflow.has_gap && subflow.stale && subflow.retransmits > 0);
    assert_eq!((u64::from(subflow.total_rto), subflow.bytes.retrans), (late.total_rto, late.bytes_retrans));
    assert!(subflow.bytes.retrans >= 2_000 && subflow.snd_cwnd == 1_000 && subflow.snd_ssthresh.is_some());
    assert_eq!(subflow.last.recv, millis(1_000));
    t.close();
    assert_eq!(info(&t).subflows[0].state, State::FinWait1);
    t.abort();
    t.take();
    assert!(t.host.info(t.now, t.id()).is_none());
}

#[test]
fn who_has_filled_half_of_the_send_buffer_and_goes_on_is_ahead_of_it() {
    let mut t = Transcript::accepted(plain_with(|c| c.send_buffer = 40_000));
    let backlogged = |t: &Transcript| t.host.connection_view(t.now, t.id()).unwrap().backlogged;
    assert!(!backlogged(&t));
    // Ten segments are sent.
    t.write(30_000);
    assert!(!backlogged(&t), "20 000 are half of it");
    t.write(1_000);
    assert!(backlogged(&t));
    t.close();
    assert!(!backlogged(&t), "nothing more comes");
    t.take();
}

#[test]
fn the_options_that_were_agreed_on_can_be_asked() {
    let all = plain_with(|c| (c.tcp.options.timestamps, c.tcp.options.window_scaling) = (true, true));
    let t = Transcript::accepted_from(all, "SEW 0:0 mss 1000 sackok scale 5 ts 7/0");
    let agreed = OptionsInfo { timestamps: true, sack: true, ecn: true, snd_wscale: 5, rcv_wscale: 0 };
    assert_eq!(info(&t).subflows[0].options, agreed);
    let t = Transcript::accepted_from(plain(), "S 0:0 mss 1000");
    let none = OptionsInfo { timestamps: false, sack: false, ecn: false, snd_wscale: 0, rcv_wscale: 0 };
    assert_eq!(info(&t).subflows[0].options, none);
}
