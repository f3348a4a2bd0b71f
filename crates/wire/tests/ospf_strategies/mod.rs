//! Generates OSPF packets that can be encoded.

use anabranch_wire::ospf::lls::{MdrDescription, MdrHello, MdrMetric, MdrMetrics};
use anabranch_wire::ospf::lsa::{
    AsExternalLsa, InterAreaPrefixLsa, InterAreaRouterLsa, IntraAreaPrefix, IntraAreaPrefixLsa, LinkKind, LinkLsa,
    LinkPrefix, MetricType, NetworkLsa, RouterFlags, RouterLink, RouterLsa,
};
use anabranch_wire::ospf::{
    AgedLsa, AreaId, Body, Compatibility, DatabaseDescription, DescriptionFlags, Hello, InstanceId, InterfaceId,
    LinkStateAcknowledgment, LinkStateId, LinkStateRequest, LinkStateUpdate, Lls, Lsa, LsaBody, LsaHeader, LsaKey,
    LsaSequence, LsaType, Options, Packet, Prefix, PrefixOptions, RouterId, Tlv,
};
use core::net::Ipv6Addr;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

fn router() -> impl Strategy<Value = RouterId> {
    any::<u32>().prop_map(RouterId)
}

fn options() -> impl Strategy<Value = Options> {
    any::<u32>().prop_map(|bits| Options::from_bits(bits).without(Options::L | Options::AT))
}

fn metric_24() -> impl Strategy<Value = u32> {
    0..1u32 << 24
}

/// A prefix of an address family with `longest` bits.
fn prefix(longest: u8) -> impl Strategy<Value = Prefix> {
    (any::<u128>(), 0..=longest).prop_map(|(bits, length)| Prefix::new(bits, length).expect("at most 128 bits"))
}

fn prefix_options() -> impl Strategy<Value = PrefixOptions> {
    any::<u8>().prop_map(PrefixOptions)
}

fn key(kind: LsaType) -> impl Strategy<Value = LsaKey> {
    (router(), any::<u32>()).prop_map(move |(advertising, id)| LsaKey { kind, advertising, id: LinkStateId(id) })
}

fn any_key() -> impl Strategy<Value = LsaKey> {
    any::<u16>().prop_flat_map(|kind| key(LsaType(kind)))
}

fn header() -> impl Strategy<Value = LsaHeader> {
    (any::<u16>(), any_key(), any::<i32>(), any::<u16>(), any::<u16>()).prop_map(
        |(age, key, sequence, checksum, length)| {
            let sequence = LsaSequence(sequence);
            LsaHeader { age, key, sequence, checksum, length }
        },
    )
}

fn router_lsa() -> impl Strategy<Value = LsaBody> {
    let kind = prop_oneof![Just(LinkKind::PointToPoint), Just(LinkKind::Transit), Just(LinkKind::Virtual)];
    let link = (kind, any::<u16>(), any::<u32>(), any::<u32>(), router()).prop_map(
        |(kind, metric, interface, neighbor_interface, neighbor)| RouterLink {
            kind,
            metric,
            interface: InterfaceId(interface),
            neighbor_interface: InterfaceId(neighbor_interface),
            neighbor,
        },
    );
    let flags = any::<[bool; 4]>().prop_map(|[area_border, as_boundary, virtual_link_endpoint, nssa_translator]| {
        RouterFlags { area_border, as_boundary, virtual_link_endpoint, nssa_translator }
    });
    (flags, options(), vec(link, 0..20))
        .prop_map(|(flags, options, links)| LsaBody::Router(RouterLsa { flags, options, links }))
}

fn external_lsa(longest: u8) -> impl Strategy<Value = LsaBody> {
    let metric_type = prop_oneof![Just(MetricType::One), Just(MetricType::Two)];
    let referenced = of((1..=u16::MAX, any::<u32>()));
    let fields = (metric_type, metric_24(), prefix(longest), prefix_options(), of(any::<u128>()), of(any::<u32>()));
    (fields, referenced).prop_map(|((metric_type, metric, prefix, options, forwarding, tag), referenced)| {
        LsaBody::AsExternal(AsExternalLsa {
            metric_type,
            metric,
            prefix,
            options,
            forwarding: forwarding.map(Ipv6Addr::from_bits),
            tag,
            referenced: referenced.map(|(kind, id)| (LsaType(kind), LinkStateId(id))),
        })
    })
}

