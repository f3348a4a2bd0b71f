//! The fragment of the page's address, which carries its state.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt::Write as _;

/// The scenario of a link.
pub enum Source<'a> {
    /// The name of a built-in one.
    Name(&'a str),
    /// A TOML text.
    Text(String),
}

/// Greatest block of a stored text (RFC 1951, 3.2.4).
const BLOCK: usize = 65_535;

/// The fragment, without its sign.
pub fn fragment(source: &Source<'_>, policies: &[String], seed: u64) -> String {
    let mut fragment = match source {
        Source::Name(name) => format!("scenario={}", escaped(name)),
        Source::Text(text) => format!("toml={}", URL_SAFE_NO_PAD.encode(stored(text.as_bytes()))),
    };
    for policy in policies {
        let _ = write!(fragment, "&policy={}", escaped(policy));
    }
    let _ = write!(fragment, "&seed={seed}");
    fragment
}

/// The text as deflate has it, in blocks that are not compressed: the page unpacks deflate, and a link on this machine may be
/// long.
fn stored(text: &[u8]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(text.len() + 8);
    let blocks = text.len().div_ceil(BLOCK).max(1);
    for at in 0..blocks {
        let block = text.get(at * BLOCK..text.len().min((at + 1) * BLOCK)).unwrap_or_default();
        let length = block.len() as u16;
        packed.push(u8::from(at + 1 == blocks));
        packed.extend(length.to_le_bytes());
        packed.extend((!length).to_le_bytes());
        packed.extend(block);
    }
    packed
}

fn escaped(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_in_scenario_is_named_and_names_are_escaped() {
        let policies = ["case_2_lm3@papers_simulator".to_owned()];
        let made = fragment(&Source::Name("lm3_motivation"), &policies, 7);
        assert_eq!(made, "scenario=lm3_motivation&policy=case_2_lm3%40papers_simulator&seed=7");
    }

    #[test]
    fn rfc1951_3_2_4_a_text_is_stored_in_blocks() {
        assert_eq!(stored(b"ab"), [1, 2, 0, 0xfd, 0xff, b'a', b'b']);
        assert_eq!(stored(b""), [1, 0, 0, 0xff, 0xff]);
        let long = stored(&[b'x'; BLOCK + 1]);
        assert_eq!((long.len(), long[0], long[BLOCK + 5], long[BLOCK + 6]), (BLOCK + 1 + 10, 0, 1, 1));
        assert_eq!(fragment(&Source::Text("ab".to_owned()), &[], 1), "toml=AQIA_f9hYg&seed=1");
    }
}
