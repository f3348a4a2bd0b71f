//! Datagrams of any size over paths of any MTU.

use super::*;

fn large(payload: usize) -> Datagram {
    let bytes: Vec<u8> = (0..=250).cycle().take(payload).collect();
    Datagram { payload: bytes.into(), ..datagram(0) }
}

#[test]
fn datagrams_of_any_size_come_whole_over_paths_of_any_mtu() {
    for name in ["lowest_delay", "duplicate", "weighted", "by_flow"] {
        let mut net = Net::new(&[10, 30], name);
        (net.links[0].carries, net.links[1].carries) = (1_252, 700);
        net.stream(Duration::from_secs(30), millis(20));
        net.to_server.clear();
        for size in [0, 500, 1_100, 1_200, 1_300, 1_372, 8_000, 40_000, 65_507, 65_535] {
            assert!(net.client.send(net.now, &large(size)), "{name}: {size}");
            net.run(millis(200));
            assert_eq!(net.to_server.pop().as_ref(), Some(&large(size)), "{name}: {size}");
            assert!(net.server.send(net.now, 99, &large(size)), "{name}: {size}");
            net.run(millis(200));
            assert_eq!(net.to_client.pop().as_ref(), Some(&large(size)), "{name}: {size}");
        }
        let carried: Vec<usize> = net.client.paths().map(|(_, path)| path.mtu.carried()).collect();
        assert!((1_244..=1_252).contains(&carried[0]) && (692..=700).contains(&carried[1]), "{carried:?}");
    }
}

#[test]
fn what_fits_is_not_cut_and_what_a_path_carries_is_known_after_a_round_trip() {
    let mut net = Net::new(&[10], "lowest_delay");
    net.run(millis(100));
    net.seen.clear();
    net.client.send(net.now, &large(1_372));
    net.run(millis(1));
    assert_eq!(net.seen.len(), 1);
    let Datagram { inside, outside, .. } = large(0);
    assert_eq!(net.client.largest_whole(inside, outside), 1_433 - 57);
}

#[test]
fn a_path_that_carries_less_than_before_loses_large_datagrams_for_three_seconds_at_most() {
    let mut net = Net::new(&[10], "lowest_delay");
    let send = |net: &mut Net, span: u64| {
        for _ in 0..span / 20 {
            net.client.send(net.now, &large(1_372));
            net.run(millis(20));
        }
    };
    send(&mut net, 5_000);
    net.links[0].carries = 1_252;
    send(&mut net, 3_000);
    net.to_server.clear();
    send(&mut net, 2_000);
    assert!(net.to_server.len() >= 98, "{}", net.to_server.len());
}

#[test]
fn a_program_hears_that_its_datagram_did_not_arrive() {
    let mut net = Net::new(&[10, 30], "duplicate");
    net.run(millis(300));
    let Datagram { kind, inside, outside, .. } = datagram(0);
    let said = Unreachable { kind, inside, outside, by: outside.ip(), reason: Reason::Port, head: [1, 2, 3, 4] };
    net.server.send_unreachable(net.now, 99, said);
    net.run(millis(50));
    assert_eq!((net.client.poll_unreachable(), net.client.poll_unreachable()), (Some(said), None));
}
