//! What anyone sends to a datagram server or client, and what is inside once it is opened: no bytes make the readers panic, and what
//! they accept means the same again.

#![no_main]

use anabranch_datagram::format::{Message, Outer, read_message, read_outer, write_data, write_message};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some(Outer::Sealed(header)) = read_outer(data) {
        assert_eq!(data.get(..header.bytes().len()), Some(header.bytes().as_slice()));
    }
    let Some((stamp, message)) = read_message(data) else { return };
    let mut again = Vec::new();
    match &message {
        Message::Data(data, payload) => write_data(stamp, data, payload, &mut again),
        other => write_message(stamp, other, &mut again),
    }
    assert_eq!(read_message(&again), Some((stamp, message)));
});
