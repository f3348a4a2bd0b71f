use super::*;

#[test]
fn a_hello_is_as_long_as_its_parts() {
    let hello = Hello { neighbors: vec![RouterId(1), RouterId(2)], ..Hello::default() };
    let lls = Lls { tlvs: vec![Tlv::MdrHello(lls::MdrHello::default())] };
    let packet = Packet {
        router: RouterId(9),
        area: AreaId::BACKBONE,
        instance: InstanceId::IPV4,
        body: Body::Hello(hello),
        lls: Some(lls),
    };
    // Header 16, Hello 20, two neighbours 8, block header 4, value 4 + 8.
    assert_eq!(packet.encoded_len(), 16 + 20 + 8 + 4 + 12);
}
