//! Keys of a connection, and the tokens, sequence numbers and HMACs computed from them (RFC 8684, sections 3.1, 3.2,
//! 3.4.1).

use core::fmt;
use core::net::IpAddr;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// A host's key of one connection, as in MP_CAPABLE (RFC 8684, section 3.1).
///
/// `Debug` does not print it: whoever knows both keys can join the connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub u64);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(secret)")
    }
}

/// Values that both ends compute from one key (RFC 8684, section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Derived {
    /// Identifies the connection in MP_JOIN: the most significant 32 bits of SHA-256(key).
    pub token: u32,
    /// Initial data sequence number of the key's owner: the least significant 64 bits of SHA-256(key). The first byte
    /// of data has the next number.
    pub initial_data_seq: u64,
}

impl Derived {
    /// Data sequence number on the wire of an offset in the stream of the key's owner (RFC 8684, section 3.1).
    pub const fn data_seq(&self, offset: u64) -> u64 {
        self.initial_data_seq.wrapping_add(1).wrapping_add(offset)
    }
}

impl Key {
    /// Hashes the key in network byte order.
    pub fn derive(self) -> Derived {
        let digest: [u8; 32] = Sha256::digest(self.0.to_be_bytes()).into();
        Derived { token: (leftmost_u64(&digest) >> 32) as u32, initial_data_seq: rightmost_u64(&digest) }
    }
}

/// Both keys of a connection.
///
/// The HMAC of a message is keyed with the sender's key followed by the receiver's (RFC 8684, section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Keys {
    pub local: Key,
    pub remote: Key,
}

impl Keys {
    /// HMAC of our SYN/ACK with MP_JOIN: the leftmost 64 bits (RFC 8684, figure 6).
    pub fn sign_join_syn_ack(&self, local_nonce: u32, remote_nonce: u32) -> u64 {
        leftmost_u64(&finish(join_hmac(self.local, self.remote, local_nonce, remote_nonce)))
    }

    /// Checks the HMAC of the peer's SYN/ACK with MP_JOIN in constant time.
    pub fn verify_join_syn_ack(&self, local_nonce: u32, remote_nonce: u32, truncated_hmac: u64) -> bool {
        let expected = join_hmac(self.remote, self.local, remote_nonce, local_nonce);
        expected.verify_truncated_left(&truncated_hmac.to_be_bytes()).is_ok()
    }

    /// HMAC of our third ACK with MP_JOIN: the leftmost 160 bits (RFC 8684, figure 7).
    pub fn sign_join_ack(&self, local_nonce: u32, remote_nonce: u32) -> [u8; 20] {
        let mut leftmost = [0; 20];
        for (to, from) in leftmost.iter_mut().zip(finish(join_hmac(self.local, self.remote, local_nonce, remote_nonce)))
        {
            *to = from;
        }
        leftmost
    }

    /// Checks the HMAC of the peer's third ACK with MP_JOIN in constant time.
    pub(crate) fn verify_join_ack(&self, local_nonce: u32, remote_nonce: u32, hmac: &[u8; 20]) -> bool {
        join_hmac(self.remote, self.local, remote_nonce, local_nonce).verify_truncated_left(hmac).is_ok()
    }

    /// HMAC of our ADD_ADDR: the rightmost 64 bits (RFC 8684, section 3.4.1).
    pub fn sign_add_address(&self, address_id: u8, address: IpAddr, port: Option<u16>) -> u64 {
        rightmost_u64(&finish(add_address_hmac(self.local, self.remote, address_id, address, port)))
    }

    /// Checks the HMAC of the peer's ADD_ADDR in constant time.
    pub fn verify_add_address(&self, address_id: u8, address: IpAddr, port: Option<u16>, truncated_hmac: u64) -> bool {
        let expected = add_address_hmac(self.remote, self.local, address_id, address, port);
        expected.verify_truncated_right(&truncated_hmac.to_be_bytes()).is_ok()
    }
}

/// An HMAC keyed with the sender's key, then the receiver's.
fn keyed(sender: Key, receiver: Key) -> Hmac<Sha256> {
    let mut key = [0; 16];
    for (to, from) in key.iter_mut().zip(sender.0.to_be_bytes().into_iter().chain(receiver.0.to_be_bytes())) {
        *to = from;
    }
    Hmac::new_from_slice(&key).expect("HMAC takes keys of every length")
}

/// HMAC of a join: the sender's random number, then the receiver's (RFC 8684, section 3.2).
fn join_hmac(sender: Key, receiver: Key, sender_nonce: u32, receiver_nonce: u32) -> Hmac<Sha256> {
    keyed(sender, receiver).chain_update(sender_nonce.to_be_bytes()).chain_update(receiver_nonce.to_be_bytes())
}

/// HMAC of an announcement: identifier, address, port. A missing port is two zero octets (RFC 8684, section 3.4.1).
fn add_address_hmac(sender: Key, receiver: Key, id: u8, address: IpAddr, port: Option<u16>) -> Hmac<Sha256> {
    let hmac = keyed(sender, receiver).chain_update([id]);
    let hmac = match address {
        IpAddr::V4(address) => hmac.chain_update(address.octets()),
        IpAddr::V6(address) => hmac.chain_update(address.octets()),
    };
    hmac.chain_update(port.unwrap_or(0).to_be_bytes())
}

