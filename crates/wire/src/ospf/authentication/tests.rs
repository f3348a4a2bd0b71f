use super::*;
use crate::ospf::{
    AreaId, Body, DatabaseDescription, Hello, InstanceId, LinkStateAcknowledgment, Options, RouterId, Tlv,
};

const SOURCE: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const WAYS: Compatibility = Compatibility {
    accept_misplaced_mdr_bits: false,
    send_misplaced_mdr_bits: false,
    accept_checksum_over_lls: false,
    send_checksum_over_lls: false,
};

fn packet(body: Body, lls: Option<Lls>) -> Packet {
    Packet { router: RouterId(0xc001_0103), area: AreaId(1), instance: InstanceId(65), body, lls }
}

fn hello() -> Packet {
    packet(Body::Hello(Hello::default()), Some(Lls { tlvs: vec![Tlv::Ipv6Mtu(1500)] }))
}

fn association(key: &[u8]) -> SecurityAssociation {
    SecurityAssociation::new(0x1234, Algorithm::HmacSha256, key.to_vec())
}

fn sent(packet: &Packet, association: &SecurityAssociation) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.encode_authenticated(SOURCE, association, 0x1_0000_0002, WAYS, &mut bytes).unwrap();
    bytes
}

fn believed(bytes: &[u8], association: &SecurityAssociation) -> Result<(), AuthenticationError> {
    Trailer::read(bytes)?.verify(bytes, SOURCE, association)
}

/// Digests over an empty acknowledgment, computed by the steps of section 4.5 with hashes of another library: a key
/// shorter than a digest, and a longer one.
#[test]
fn the_digest_is_that_of_section_4_5() {
    let acknowledgment = packet(Body::LinkStateAcknowledgment(LinkStateAcknowledgment::default()), None);
    let long: Vec<u8> = (0..100).collect();
    for (algorithm, key, digest) in [
        (
            Algorithm::HmacSha256,
            b"secret".as_slice(),
            "9f858b518313267c8caee4c3854f142ef925dd123f06fcbb9c85fc0e13127e46",
        ),
        (Algorithm::HmacSha256, &long, "e76fa7ce5ed01582b06229fa80c01ef66d1addead4344255841b2a5202bb418f"),
        (
            Algorithm::HmacSha384,
            b"secret",
            "984e26d30733e06d1369ebb08f544cf4c2df22aa06e26a8ef7ee03a22251022b\
             1a4a55cbaaf784c8b657531ac03dd108",
        ),
        (
            Algorithm::HmacSha384,
            &long,
            "2a9d1a35e8024d2a0d02b8c295a9a9c549ac65e9229d1b4a071d8ccdcdbc7def\
             a2d2a85d6cae202890e1cd790a336394",
        ),
        (
            Algorithm::HmacSha512,
            b"secret",
            "30fdc00607dd43b0052386d0efe045167c150eff6d766c83ffaac06ce8730231\
             d986e2b1072439efd9426f6b2ce95a73f21285ce075e5cb0622669058c544e7b",
        ),
        (
            Algorithm::HmacSha512,
            &long,
            "95ecc5565c498ce10fe1f5022d4e06184d3c49f343918c8832075c80c2a6e438\
             c5010165a33416814873cc0dd064ef3f4add8d85585a87e1e39f13f8f1179548",
        ),
    ] {
        let association = SecurityAssociation::new(0x1234, algorithm, key.to_vec());
        let bytes = sent(&acknowledgment, &association);
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let trailer = format!("0001{:04x}0000123400000001{:08x}", 16 + digest.len() / 2, 2);
        assert_eq!(text, format!("03050010c00101030000000100004100{trailer}{digest}"));
        assert_eq!(believed(&bytes, &association), Ok(()));
    }
}

/// A Hello as FRR 8.4.4 sent it from fe80::a0c6:a6ff:fef0:a471 with this key.
#[test]
fn frr_s_hello_is_authentic_with_the_protocols_number_as_it_has_it() {
    let text = "03010024010101010000000000000000000000020100041300010004000000000000000000010030\
                000001020000000300000001bc6a7725b53d53324359058b355addd2f0e136f64cc10b3d8f58c03631f58b04";
    let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
    let bytes: Vec<u8> = digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect();
    let source = Ipv6Addr::new(0xfe80, 0, 0, 0, 0xa0c6, 0xa6ff, 0xfef0, 0xa471);
    let trailer = Trailer::read(&bytes).unwrap();
    assert_eq!((trailer.association, trailer.sequence), (258, 0x3_0000_0001));
    let rfc = SecurityAssociation::new(258, Algorithm::HmacSha256, b"secret-of-the-mesh".to_vec());
    let frr = SecurityAssociation { protocol_id: ProtocolId::Swapped, ..rfc.clone() };
    assert_eq!(trailer.verify(&bytes, source, &frr), Ok(()));
    assert_eq!(trailer.verify(&bytes, source, &rfc), Err(AuthenticationError::WrongDigest));
}

