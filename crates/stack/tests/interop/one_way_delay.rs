//! Our receiver names a slow path by its forward delay: the kernel leaves it, and uses it again when MP_PRIO says so.

use crate::field::{Field, field_of, in_both_families, links};
use crate::middlebox::{Seen, Way};
use crate::priority::{on_second_path, two_paths_with};
use anabranch_mptcp::BufferSize;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Duration as Span;
use anabranch_sim::LinkConfig;
use anabranch_wire::MptcpOption;
use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    in_both_families(
        "one_way_delay",
        &[("the_kernel_leaves_the_path_that_our_receiver_names_and_takes_it_up_again", the_kernel_leaves)],
    )
}

/// How often we said on the slow path that it is a backup, or is none any more. In the first round trip, when nothing has come
/// on it yet, it is the other that is named.
fn said(field: &Field, wanted: bool) -> usize {
    let fits = |option: &MptcpOption| matches!(option, MptcpOption::Priority { backup } if *backup == wanted);
    let names = |seen: &Seen| seen.way == Way::ToKernel && seen.packet.segment.options.mptcp.iter().any(fits);
    field.boxes[1].seen(names).len()
}

fn the_kernel_leaves(v6: bool) {
    // Two megabits a second, and 60 ms either way, where the first path has forty and 5 ms.
    let slow = LinkConfig::new(Rate::from_bits_per_second(2_000_000), Span::from_millis(60), 1_000);
    // Nothing comes on a path that the kernel has left, so it is the time without data that brings it back.
    let words = "path_manager=one_way_delay path_manager.announce=never path_manager.average=weighted \
                 path_manager.return_after=2";
    field_of(&[links(), [slow.clone(), slow]], v6, Some(words), |field| async move {
        let mut config = field.config();
        config.receive_buffer = BufferSize::Fixed(64 * 1024);
        let (mut stream, kernel, _) = two_paths_with(&field, false, config).await;
        let mut used = 0;
        while said(&field, true) == 0 {
            used += on_second_path(&field, &mut stream, &kernel, Way::ToUs).await;
        }
        assert!(used > 0, "it was named without having been used");
        // What was under way when it heard of it.
        on_second_path(&field, &mut stream, &kernel, Way::ToUs).await;
        assert_eq!(said(&field, false), 0);
        assert_eq!(on_second_path(&field, &mut stream, &kernel, Way::ToUs).await, 0, "it is a backup now");
        let mut since = 0;
        while said(&field, false) == 0 || since == 0 {
            since = on_second_path(&field, &mut stream, &kernel, Way::ToUs).await;
        }
    });
}
