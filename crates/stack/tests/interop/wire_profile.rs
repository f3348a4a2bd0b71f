//! What is on the wire: the same conversation twice, once with the kernel as client and once with us, and each kind of
//! segment byte for byte the same from both, chance aside. `docs/wire-profile.md` is the table of it.

use crate::field::{Field, Kernel, field, in_both_families, talk, to_kernel, to_us, until};
use crate::kernel::{counter, ip, sysctl};
use crate::middlebox::{Seen, Way};
use crate::pair::theirs;
use anabranch_mptcp::ConnectionConfig;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::path_manager::PathAction;
use anabranch_stack::Stream;
use anabranch_wire::{Flags, MptcpOption};
use libtest_mimic::Trial;
use std::net::Shutdown;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// Longer than a delayed acknowledgement and a round trip take.
const PAUSE: Duration = Duration::from_millis(80);

pub fn trials() -> Vec<Trial> {
    in_both_families(
        "wire_profile",
        &[
            ("a_conversation_looks_like_linux", a_conversation),
            ("a_conversation_looks_as_it_was_captured", as_captured),
            ("a_client_that_lacks_an_option_looks_like_linux", |v6| lacking(v6, Lacks::Client)),
            ("a_server_that_lacks_an_option_looks_like_linux", |v6| lacking(v6, Lacks::Server)),
            ("a_conversation_with_checksums_looks_like_linux", with_checksums),
            ("joins_and_signals_look_like_linux", joins_and_signals),
            ("fast_close_looks_like_linux", fast_close),
        ],
    )
}

/// Whether the page names tests that exist; `trials` are those of the modules that it may speak of.
pub fn the_page(trials: &[Trial]) -> Trial {
    let names: Vec<String> = trials.iter().map(|trial| trial.name().to_owned()).collect();
    Trial::test("wire_profile::the_page_names_tests_that_exist", move || {
        let page = include_str!("../../../../docs/wire-profile.md");
        let mut named = 0;
        for code in page.split('`').skip(1).step_by(2).filter(|code| !code.contains('*')) {
            let of_ours = [
                "aborting::",
                "addresses::",
                "bulk::",
                "checksums::",
                "ecn::",
                "handshake::",
                "joining::",
                "priority::",
                "wire_profile::",
            ];
            if of_ours.iter().any(|module| code.starts_with(module)) {
                named += 1;
                assert!(names.iter().any(|name| name.starts_with(code)), "no test {code}");
            }
        }
        assert!(named > 20, "{named} tests named");
        Ok(())
    })
}

/// The header and the options of a segment, byte for byte, but what is drawn at random or counts up: 0 there.
fn shape(seen: &Seen) -> String {
    let v6 = seen.packet.ip.source.is_ipv6();
    let ip_length = if v6 { 40 } else { 20 };
    let (ip, tcp) = seen.bytes.split_at(ip_length);
    let lifetime = if v6 { ip[7] } else { ip[8] };
    let header_length = usize::from(tcp[12] >> 4) * 4;
    let mut options = tcp[20..header_length].to_vec();
    mask(&mut options);
    let words: Vec<String> =
        options.chunks(4).map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
    let whole = if v6 || ip[6] & 0x40 != 0 { "" } else { " may be fragmented" };
    let (flags, length) = (tcp[13], tcp.len() - header_length);
    format!("ttl {lifetime}{whole} flags {flags:02x} length {length} options {}", words.join(" "))
}

fn mask(options: &mut [u8]) {
    let mut at = 0;
    while let Some(&kind) = options.get(at) {
        if kind < 2 {
            at += 1;
            continue;
        }
        let length = usize::from(options[at + 1]);
        let body = &mut options[at + 2..at + length];
        match (kind, body.first().map(|byte| byte >> 4), length) {
            // Timestamps, and the shift of the window, which follows from buffers.
            (8, ..) | (3, ..) => body.fill(0),
            // MP_CAPABLE: keys and checksum, but neither flags nor the length of data.
            (30, Some(0), _) => {
                let length = body.get(18..20).map(<[u8]>::to_vec);
                body.iter_mut().skip(2).for_each(|byte| *byte = 0);
                body.iter_mut().skip(18).zip(length.into_iter().flatten()).for_each(|(byte, kept)| *byte = kept);
            }
            // MP_JOIN: tokens, random numbers, proofs, and the identifier of an address.
            (30, Some(1), _) => body.iter_mut().skip(1).for_each(|byte| *byte = 0),
            (30, Some(2), _) => mask_dss(body),
            // ADD_ADDR: all but its flag.
            (30, Some(3), _) => body.iter_mut().skip(1).for_each(|byte| *byte = 0),
            (30, Some(4), _) => body[1] = 0,
            // MP_FASTCLOSE: the key.
            (30, Some(7), _) => body.iter_mut().skip(2).for_each(|byte| *byte = 0),
            _ => {}
        }
        at += length;
    }
}

