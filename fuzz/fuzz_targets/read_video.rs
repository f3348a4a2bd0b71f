//! Streams of video, whole and in pieces, and traces: whatever the bytes are, they are read or refused.

#![no_main]

use anabranch_media::cut::Cutter;
use anabranch_media::elementary::Reader;
use anabranch_media::{ElementaryStream, FrameRate, Trace};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let (Ok(stream), Some(rate)) = (ElementaryStream::read(bytes), FrameRate::new(30, 1)) {
        let kept: usize = stream.pictures.iter().map(|picture| picture.data.len()).sum();
        assert!(kept <= bytes.len());
        if let Ok(trace) = stream.trace(rate) {
            assert_eq!(Trace::from_text(&trace.to_text()), Ok(trace));
        }
    }
    let mut reader = Reader::new();
    for piece in bytes.chunks(7) {
        if reader.handle_bytes(piece).is_err() {
            break;
        }
        while reader.poll_picture().is_some() {}
    }
    let mut cutter = Cutter::new(None);
    let _ = cutter.push(bytes).and_then(|_| cutter.finish());
    let _ = Trace::from_text(&String::from_utf8_lossy(bytes));
});