#[test]
fn hellos_and_descriptions_announce_the_trailer_and_have_no_checksums() {
    let description = packet(Body::DatabaseDescription(DatabaseDescription::default()), None);
    for (packet, options_at) in [(hello(), 21), (description, 17)] {
        let bytes = sent(&packet, &association(b"k"));
        let [_, middle, _] = *bytes[options_at..].first_chunk::<3>().unwrap();
        let expected = Options::AT.with(if packet.lls.is_some() { Options::L } else { Options::NONE });
        assert_eq!(u32::from(middle) << 8, expected.bits());
        assert_eq!(bytes[12..14], [0, 0]);
        let lls = packet.encoded_len() - packet.lls.as_ref().map_or(0, Lls::encoded_len);
        assert!(packet.lls.is_none() || bytes[lls..lls + 2] == [0, 0]);
        let decoded = Packet::decode(&bytes, Integrity::Authenticated, WAYS).unwrap();
        assert_eq!((decoded.packet, decoded.dropped_lls), (packet, None));
    }
}

#[test]
fn another_key_address_or_algorithm_is_not_believed() {
    let bytes = sent(&hello(), &association(b"right"));
    assert_eq!(believed(&bytes, &association(b"right")), Ok(()));
    assert_eq!(believed(&bytes, &association(b"wrong")), Err(AuthenticationError::WrongDigest));
    assert_eq!(believed(&bytes, &association(b"")), Err(AuthenticationError::WrongDigest));
    let stronger = SecurityAssociation { algorithm: Algorithm::HmacSha512, ..association(b"right") };
    assert_eq!(believed(&bytes, &stronger), Err(AuthenticationError::BadLength));
    let elsewhere = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);
    let trailer = Trailer::read(&bytes).unwrap();
    assert_eq!(trailer.verify(&bytes, elsewhere, &association(b"right")), Err(AuthenticationError::WrongDigest));
    // The number of the association is not part of the key: the caller must compare it.
    assert_eq!((trailer.association, trailer.sequence), (0x1234, 0x1_0000_0002));
}

#[test]
fn a_trailer_that_is_not_there_or_makes_no_sense_is_refused() {
    let association = association(b"k");
    let bytes = sent(&hello(), &association);
    let at = hello().encoded_len();
    let with = |change: fn(&mut Vec<u8>, usize)| {
        let mut bytes = bytes.clone();
        change(&mut bytes, at);
        believed(&bytes, &association)
    };
    assert_eq!(with(|bytes, at| bytes.truncate(at)), Err(AuthenticationError::NoTrailer));
    assert_eq!(with(|bytes, at| bytes.truncate(at + 15)), Err(AuthenticationError::NoTrailer));
    assert_eq!(with(|bytes, at| bytes.truncate(at + 47)), Err(AuthenticationError::BadLength));
    assert_eq!(with(|bytes, at| bytes[at + 1] = 2), Err(AuthenticationError::UnknownType));
    assert_eq!(with(|bytes, at| bytes[at + 3] = 15), Err(AuthenticationError::BadLength));
    assert_eq!(with(|bytes, at| bytes[at + 3] = 49), Err(AuthenticationError::BadLength));
    assert_eq!(with(|bytes, at| bytes[at + 3] = 44), Err(AuthenticationError::BadLength));
    assert_eq!(with(|bytes, _| bytes[22] &= !4), Err(AuthenticationError::NoTrailer));
    assert_eq!(with(|bytes, at| bytes[at - 9] = 0xff), Err(AuthenticationError::NoTrailer), "the signalling's length");
    assert_eq!(with(|bytes, _| bytes[0] = 2), Err(AuthenticationError::NoPacket));
    assert_eq!(with(|bytes, _| bytes.truncate(20)), Err(AuthenticationError::NoPacket));
}

#[test]
fn a_packet_that_leaves_no_room_for_its_trailer_is_not_encoded() {
    let with = |count| {
        let neighbors = vec![RouterId(1); count];
        packet(Body::Hello(Hello { neighbors, ..Hello::default() }), None)
    };
    // 65 535 - 36 - 48 bytes leave room for 16 362 neighbours.
    let encode = |packet: Packet| {
        let mut bytes = Vec::new();
        let result = packet.encode_authenticated(SOURCE, &association(b"k"), 1, WAYS, &mut bytes);
        (result, bytes.is_empty())
    };
    assert_eq!(encode(with(16_362)), (Ok(()), false));
    assert_eq!(encode(with(16_363)), (Err(EmitError::TooLong), true));
}

#[test]
fn a_key_is_not_printed() {
    assert!(!format!("{:?}", association(b"secret")).contains("secret"));
    assert!(!format!("{:?}", association(b"secret")).contains("115"));
}

#[test]
fn a_trailer_that_says_it_is_longer_than_what_came_is_refused_before_its_digest_is_looked_for() {
    let association = association(b"secret");
    let bytes = sent(&hello(), &association);
    for cut in 1..association.algorithm.digest_len() {
        let cut = bytes.get(..bytes.len() - cut).unwrap();
        assert_eq!(Trailer::read(cut).map(|_| ()), Err(AuthenticationError::BadLength));
    }
    // Bytes after it are not part of it (section 2.2).
    let followed = [&bytes[..], &[0; 3]].concat();
    assert_eq!(believed(&followed, &association), Ok(()));
}