/// The numbers of a DSS; what follows the data sequence number stays, the checksum goes.
fn mask_dss(body: &mut [u8]) {
    let bits = body[1];
    let ack = if bits & 1 == 0 {
        0
    } else if bits & 2 == 0 {
        4
    } else {
        8
    };
    let sequence = if bits & 4 == 0 {
        0
    } else if bits & 8 == 0 {
        4
    } else {
        8
    };
    let numbers = ack + sequence;
    body.iter_mut().skip(2).take(numbers).for_each(|byte| *byte = 0);
    body.iter_mut().skip(2 + numbers + 6).for_each(|byte| *byte = 0);
}

/// Who is the client in a conversation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Client {
    We,
    TheKernel,
}

impl Client {
    /// Where the client's packets go.
    fn way(self) -> Way {
        match self {
            Self::We => Way::ToKernel,
            Self::TheKernel => Way::ToUs,
        }
    }

    /// Where the server's go.
    fn back(self) -> Way {
        match self {
            Self::We => Way::ToUs,
            Self::TheKernel => Way::ToKernel,
        }
    }
}

/// One conversation: 100 bytes from the client, twice, 100 bytes back, and the client closes first. On a busy machine a
/// segment may come to be sent twice; then it is held again.
fn conversation(
    v6: bool,
    client: Client,
    prepare: impl Fn(&mut ConnectionConfig) + Send + Sync + Copy,
) -> Vec<(&'static str, String)> {
    for _ in 0..10 {
        let (sender, receiver) = std::sync::mpsc::channel();
        field(1, v6, None, |field| async move {
            let mut config = field.config();
            prepare(&mut config);
            hold(&field, client, config).await;
            let clean = is_clean(&field, client);
            sender.send(clean.then(|| steps(&field, client))).expect("somebody waits");
        });
        if let Some(steps) = receiver.recv().expect("the conversation ends") {
            return steps;
        }
    }
    panic!("segments were sent twice in ten conversations in a row");
}

async fn hold(field: &Field, client: Client, config: ConnectionConfig) {
    let (mut stream, kernel) = match client {
        Client::We => field.we_open_with(config).await,
        Client::TheKernel => field.the_kernel_opens_with(config).await,
    };
    field.boxes[0].wait(1, |seen| seen.way == client.way() && is_bare(seen)).await;
    for forth in [true, true, false] {
        let answer = if forth { client.back() } else { client.way() };
        let answers = |seen: &Seen| seen.way == answer && is_bare(seen);
        let before = field.boxes[0].seen(answers).len();
        match (client == Client::We) == forth {
            true => to_kernel(&mut stream, &kernel, 100).await,
            false => to_us(&mut stream, &kernel, 100).await,
        }
        field.boxes[0].wait(before + 1, answers).await;
        tokio::time::sleep(PAUSE).await;
    }
    for client_closes in [true, false] {
        match (client == Client::We) == client_closes {
            true => stream.shutdown().await.expect("open"),
            false => kernel.socket.shutdown(Shutdown::Write).expect("open"),
        }
        tokio::time::sleep(PAUSE).await;
    }
    for way in [Way::ToUs, Way::ToKernel] {
        let fin = |seen: &Seen| seen.way == way && seen.packet.segment.flags.contains(Flags::FIN);
        field.boxes[0].wait(1, fin).await;
    }
}

/// An acknowledgement and nothing else.
fn is_bare(seen: &Seen) -> bool {
    let segment = &seen.packet.segment;
    segment.flags == Flags::ACK && segment.payload.is_empty() && !segment.options.dss.is_some_and(|dss| dss.data_fin)
}

/// Whether every segment was sent once.
fn is_clean(field: &Field, client: Client) -> bool {
    let count =
        |way: Way, fits: &dyn Fn(&Seen) -> bool| field.boxes[0].seen(|seen| seen.way == way && fits(seen)).len();
    let data = |seen: &Seen| !seen.packet.segment.payload.is_empty();
    let syn = |seen: &Seen| seen.packet.segment.flags.contains(Flags::SYN);
    let sack = |seen: &Seen| !seen.packet.segment.options.sack.is_empty();
    let (forth, back) = (client.way(), client.back());
    (count(forth, &syn), count(back, &syn), count(forth, &data), count(back, &data)) == (1, 1, 2, 1)
        && count(forth, &sack) + count(back, &sack) == 0
}