fn link_lsa(longest: u8) -> impl Strategy<Value = LsaBody> {
    let entry = (prefix(longest), prefix_options()).prop_map(|(prefix, options)| LinkPrefix { prefix, options });
    (any::<u8>(), options(), any::<u128>(), vec(entry, 0..10)).prop_map(|(priority, options, address, prefixes)| {
        LsaBody::Link(LinkLsa { priority, options, address: Ipv6Addr::from_bits(address), prefixes })
    })
}

fn intra_area_prefix_lsa(longest: u8) -> impl Strategy<Value = LsaBody> {
    let entry = (prefix(longest), prefix_options(), any::<u16>())
        .prop_map(|(prefix, options, metric)| IntraAreaPrefix { prefix, options, metric });
    let referenced = prop_oneof![key(LsaType::ROUTER), key(LsaType::NETWORK)];
    (referenced, vec(entry, 0..10))
        .prop_map(|(referenced, prefixes)| LsaBody::IntraAreaPrefix(IntraAreaPrefixLsa { referenced, prefixes }))
}

/// An advertisement of a type that RFC 5340 knows, with prefixes of at most `longest` bits.
fn known_lsa(longest: u8) -> impl Strategy<Value = (LsaType, LsaBody)> {
    let attached = vec(router(), 0..20);
    prop_oneof![
        router_lsa().prop_map(|body| (LsaType::ROUTER, body)),
        (options(), attached)
            .prop_map(|(options, attached)| (LsaType::NETWORK, LsaBody::Network(NetworkLsa { options, attached }))),
        (metric_24(), prefix(longest), prefix_options()).prop_map(|(metric, prefix, options)| {
            let body = InterAreaPrefixLsa { metric, prefix, options };
            (LsaType::INTER_AREA_PREFIX, LsaBody::InterAreaPrefix(body))
        }),
        (options(), metric_24(), router()).prop_map(|(options, metric, destination)| {
            let body = InterAreaRouterLsa { options, metric, destination };
            (LsaType::INTER_AREA_ROUTER, LsaBody::InterAreaRouter(body))
        }),
        external_lsa(longest).prop_map(|body| (LsaType::AS_EXTERNAL, body)),
        link_lsa(longest).prop_map(|body| (LsaType::LINK, body)),
        intra_area_prefix_lsa(longest).prop_map(|body| (LsaType::INTRA_AREA_PREFIX, body)),
    ]
}

fn unknown_lsa() -> impl Strategy<Value = (LsaType, LsaBody)> {
    let kind = any::<u16>().prop_filter("unknown", |kind| !LsaType(*kind).is_known());
    (kind, vec(any::<u8>(), 0..60)).prop_map(|(kind, bytes)| (LsaType(kind), LsaBody::Unknown(bytes.into())))
}

fn aged(body: impl Strategy<Value = (LsaType, LsaBody)>) -> impl Strategy<Value = AgedLsa> {
    (any::<u16>(), body, router(), any::<u32>(), any::<i32>()).prop_map(
        |(age, (kind, body), advertising, id, sequence)| {
            let key = LsaKey { kind, advertising, id: LinkStateId(id) };
            let lsa = Lsa::new(key, LsaSequence(sequence), body).expect("type and body fit");
            AgedLsa { age, lsa }
        },
    )
}

/// An advertisement of any type.
pub fn aged_lsa() -> impl Strategy<Value = AgedLsa> {
    aged(prop_oneof![4 => known_lsa(128), 1 => unknown_lsa()])
}

fn hello() -> impl Strategy<Value = Hello> {
    let fixed = (any::<u32>(), any::<u8>(), options(), any::<u16>(), any::<u16>(), router(), router());
    (fixed, vec(router(), 0..40)).prop_map(|(fixed, neighbors)| {
        let (interface, priority, options, hello_interval, router_dead_interval, parent, backup) = fixed;
        Hello {
            interface: InterfaceId(interface),
            priority,
            options,
            hello_interval,
            router_dead_interval,
            designated_router: parent,
            backup_designated_router: backup,
            neighbors,
        }
    })
}

