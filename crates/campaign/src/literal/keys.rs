//! Values derived from the keys (RFC 8684, sections 3.1, 3.2, 3.4.1), with one HMAC over the concatenation of fields.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::net::IpAddr;

/// The most significant 32 bits of SHA-256 of the key.
pub fn token(key: u64) -> u32 {
    let hash = Sha256::digest(key.to_be_bytes());
    u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])
}

/// The least significant 64 bits of it.
pub fn initial_data_sequence(key: u64) -> u64 {
    let hash = Sha256::digest(key.to_be_bytes());
    last_eight(&hash)
}

fn last_eight(hash: &[u8]) -> u64 {
    hash[24..32].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn hmac(key_a: u64, key_b: u64, message: &[u8]) -> [u8; 32] {
    let key = [key_a.to_be_bytes(), key_b.to_be_bytes()].concat();
    let mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of every length");
    mac.chain_update(message).finalize().into_bytes().into()
}

/// The HMAC of a join by the owner of `key` towards that of `other`.
pub fn join(key: u64, other: u64, nonce: u32, other_nonce: u32) -> [u8; 32] {
    hmac(key, other, &[nonce.to_be_bytes(), other_nonce.to_be_bytes()].concat())
}

/// Its leftmost 64 bits, as in a SYN/ACK.
pub fn left_64(hash: &[u8; 32]) -> u64 {
    hash[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Its leftmost 160 bits, as in the third segment.
pub fn left_160(hash: &[u8; 32]) -> [u8; 20] {
    let mut left = [0; 20];
    left.copy_from_slice(&hash[..20]);
    left
}

/// The HMAC of an ADD_ADDR: the rightmost 64 bits.
pub fn address(key: u64, other: u64, id: u8, address: IpAddr, port: Option<u16>) -> u64 {
    let mut message = vec![id];
    match address {
        IpAddr::V4(address) => message.extend(address.octets()),
        IpAddr::V6(address) => message.extend(address.octets()),
    }
    message.extend(port.unwrap_or(0).to_be_bytes());
    last_eight(&hmac(key, other, &message))
}