/// The kinds of segments of a conversation, in order.
fn steps(field: &Field, client: Client) -> Vec<(&'static str, String)> {
    let of = |way: Way, fits: &dyn Fn(&Seen) -> bool| field.boxes[0].seen(|seen| seen.way == way && fits(seen));
    let (forth, back) = (client.way(), client.back());
    let syn = |seen: &Seen| seen.packet.segment.flags.contains(Flags::SYN);
    let data = |seen: &Seen| !seen.packet.segment.payload.is_empty();
    let fin = |seen: &Seen| seen.packet.segment.flags.contains(Flags::FIN);
    let data_fin = |seen: &Seen| seen.packet.segment.options.dss.is_some_and(|dss| dss.data_fin);
    let nth = |packets: Vec<Seen>, n: usize| packets.get(n).map_or("none".to_owned(), shape);
    let times = |fits: &dyn Fn(&Seen) -> bool| [forth, back].map(|way| of(way, fits)[0].at);
    let last = times(&data_fin).into_iter().max() <= times(&fin).into_iter().min();
    vec![
        ("SYN", nth(of(forth, &syn), 0)),
        ("SYN/ACK", nth(of(back, &syn), 0)),
        ("third ACK", nth(of(forth, &is_bare), 0)),
        ("first data", nth(of(forth, &data), 0)),
        ("its acknowledgement", nth(of(back, &is_bare), 0)),
        ("second data", nth(of(forth, &data), 1)),
        ("its acknowledgement", nth(of(back, &is_bare), 1)),
        ("first data back", nth(of(back, &data), 0)),
        ("its acknowledgement", nth(of(forth, &is_bare), 1)),
        ("DATA_FIN", nth(of(forth, &data_fin), 0)),
        ("its acknowledgement", nth(of(back, &is_bare), 2)),
        ("DATA_FIN back", nth(of(back, &data_fin), 0)),
        ("FIN", nth(of(forth, &fin), 0)),
        ("FIN back", nth(of(back, &fin), 0)),
        ("both FINs follow both DATA_FINs", last.to_string()),
    ]
}

fn a_conversation(v6: bool) {
    let linux = conversation(v6, Client::TheKernel, |_| {});
    let mixed = conversation(v6, Client::We, |_| {});
    assert_eq!(mixed, linux, "left: we are the client, right: Linux is");
}

/// The facts, read off Linux 6.18 speaking to itself.
fn as_captured(v6: bool) {
    let mss = if v6 { "020405a0" } else { "020405b4" };
    let (key, stamps) = ("00000000 00000000", "0101080a 00000000 00000000");
    let syn = format!("{mss} 0402080a 00000000 00000000 01030300");
    let expected = [
        ("SYN", format!("ttl 64 flags 02 length 0 options {syn} 1e040101")),
        ("SYN/ACK", format!("ttl 64 flags 12 length 0 options {syn} 1e0c0101 {key}")),
        ("third ACK", format!("ttl 64 flags 10 length 0 options {stamps} 1e140101 {key} {key}")),
        ("first data", format!("ttl 64 flags 18 length 100 options {stamps} 1e160101 {key} {key} 00640101")),
        ("its acknowledgement", format!("ttl 64 flags 10 length 0 options {stamps} 1e0c2003 {key}")),
        // A DATA_ACK of 4 octets: the server has not yet said anything.
        (
            "second data",
            format!("ttl 64 flags 18 length 100 options {stamps} 1e16200d 00000000 {key} 00000065 00640101"),
        ),
        ("its acknowledgement", format!("ttl 64 flags 10 length 0 options {stamps} 1e0c2003 {key}")),
        (
            "first data back",
            format!("ttl 64 flags 18 length 100 options {stamps} 1e1a200f {key} {key} 00000001 00640101"),
        ),
        ("its acknowledgement", format!("ttl 64 flags 10 length 0 options {stamps} 1e0c2003 {key}")),
        ("DATA_FIN", format!("ttl 64 flags 10 length 0 options {stamps} 1e1a201f {key} {key} 00000000 00010101")),
        ("its acknowledgement", format!("ttl 64 flags 10 length 0 options {stamps} 1e0c2003 {key}")),
        ("DATA_FIN back", format!("ttl 64 flags 10 length 0 options {stamps} 1e1a201f {key} {key} 00000000 00010101")),
        ("FIN", format!("ttl 64 flags 11 length 0 options {stamps} 1e0c2003 {key}")),
        ("FIN back", format!("ttl 64 flags 11 length 0 options {stamps} 1e0c2003 {key}")),
        ("both FINs follow both DATA_FINs", "true".to_owned()),
    ];
    for client in [Client::We, Client::TheKernel] {
        assert_eq!(conversation(v6, client, |_| {}), expected, "the client: {client:?}");
    }
}

