//! Parsers, with bytes that Linux 6.18 sent, cut to what older kernels send.

use crate::attributes::Attributes;
use crate::diag::{read_connection, read_subflow};
use crate::events::read_event;
use crate::tcp_info::{SubflowBlock, read_tcp_info};
use anabranch_policy::time::Duration;
use anabranch_steering::event::Event;
use anabranch_steering::sample::{CaState, Endpoints, TcpState, Token};
use proptest::prelude::*;

/// A subflow: `struct tcp_info` of a connection over loopback that received 5 bytes and sent 10.
const TCP_INFO: &str = "010000000007aa01e01c0300409c000000800000180200000000000000000000000000000000000000000000100000000000000010000000100000\
00ffff0000cbff0000180000000d000000ffffff7f0b000000cbff00000300000000000000cbff000000000000fdb54f1308000000ffffffffffff\
ffff05000000000000000a000000000000000200000004000000000000000500000001000000010000000000a08601000000000000000000000000\
0000000000000000000000000000000200000000000000050000000000000000000000000000000000000000000000000000000000010000000100\
0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000";

/// Its block of MPTCP, with the name before it.
const ULP: &str = "0a0001006d7074637000000058000300080001000000000008000200ee1d2f9f08000800c1000000050009000000000005000a0000000000\
08000300060000000c000400c9ee16115153e6e40800050001000000080006009ae44b73060007000a000000";

/// `struct mptcp_info` of the other end.
const MPTCP_INFO: &str = "000000020000000002000000a5e54b3cbfe5bf04742b9adcbfe5bf04742b9adc1f5e2373ce4430a1000000000000000000000000000000000a0000\
000000000005000000000000000a0000000000000001000000180000001800000018000000";

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).expect("a digit") as u8;
    hexadecimal.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// An answer of sock_diag: its header, and attributes among which are some that nobody knows.
fn answer(info: &[u8], ulp: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = vec![2, 1, 0, 0];
    bytes.extend(7u16.to_be_bytes());
    bytes.extend(34_730u16.to_be_bytes());
    for octet in [1, 2] {
        bytes.extend([127, 0, 0, octet]);
        bytes.extend([0; 12]);
    }
    bytes.resize(64, 0);
    bytes.extend(1_000u32.to_ne_bytes());
    bytes.resize(72, 0);
    let mut attributes = Attributes::default();
    attributes.put_u8(8, 0).put_u32(250, 1).put(21, &9u64.to_ne_bytes()).put(2, info);
    if let Some(ulp) = ulp {
        attributes.put(19, ulp);
    }
    bytes.extend(attributes.bytes());
    bytes
}

#[test]
fn a_subflow_is_read() {
    let (token, subflow) = read_subflow(&answer(&bytes(TCP_INFO), Some(&bytes(ULP)))).expect("it is one");
    assert_eq!(token, Token(0x9f2f_1dee));
    let endpoints = Endpoints {
        local: "127.0.0.1:7".parse().expect("an address"),
        remote: "127.0.0.2:34730".parse().expect("an address"),
    };
    assert_eq!(subflow.endpoints, endpoints);
    // 204 ms, 24 us and 13 us, as ss(8) printed them.
    assert_eq!((subflow.rto, subflow.rtt), (Duration::from_micros(204_000), Duration::from_micros(24)));
    assert_eq!((subflow.rttvar, subflow.min_rtt), (Duration::from_micros(13), Some(Duration::from_micros(5))));
    assert_eq!((subflow.snd_mss, subflow.snd_cwnd, subflow.snd_wnd), (32_768, 11, Some(65_536)));
    assert_eq!((subflow.bytes.acked, subflow.bytes.received, subflow.bytes.sent), (5, 10, Some(5)));
    assert_eq!(subflow.pacing_rate.bits_per_second(), 277_469_835_240 / 8 * 8);
    assert_eq!(subflow.delivery_rate.map(|rate| rate.bits_per_second()), Some(52_428_800_000));
    assert!(subflow.delivery_rate_app_limited);
    assert_eq!((subflow.state, subflow.ca_state), (TcpState::Established, CaState::Open));
    assert_eq!(
        (subflow.local_id, subflow.remote_id, subflow.backup_local, subflow.backup_remote),
        (0, 0, false, false)
    );
}

#[test]
fn a_join_opens_until_the_fourth_ack() {
    let block = |flags| SubflowBlock { flags, ..SubflowBlock::default() };
    let endpoints = Endpoints {
        local: "127.0.0.1:7".parse().expect("an address"),
        remote: "127.0.0.2:7".parse().expect("an address"),
    };
    let state = |flags| read_tcp_info(&bytes(TCP_INFO), endpoints, block(flags)).expect("it is whole").state;
    let (join_remote, join_local, fully_established) = (1 << 2, 1 << 3, 1 << 6);
    assert_eq!(state(join_remote | join_local), TcpState::Opening);
    assert_eq!(state(join_remote | join_local | fully_established), TcpState::Established);
    // The first subflow, which a server that says nothing leaves so for long.
    assert_eq!(state(1), TcpState::Established);
}

