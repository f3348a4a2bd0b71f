//! Blocks compared with bytes by hand from draft-ietf-opsawg-pcapng, sections 4.1 to 4.3.

use super::*;

#[test]
fn a_file_of_one_packet_is_three_blocks() {
    let mut writer = Writer::new(Vec::new(), "ab").unwrap();
    let interface = writer.add_interface("eth0", "").unwrap();
    let time = 0x0102_0304_0506_0708;
    let note = PacketNote { direction: Some(Direction::Outbound), comment: Some("hello") };
    writer.write_packet(interface, time, &[0x45, 1, 2, 3, 4], note).unwrap();
    let bytes = writer.finish().unwrap();
    #[rustfmt::skip]
    assert_eq!(bytes, [
        // Section header: 40 bytes.
        0x0a, 0x0d, 0x0d, 0x0a, 40, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        4, 0, 2, 0, b'a', b'b', 0, 0, 0, 0, 0, 0, 40, 0, 0, 0,
        // Interface description: 40 bytes.
        1, 0, 0, 0, 40, 0, 0, 0, 101, 0, 0, 0, 0, 0, 0, 0,
        2, 0, 4, 0, b'e', b't', b'h', b'0', 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0,
        // Enhanced packet: 64 bytes.
        6, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 4, 3, 2, 1, 8, 7, 6, 5,
        5, 0, 0, 0, 5, 0, 0, 0, 0x45, 1, 2, 3, 4, 0, 0, 0,
        1, 0, 5, 0, b'h', b'e', b'l', b'l', b'o', 0, 0, 0, 2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0,
    ]);
}

#[test]
fn a_packet_without_comment_has_no_options() {
    let mut writer = Writer::new(Vec::new(), "ab").unwrap();
    let interface = writer.add_interface("eth0", "").unwrap();
    writer.write_packet(interface, 0, &[0x45; 20], PacketNote::default()).unwrap();
    let bytes = writer.finish().unwrap();
    assert_eq!(bytes[80..88], [6, 0, 0, 0, 52, 0, 0, 0]);
    assert_eq!(bytes.len(), 80 + 52);
}

#[test]
fn a_long_comment_is_cut_and_the_block_stays_whole() {
    let mut writer = Writer::new(Vec::new(), "ab").unwrap();
    let interface = writer.add_interface("eth0", "").unwrap();
    let comment = "x".repeat(70_000);
    let note = PacketNote { direction: None, comment: Some(&comment) };
    writer.write_packet(interface, 0, &[0x45; 20], note).unwrap();
    let block = &writer.finish().unwrap()[80..];
    // 12 around, 20 fixed, 20 of packet, 4 + 65 535 + 1 of comment, 4 to end the options.
    assert_eq!(block.len(), 12 + 20 + 20 + 65_540 + 4);
    assert_eq!(block[4..8], (block.len() as u32).to_le_bytes());
    assert_eq!(block[block.len() - 4..], (block.len() as u32).to_le_bytes());
}