/// Which end lacks something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lacks {
    Client,
    Server,
}

/// Without timestamps, selective acknowledgements, window scaling, in every combination.
fn lacking(v6: bool, lacks: Lacks) {
    for missing in 1..8_u8 {
        let [timestamps, sack, scaling] = [1, 2, 4].map(|bit| missing & bit == 0);
        let run = |client: Client| {
            let we_lack = (client == Client::We) == (lacks == Lacks::Client);
            conversation(v6, client, move |config| {
                if we_lack {
                    (config.tcp.options.timestamps, config.tcp.options.sack, config.tcp.options.window_scaling) =
                        (timestamps, sack, scaling);
                } else {
                    let word = |on: bool| if on { "1" } else { "0" };
                    sysctl("ipv4.tcp_timestamps", word(timestamps));
                    sysctl("ipv4.tcp_sack", word(sack));
                    sysctl("ipv4.tcp_window_scaling", word(scaling));
                }
            })
        };
        let (linux, mixed) = (run(Client::TheKernel), run(Client::We));
        assert_eq!(mixed, linux, "timestamps {timestamps}, SACK {sack}, scaling {scaling}");
    }
}

/// Both ends ask for them, or one of them. A server that is asked and does not ask itself says so in its SYN/ACK if we
/// are it, and uses them without a word if it is Linux.
fn with_checksums(v6: bool) {
    for (of_client, of_server) in [(true, true), (true, false), (false, true)] {
        let run = |client: Client| {
            let (ours, kernels) = if client == Client::We { (of_client, of_server) } else { (of_server, of_client) };
            conversation(v6, client, move |config| {
                config.checksum = ours;
                sysctl("mptcp.checksum_enabled", if kernels { "1" } else { "0" });
            })
        };
        let (linux, mut mixed) = (run(Client::TheKernel), run(Client::We));
        if !of_server {
            let (_, syn_ack) = &mut mixed[1];
            assert!(syn_ack.contains(" 1e0c0101 "), "{syn_ack}");
            *syn_ack = syn_ack.replace(" 1e0c0101 ", " 1e0c0181 ");
        }
        assert_eq!(mixed, linux, "the client asks: {of_client}, the server: {of_server}");
    }
}

/// The first packet on any path with an option that fits.
fn first(field: &Field, way: Way, fits: impl Fn(&MptcpOption) -> bool) -> String {
    let mut packets = field.with_option(way, fits);
    packets.sort_by_key(|seen| seen.at);
    packets.first().map_or("none".to_owned(), shape)
}

/// The server announces its second address, the client joins it, changes the priority, and the server withdraws it.
fn signals(v6: bool, client: Client) -> Vec<(&'static str, String)> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let mesh = match client {
        Client::We => "path_manager.subflows=1",
        Client::TheKernel => "path_manager.announce=server",
    };
    field(2, v6, Some(mesh), |field| async move {
        // Nobody joins from an address to the initial one: what is captured is the join to what was announced.
        let role = if client == Client::We { "signal" } else { "subflow" };
        ip("mptcp limits set subflows 1 add_addr_accepted 1");
        let (mut stream, kernel) = match client {
            Client::We => {
                sysctl("mptcp.allow_join_initial_addr_port", "0");
                ip(&format!("mptcp endpoint add {} id 5 {role}", theirs(1, v6)));
                field.we_open().await
            }
            Client::TheKernel => {
                let mut config = field.config();
                config.deny_join_initial = true;
                ip(&format!("mptcp endpoint add {} id 5 {role}", theirs(1, v6)));
                field.the_kernel_opens_with(config).await
            }
        };
        talk(&mut stream, &kernel).await;
        let subflow = field.joined().await;
        talk(&mut stream, &kernel).await;
        change_priority(&field, &stream, client, subflow).await;
        withdraw(&field, client).await;
        tokio::time::sleep(PAUSE).await;
        sender.send(signal_steps(&field, client)).expect("somebody waits");
    });
    receiver.recv().expect("it ends")
}