#[test]
fn a_field_that_an_older_kernel_lacks_is_absent() {
    let info = bytes(TCP_INFO);
    let of = |length: usize| read_subflow(&answer(&info[..length], Some(&bytes(ULP)))).map(|(_, subflow)| subflow);
    let whole = of(info.len()).expect("it is one");
    // 5.15 ends with the peer's window.
    assert_eq!(of(232), Some(whole));
    let shorter = of(228).expect("it is one");
    assert_eq!((shorter.snd_wnd, shorter.bytes.retrans), (None, Some(0)));
    let shorter = of(160).expect("it is one");
    assert_eq!((shorter.delivery_rate, shorter.bytes.sent), (None, None));
    assert_eq!(of(100), None);
}

#[test]
fn a_connection_is_read() {
    let info = bytes(MPTCP_INFO);
    let (connection, owner) = read_connection(&answer(&info, None)).expect("it is one");
    assert_eq!((connection.token, connection.fallback), (0x3c4b_e5a5, false));
    assert_eq!(connection.write_seq, connection.snd_una);
    assert_eq!(connection.snd_una, 0xdc9a_2b74_04bf_e5bf);
    assert_eq!(connection.bytes_acked, Some(10));
    assert_eq!((owner.uid, owner.cgroup, owner.ipv6), (1_000, Some(9), false));
    // FIN-WAIT-1, FIN-WAIT-2, CLOSE-WAIT, LAST-ACK and CLOSING of include/net/tcp_states.h.
    for state in 1..=12 {
        let mut answer = answer(&info, None);
        answer[1] = state;
        let closing = read_connection(&answer).map(|(connection, _)| connection.closing);
        assert_eq!(closing, Some([4, 5, 8, 9, 11].contains(&state)), "{state}");
    }
    let mut of_ipv6 = answer(&info, None);
    of_ipv6[0] = 10;
    assert_eq!(read_connection(&of_ipv6).map(|(_, owner)| owner.ipv6), Some(true));
    // 5.15 ends with the checksums' flag, and one byte of padding for each of its eight.
    let (older, _) = read_connection(&answer(&info[..48], None)).expect("it is one");
    assert_eq!((older.bytes_acked, older.snd_una), (None, connection.snd_una));
    assert!(read_connection(&answer(&info[..36], None)).is_none());
}

#[test]
fn a_socket_of_tcp_without_a_block_is_no_subflow() {
    assert!(read_subflow(&answer(&bytes(TCP_INFO), None)).is_none());
    let mut tls = Attributes::default();
    tls.put(1, b"tls\0").put_u16(2, 1);
    assert!(read_subflow(&answer(&bytes(TCP_INFO), Some(tls.bytes()))).is_none());
}

/// An event with these attributes and some that nobody knows.
fn event(kind: u8, attributes: &Attributes) -> Vec<u8> {
    let mut unknown = Attributes::default();
    unknown.put_u32(99, 1);
    [&[kind, 1, 0, 0], unknown.bytes(), attributes.bytes()].concat()
}

#[test]
fn events_are_read() {
    let mut attributes = Attributes::default();
    attributes.put_u32(1, 5).put_u8(3, 2).put_u8(4, 3).put_u8(11, 1).put_u8(12, 110);
    attributes.put(5, &[10, 0, 0, 1]).put(7, &[10, 0, 0, 2]);
    attributes.put(9, &1_000u16.to_be_bytes()).put(10, &80u16.to_be_bytes());
    let (token, local, remote) = (Token(5), "10.0.0.1:1000", "10.0.0.2:80");
    let endpoints = Endpoints { local: local.parse().expect("one"), remote: remote.parse().expect("one") };
    let read = |kind| read_event(&event(kind, &attributes));
    assert_eq!(read(1), Some(Event::Created { token, endpoints, server: false }));
    assert_eq!(read(3), Some(Event::Closed { token }));
    assert_eq!(read(6), Some(Event::Announced { token, remote_id: 3, remote: endpoints.remote }));
    assert_eq!(read(7), Some(Event::Removed { token, remote_id: 3 }));
    let joined = Event::SubflowEstablished { token, endpoints, local_id: 2, remote_id: 3, backup: true };
    assert_eq!(read(10), Some(joined));
    assert_eq!(read(11), Some(Event::SubflowClosed { token, endpoints, error: 110 }));
    assert_eq!(read(13), Some(Event::SubflowPriority { token, endpoints, backup: true }));
    // Listeners are none of our business, and nobody knows number 77.
    assert_eq!((read(15), read(77)), (None, None));
}

#[test]
fn either_way_of_saying_server_is_understood() {
    for (kind, value) in [(18, &[1][..]), (13, &3u16.to_ne_bytes()[..])] {
        let mut attributes = Attributes::default();
        attributes.put_u32(1, 5).put(6, &[1; 16]).put(8, &[2; 16]).put(kind, value);
        let Some(Event::Established { server, remote_denies_joins, .. }) = read_event(&event(2, &attributes)) else {
            panic!("it is one")
        };
        assert_eq!((server, remote_denies_joins), (true, kind == 13));
    }
}

#[test]
fn an_event_without_a_token_is_none() {
    assert_eq!(read_event(&event(3, &Attributes::default())), None);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read_event(&bytes);
        let _ = read_subflow(&bytes);
        let _ = read_connection(&bytes);
        let _ = crate::netlink::messages(&bytes).count();
    }

    #[test]
    fn any_cut_of_an_answer_is_read_without_a_panic(length in 0usize..420, place in 0usize..420, value: u8) {
        let mut bytes = answer(&bytes(TCP_INFO), Some(&bytes(ULP)));
        bytes.truncate(length);
        if let Some(byte) = bytes.get_mut(place) {
            *byte = value;
        }
        let _ = read_subflow(&bytes);
    }
}