fn description() -> impl Strategy<Value = DatabaseDescription> {
    let flags = any::<[bool; 4]>().prop_map(|[init, more, master, ipv6_mtu_differs]| DescriptionFlags {
        init,
        more,
        master,
        ipv6_mtu_differs,
    });
    (options(), any::<u16>(), flags, any::<u32>(), vec(header(), 0..20)).prop_map(
        |(options, interface_mtu, flags, sequence, headers)| DatabaseDescription {
            options,
            interface_mtu,
            flags,
            sequence,
            headers,
        },
    )
}

fn mdr_hello() -> impl Strategy<Value = MdrHello> {
    any::<(u16, bool, bool, [u8; 4])>().prop_map(|(sequence, full_adjacencies, differential, lists)| {
        let [down, init, dependent, selected_advertised] = lists;
        MdrHello { sequence, full_adjacencies, differential, down, init, dependent, selected_advertised }
    })
}

fn mdr_metric() -> impl Strategy<Value = MdrMetric> {
    let metrics = prop_oneof![
        vec((router(), any::<u16>()), 0..10).prop_map(MdrMetrics::Named),
        vec(any::<u16>(), 0..10).prop_map(MdrMetrics::InOrder),
    ];
    (any::<u16>(), metrics).prop_map(|(default, metrics)| MdrMetric { default, metrics })
}

fn tlv() -> impl Strategy<Value = Tlv> {
    prop_oneof![
        mdr_hello().prop_map(Tlv::MdrHello),
        (router(), router()).prop_map(|(designated_router, backup_designated_router)| {
            Tlv::MdrDescription(MdrDescription { designated_router, backup_designated_router })
        }),
        mdr_metric().prop_map(Tlv::MdrMetric),
        any::<u32>().prop_map(Tlv::Ipv6Mtu),
        (18..=u16::MAX, vec(any::<u8>(), 0..30)).prop_map(|(kind, value)| Tlv::Unknown { kind, value: value.into() }),
    ]
}

fn lls() -> impl Strategy<Value = Lls> {
    vec(tlv(), 0..5).prop_map(|tlvs| Lls { tlvs })
}

fn said(lsa: impl Strategy<Value = AgedLsa>) -> impl Strategy<Value = (Body, Option<Lls>)> {
    prop_oneof![
        (hello(), of(lls())).prop_map(|(hello, lls)| (Body::Hello(hello), lls)),
        (description(), of(lls())).prop_map(|(description, lls)| (Body::DatabaseDescription(description), lls)),
        vec(any_key(), 0..20).prop_map(|keys| (Body::LinkStateRequest(LinkStateRequest { keys }), None)),
        vec(lsa, 0..10).prop_map(|lsas| (Body::LinkStateUpdate(LinkStateUpdate { lsas }), None)),
        vec(header(), 0..20)
            .prop_map(|headers| (Body::LinkStateAcknowledgment(LinkStateAcknowledgment { headers }), None)),
    ]
}

fn packet_of(
    instance: impl Strategy<Value = u8>,
    lsa: impl Strategy<Value = AgedLsa>,
) -> impl Strategy<Value = Packet> {
    (router(), any::<u32>(), instance, said(lsa)).prop_map(|(router, area, instance, (body, lls))| Packet {
        router,
        area: AreaId(area),
        instance: InstanceId(instance),
        body,
        lls,
    })
}

/// Any packet that can be encoded.
pub fn packet() -> impl Strategy<Value = Packet> {
    packet_of(any::<u8>(), aged_lsa())
}

/// A packet whose prefixes fit the address family of its instance, without advertisements of unknown types.
pub fn packet_in_family() -> impl Strategy<Value = Packet> {
    prop_oneof![packet_of(0..32u8, aged(known_lsa(128))), packet_of(64..96u8, aged(known_lsa(32)))]
}

pub fn compatibility() -> impl Strategy<Value = Compatibility> {
    prop_oneof![Just(Compatibility::default()), Just(Compatibility::ACCEPTING), Just(Compatibility::ALIKE)]
}