/// The client calls the second subflow a backup.
async fn change_priority(field: &Field, stream: &Stream, client: Client, subflow: SubflowId) {
    let connection = stream.id();
    match client {
        Client::We => {
            field.order(PathAction::SetBackup { connection, subflow, backup: true });
            until(|| counter("MPPrioRx") == 1).await;
        }
        Client::TheKernel => {
            // By address: 5.15 knows none by its id.
            ip(&format!("mptcp endpoint change {} backup", theirs(1, field.v6)));
            until(|| counter("MPPrioTx") == 1).await;
        }
    }
    tokio::time::sleep(PAUSE).await;
}

/// The server withdraws its second address.
async fn withdraw(field: &Field, client: Client) {
    match client {
        Client::We => ip("mptcp endpoint delete id 5"),
        Client::TheKernel => field.stack.address_down(anabranch_policy::ids::AddressId(2)),
    }
}

fn signal_steps(field: &Field, client: Client) -> Vec<(&'static str, String)> {
    let (forth, back) = (client.way(), client.back());
    let third = field.with_option(forth, |o| matches!(o, MptcpOption::JoinAck { .. }));
    let answers = |seen: &Seen| {
        let (segment, ports) =
            (&seen.packet.segment, (seen.packet.segment.source_port, seen.packet.segment.destination_port));
        let of = |third: &Seen| (third.packet.segment.destination_port, third.packet.segment.source_port);
        seen.way == back && segment.flags == Flags::ACK && third.first().is_some_and(|third| of(third) == ports)
    };
    let fourth: Vec<Seen> = field.boxes.iter().flat_map(|middlebox| middlebox.seen(answers)).collect();
    vec![
        ("ADD_ADDR", first(field, back, |o| matches!(o, MptcpOption::AddAddress { truncated_hmac: Some(_), .. }))),
        ("its echo", first(field, forth, |o| matches!(o, MptcpOption::AddAddress { truncated_hmac: None, .. }))),
        ("SYN of a join", first(field, forth, |o| matches!(o, MptcpOption::JoinSyn { .. }))),
        ("SYN/ACK of a join", first(field, back, |o| matches!(o, MptcpOption::JoinSynAck { .. }))),
        ("third ACK of a join", first(field, forth, |o| matches!(o, MptcpOption::JoinAck { .. }))),
        ("fourth of a join", fourth.first().map_or("none".to_owned(), shape)),
        ("MP_PRIO", first(field, forth, |o| matches!(o, MptcpOption::Priority { .. }))),
        ("REMOVE_ADDR", first(field, back, |o| matches!(o, MptcpOption::RemoveAddress { .. }))),
    ]
}

fn joins_and_signals(v6: bool) {
    let linux = signals(v6, Client::TheKernel);
    let mixed = signals(v6, Client::We);
    assert!(linux.iter().chain(&mixed).all(|(_, shape)| shape != "none"), "{linux:?} {mixed:?}");
    // The flag C of the server's options is the test's own.
    assert_eq!(mixed, linux, "left: we are the client, right: Linux is");
}

/// What a reset with MP_FASTCLOSE looks like, from both.
fn fast_close(v6: bool) {
    let resets = |we_abort: bool| {
        let (sender, receiver) = std::sync::mpsc::channel();
        field(1, v6, None, |field| async move {
            let (mut stream, kernel) = field.we_open().await;
            talk(&mut stream, &kernel).await;
            let way = if we_abort { Way::ToKernel } else { Way::ToUs };
            let _stream = abort(stream, kernel, we_abort);
            let reset = |seen: &Seen| seen.way == way && seen.packet.segment.flags.contains(Flags::RST);
            let reset = field.boxes[0].wait(1, reset).await;
            assert!(reset[0].packet.segment.window > 0, "it offers a window like any segment");
            sender.send(shape(&reset[0])).expect("somebody waits");
        });
        receiver.recv().expect("it ends")
    };
    let stamps = "0101080a 00000000 00000000";
    let expected = format!("ttl 64 flags 14 length 0 options {stamps} 1e0c7000 00000000 00000000 1e048000");
    assert_eq!(resets(false), expected, "Linux");
    assert_eq!(resets(true), expected, "we");
}

/// Ends a connection at once; returns our stream back, which must live a little longer.
fn abort(stream: Stream, kernel: Kernel, we_abort: bool) -> Stream {
    if we_abort {
        stream.abort();
    } else {
        kernel.socket.set_linger(Some(Duration::ZERO)).expect("an option that sockets have");
        drop(kernel);
    }
    stream
}
