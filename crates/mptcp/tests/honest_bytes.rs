//! Random operations against two endpoints with loss, duplication, reordering, corruption, resets, path failures and
//! recoveries. Bytes arrive once, in order and unchanged, or the connection ends with an error at both ends. Memory
//! stays within its limits, and every connection ends.
//!
//! `ANABRANCH_CASES` sets the number of cases (2,000 if not set), `ANABRANCH_SEED` the seed they follow from.

mod honest;
mod pair;

use honest::case::Kind;

#[test]
fn plain_tcp_delivers_all_bytes_or_fails_at_both_ends() {
    honest::run(Kind::Plain, "plain TCP");
}

#[test]
fn multipath_delivers_all_bytes_or_fails_at_both_ends() {
    honest::run(Kind::Multipath, "MPTCP");
}

#[test]
fn multipath_with_checksums_survives_middleboxes_that_change_payload() {
    honest::run(Kind::Checksums, "MPTCP with checksums");
}

#[test]
fn hosts_of_different_minds_agree_on_a_protocol_and_deliver() {
    honest::run(Kind::Mixed, "mixed");
}
