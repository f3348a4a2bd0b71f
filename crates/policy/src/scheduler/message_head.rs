//! The head of each message goes on two subflows, the rest on the fastest with room.
//!
//! An interactive application waits for the first bytes of an answer longer than for each of the others: they open the
//! page, or tell how much follows. Duplicated, they arrive with the faster of two subflows. The cost is bounded by
//! `head` per message, not by the length of the stream as with `redundant`.
//!
//! A message begins where nothing before it is unacknowledged: the engine does not know the application's messages.

use super::candidates::{excluded, fastest};
use super::{Answer, Chunk, Decision, Needs, Scheduler, Work, again, unsent};
use crate::table::{Number, Reader, SettingError};
use crate::view::{ConnectionView, SubflowView};

const HEAD: Number = Number {
    name: "head",
    unit: "kilobytes",
    default: 16.0,
    range: 1.0..=1024.0,
    summary: "How much at the beginning of each message goes on two subflows",
};

/// The scheduler `message_head`.
#[derive(Clone, Copy, Debug)]
pub struct MessageHead {
    /// Bytes at the beginning of a message that are duplicated.
    head: u64,
    /// Where the present message begins.
    begins: u64,
}

impl MessageHead {
    pub fn build(reader: &mut Reader<'_>) -> Result<Box<dyn Scheduler>, SettingError> {
        Ok(Box::new(Self { head: (reader.read(&HEAD)? * 1000.0) as u64, begins: 0 }))
    }

    /// A copy of the first outstanding data of the head, on the fastest other subflow with room.
    fn copy(&self, work: &mut dyn Work, subflows: &[SubflowView]) -> Option<Answer> {
        let mut after = None;
        while let Some(held) = work.outstanding(after) {
            if held.data_seq >= self.begins + self.head {
                return None;
            }
            if let Some(other) = fastest(subflows, Some(held.sender), held.length) {
                return Some(Answer::Copy(held, other.id));
            }
            after = Some(held.data_seq);
        }
        None
    }
}

impl Scheduler for MessageHead {
    fn next(&mut self, connection: &ConnectionView, work: &mut dyn Work, subflows: &[SubflowView]) -> Answer {
        if connection.data_una == connection.data_nxt {
            self.begins = connection.data_nxt;
        }
        again(self, connection, work, subflows)
            .or_else(|| self.copy(work, subflows))
            .or_else(|| unsent(self, connection, work, subflows))
            .unwrap_or(Answer::Wait)
    }

    fn schedule(&mut self, _connection: &ConnectionView, chunk: &Chunk, subflows: &[SubflowView]) -> Decision {
        Decision::on(fastest(subflows, excluded(chunk), chunk.length))
    }

    fn needs(&self) -> Needs {
        Needs { outstanding: true, ..Needs::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SubflowId;
    use crate::scheduler::pile::{Pile, new_at};
    use crate::scheduler::tests::{at, connection, subflow};
    use crate::scheduler::{Outstanding, TABLE};
    use crate::table::{Settings, build};

    fn held(data_seq: u64, sender: u32) -> Outstanding {
        Outstanding {
            data_seq,
            length: 1_000,
            sender: SubflowId(sender),
            sent_at: at(0),
            lost: false,
            unrepaired: false,
        }
    }

    fn outstanding_to(data_una: u64, data_nxt: u64) -> ConnectionView {
        ConnectionView { data_una, data_nxt, ..connection(0) }
    }

    #[test]
    fn the_head_of_a_message_is_duplicated_before_new_data_and_the_rest_is_not() {
        let mut scheduler = build(TABLE, "message_head", &Settings::new().with("head", 2)).unwrap();
        let paths = [subflow(0, 10), subflow(1, 50)];
        let mut next = |view: &ConnectionView, outstanding: &[Outstanding]| {
            let mut work =
                Pile { unsent: Some(new_at(view.data_nxt)), outstanding: outstanding.to_vec(), ..Pile::default() };
            scheduler.next(view, &mut work, &paths)
        };
        assert_eq!(next(&outstanding_to(0, 0), &[]), Answer::New(SubflowId(0)));
        assert_eq!(next(&outstanding_to(0, 1_000), &[held(0, 0)]), Answer::Copy(held(0, 0), SubflowId(1)));
        assert_eq!(next(&outstanding_to(0, 3_000), &[held(1_999, 0)]), Answer::Copy(held(1_999, 0), SubflowId(1)));
        assert_eq!(next(&outstanding_to(0, 3_000), &[held(2_000, 0)]), Answer::New(SubflowId(0)));
        // Everything is acknowledged: what follows is another message.
        assert_eq!(next(&outstanding_to(9_000, 9_000), &[]), Answer::New(SubflowId(0)));
        assert_eq!(next(&outstanding_to(9_000, 10_000), &[held(9_000, 0)]), Answer::Copy(held(9_000, 0), SubflowId(1)));
        assert_eq!(next(&outstanding_to(9_000, 12_000), &[held(11_000, 0)]), Answer::New(SubflowId(0)));
    }

    #[test]
    fn without_another_subflow_with_room_the_stream_goes_on() {
        let mut scheduler = build(TABLE, "message_head", &Settings::new()).unwrap();
        let mut paths = [subflow(0, 10), subflow(1, 50)];
        paths[1].in_flight = 10_000;
        let mut work = Pile { unsent: Some(new_at(1_000)), outstanding: vec![held(0, 0)], ..Pile::default() };
        assert_eq!(scheduler.next(&outstanding_to(0, 1_000), &mut work, &paths), Answer::New(SubflowId(0)));
    }

    #[test]
    fn it_looks_at_what_is_outstanding() {
        let scheduler = build(TABLE, "message_head", &Settings::new()).unwrap();
        assert_eq!(scheduler.needs(), Needs { outstanding: true, ..Needs::default() });
    }
}