fn finish(hmac: Hmac<Sha256>) -> [u8; 32] {
    hmac.finalize().into_bytes().into()
}

fn leftmost_u64(digest: &[u8; 32]) -> u64 {
    digest.iter().take(8).fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn rightmost_u64(digest: &[u8; 32]) -> u64 {
    digest.iter().skip(24).fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    //! The expected numbers come from an independent implementation of SHA-256 and HMAC (Python's `hashlib`, `hmac`).

    use super::*;

    const A: Key = Key(0x0102_0304_0506_0708);
    const B: Key = Key(0x1112_1314_1516_1718);
    const HOST_A: Keys = Keys { local: A, remote: B };
    const HOST_B: Keys = Keys { local: B, remote: A };
    const NONCE_A: u32 = 0xa1a2_a3a4;
    const NONCE_B: u32 = 0xb1b2_b3b4;

    #[test]
    fn token_and_initial_sequence_are_the_two_ends_of_the_hash() {
        let cases = [
            (0x0102_0304_0506_0708, 0x6684_0dda, 0xf5a1_01d3_d29d_6f72),
            (0xdead_beef_cafe_f00d, 0x3214_d3b4, 0x485b_e438_0370_c6fd),
            (0, 0xaf55_70f5, 0xe5b2_328d_e0e8_3dfc),
        ];
        for (key, token, initial_data_seq) in cases {
            assert_eq!(Key(key).derive(), Derived { token, initial_data_seq }, "key {key:#x}");
        }
    }

    #[test]
    fn the_syn_ack_of_a_join_carries_the_leftmost_64_bits_and_is_believed() {
        let tag = HOST_B.sign_join_syn_ack(NONCE_B, NONCE_A);
        assert_eq!(tag, 0x864b_4042_8762_fd06);
        assert!(HOST_A.verify_join_syn_ack(NONCE_A, NONCE_B, tag));
    }

    #[test]
    fn the_third_ack_of_a_join_carries_the_leftmost_160_bits_and_is_believed() {
        let tag = HOST_A.sign_join_ack(NONCE_A, NONCE_B);
        let expected = [
            0x53, 0x03, 0x7f, 0x28, 0x99, 0x47, 0x55, 0x29, 0x84, 0x41, 0x15, 0xfd, 0x07, 0xe6, 0x65, 0xd2, 0x3d, 0x35,
            0x54, 0xfb,
        ];
        assert_eq!(tag, expected);
        assert!(HOST_B.verify_join_ack(NONCE_B, NONCE_A, &tag));
    }

    #[test]
    fn an_announcement_carries_the_rightmost_64_bits_and_is_believed() {
        let v4: IpAddr = "192.0.2.7".parse().unwrap();
        let v6: IpAddr = "2001:db8::42".parse().unwrap();
        let cases = [
            (5, v4, None, 0x45b1_5d88_d487_ac23),
            (5, v4, Some(8080), 0xa590_4617_87d7_cea7),
            (9, v6, None, 0xe9b7_085e_a536_dc0b),
            (9, v6, Some(443), 0x0ab7_b03d_71d0_da8f),
        ];
        for (id, address, port, expected) in cases {
            assert_eq!(HOST_A.sign_add_address(id, address, port), expected, "{id} {address} {port:?}");
            assert!(HOST_B.verify_add_address(id, address, port, expected));
        }
    }

    #[test]
    fn one_wrong_bit_anywhere_is_not_believed() {
        let syn_ack = HOST_B.sign_join_syn_ack(NONCE_B, NONCE_A);
        let ack = HOST_A.sign_join_ack(NONCE_A, NONCE_B);
        let address: IpAddr = "192.0.2.7".parse().unwrap();
        let announcement = HOST_A.sign_add_address(5, address, None);
        for bit in 0..64 {
            assert!(!HOST_A.verify_join_syn_ack(NONCE_A, NONCE_B, syn_ack ^ 1 << bit));
            assert!(!HOST_B.verify_add_address(5, address, None, announcement ^ 1 << bit));
        }
        for bit in 0..160 {
            let mut wrong = ack;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(!HOST_B.verify_join_ack(NONCE_B, NONCE_A, &wrong));
        }
        assert!(!HOST_B.verify_add_address(6, address, None, announcement));
        assert!(!HOST_B.verify_add_address(5, address, Some(80), announcement));
    }

    #[test]
    fn a_proof_sent_back_to_its_sender_is_not_believed() {
        assert!(!HOST_A.verify_join_ack(NONCE_A, NONCE_B, &HOST_A.sign_join_ack(NONCE_A, NONCE_B)));
        assert!(!HOST_B.verify_join_syn_ack(NONCE_B, NONCE_A, HOST_B.sign_join_syn_ack(NONCE_B, NONCE_A)));
        let address: IpAddr = "192.0.2.7".parse().unwrap();
        assert!(!HOST_A.verify_add_address(5, address, None, HOST_A.sign_add_address(5, address, None)));
    }

    #[test]
    fn a_key_does_not_show_itself_when_printed() {
        assert_eq!(format!("{:?}", Key(12_345)), "Key(secret)");
    }
}
