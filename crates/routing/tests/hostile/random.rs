//! Many packets of all kinds, made up or damaged.

use crate::harness::{Net, Node, Setup, figure_8_lateral, id, link_local};
use crate::ospf_strategies::packet;
use crate::{OPTIONS, SECOND, assert_converged, mesh};
use anabranch_wire::ospf::lsa::MAX_AGE;
use anabranch_wire::ospf::{
    AreaId, Body, Compatibility, InstanceId, Integrity, LinkStateId, Lsa, Packet, RouterId, Tlv,
};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// Replaces fields by values that match those of neighbours, so that most packets pass the first checks.
fn plausible(mut packet: Packet, random: &mut impl FnMut(usize) -> usize) -> (Node, Packet) {
    let from = random(8);
    (packet.router, packet.area, packet.instance) = (id(from), AreaId::BACKBONE, InstanceId::IPV6);
    let mut router = |number: &mut RouterId| {
        if random(4) > 0 {
            *number = id(random(8));
        }
    };
    match &mut packet.body {
        Body::Hello(hello) => {
            (hello.hello_interval, hello.router_dead_interval) = (1, 3);
            hello.options = OPTIONS;
            hello.neighbors.iter_mut().for_each(&mut router);
            let lists = |tlv: &mut Tlv| {
                if let Tlv::MdrHello(tlv) = tlv {
                    tlv.down = if tlv.differential { tlv.down % 4 } else { 0 };
                    (tlv.init, tlv.dependent) = (tlv.init % 4, tlv.dependent % 4);
                    tlv.selected_advertised %= 4;
                }
            };
            packet.lls.iter_mut().flat_map(|lls| &mut lls.tlvs).for_each(lists);
        }
        Body::DatabaseDescription(description) => {
            (description.options, description.interface_mtu) = (OPTIONS, 1500);
            description.headers.iter_mut().for_each(|header| router(&mut header.key.advertising));
        }
        Body::LinkStateRequest(request) => request.keys.iter_mut().for_each(|key| router(&mut key.advertising)),
        Body::LinkStateUpdate(update) => {
            for aged in &mut update.lsas {
                let mut key = aged.lsa.key();
                router(&mut key.advertising);
                key.id = LinkStateId(key.id.0 % 2);
                aged.lsa = Lsa::new(key, aged.lsa.sequence(), aged.lsa.body().clone()).unwrap();
                aged.age %= MAX_AGE + 2;
            }
        }
        Body::LinkStateAcknowledgment(acknowledgment) => {
            acknowledgment.headers.iter_mut().for_each(|header| router(&mut header.key.advertising));
        }
    }
    (from, packet)
}

#[test]
fn packets_of_all_kinds_in_the_names_of_all_neighbours_are_survived() {
    let mut net = mesh(17);
    let mut runner = TestRunner::deterministic();
    for _ in 0..3_000 {
        let packet = packet().new_tree(&mut runner).unwrap().current();
        let (from, packet) = plausible(packet, &mut |most| net.below(most));
        let to = net.below(8);
        let multicast = net.below(2) == 0;
        net.inject(to, 0, link_local(from, 0), multicast, &packet);
        net.run_for(SECOND / 50);
    }
    // LSAs of non-existent routers stay for an hour without effect.
    net.run_for(SECOND * 60);
    assert_converged(&net);
    net.run_for(SECOND * 3_700);
    assert_converged(&net);
}

#[test]
fn damaged_packets_whose_sums_are_right_are_survived() {
    let mut net = Net::new(Setup::new(8, 18));
    net.overheard = Some(Vec::new());
    figure_8_lateral().iter().for_each(|(a, b)| net.set_link(*a, *b, true));
    (0..8).for_each(|node| net.start(node));
    net.run_for(SECOND * 30);
    let overheard = net.overheard.take().unwrap();
    let (mut understood, mut refused) = (0, 0);
    for _ in 0..5_000 {
        let (from, packet) = overheard[net.below(overheard.len())].clone();
        let mut bytes = Vec::new();
        packet.encode(Integrity::Authenticated, Compatibility::default(), &mut bytes).unwrap();
        for _ in 0..1 + net.below(3) {
            let place = net.below(bytes.len());
            bytes[place] = net.below(256) as u8;
        }
        if net.below(4) == 0 {
            bytes.truncate(net.below(bytes.len() + 1));
        }
        let to = net.below(8);
        match Packet::decode(&bytes, Integrity::Authenticated, Compatibility::default()) {
            Ok(decoded) => {
                understood += 1;
                net.inject(to, 0, link_local(from, 0), true, &decoded.packet);
            }
            Err(_) => refused += 1,
        }
        net.run_for(SECOND / 100);
    }
    assert!(understood > 2_000 && refused > 500, "{understood} understood, {refused} refused");
    net.run_for(SECOND * 60);
    assert_converged(&net);
}
