//! State of the database exchange with one neighbour (RFC 2328, 10).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_policy::Instant;
use anabranch_wire::ospf::{Body, DatabaseDescription, DescriptionFlags, LsaHeader, LsaKey, Options, Packet, RouterId};

use crate::timers::{Timer, TimerTable};

/// The timers of the exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ExchangeTimer {
    /// The last Database Description is retransmitted (master), or discarded (slave, after the exchange).
    Description,
    /// The Link State Request is sent again.
    Request,
}

impl Timer for ExchangeTimer {
    fn index(self) -> usize {
        self as usize
    }
}

/// The role of this router in the exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Role {
    Master,
    #[default]
    Slave,
}

/// Result of a Database Description in state ExStart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Negotiation {
    /// The roles are decided.
    Done,
    /// The neighbour, which will be the slave, has not received our first description.
    Unheard,
    Ignored,
}

#[derive(Default)]
pub(crate) struct Exchange {
    /// Sequence number of its Database Descriptions; none before the first attempt.
    pub sequence: Option<u32>,
    pub role: Role,
    /// Database summary list: LSAs still to be described.
    pub summary: BTreeSet<LsaKey>,
    /// The last Database Description sent.
    pub sent: Option<Arc<Packet>>,
    /// Flags, options and sequence number of the last one accepted.
    pub received: Option<(DescriptionFlags, Options, u32)>,
    /// Link state request list: LSAs that the neighbour has and this router lacks.
    pub requests: BTreeMap<LsaKey, LsaHeader>,
    /// The keys of the outstanding Link State Request.
    pub requested: BTreeSet<LsaKey>,
    pub timers: TimerTable<ExchangeTimer, 2>,
    /// How often the last description or request was repeated.
    pub repeated: u32,
    /// The number of requests when LSAs last arrived.
    pub requests_left: usize,
    /// Since when the neighbour waits, in state ExStart, for the end of exchanges with others.
    pub held: Option<Instant>,
}

impl Exchange {
    /// Clears everything except the sequence number.
    pub fn clear(&mut self) {
        *self = Self { sequence: self.sequence, ..Self::default() };
    }

    /// Restarts as the master, with `first` as the sequence number of the first attempt.
    pub fn begin(&mut self, first: u32) {
        self.sequence = Some(self.sequence.map_or(first, |sequence| sequence.wrapping_add(1)));
        self.role = Role::Master;
    }

    /// Decides who is the master by a description from `router`, if possible (RFC 2328, 10.6, state ExStart).
    pub fn negotiate(&mut self, own: RouterId, router: RouterId, description: &DatabaseDescription) -> Negotiation {
        let flags = description.flags;
        let begins = flags.init && flags.more && flags.master && description.headers.is_empty();
        if begins && router > own {
            self.role = Role::Slave;
            self.timers.stop(ExchangeTimer::Description);
            Negotiation::Done
        } else if !flags.init && !flags.master && self.sequence == Some(description.sequence) && router < own {
            self.role = Role::Master;
            Negotiation::Done
        } else if flags.init && flags.master && router < own {
            Negotiation::Unheard
        } else {
            Negotiation::Ignored
        }
    }

    /// Whether a description was accepted before.
    pub fn is_duplicate(&self, description: &DatabaseDescription) -> bool {
        self.received == Some((description.flags, description.options, description.sequence))
    }

    /// Whether a description is the next one in state Exchange (RFC 2328, 10.6).
    pub fn is_next(&self, description: &DatabaseDescription) -> bool {
        let options_changed = self.received.is_some_and(|(_, options, _)| options != description.options);
        let expected = match self.role {
            Role::Master => self.sequence,
            Role::Slave => self.sequence.map(|last| last.wrapping_add(1)),
        };
        description.flags.master != (self.role == Role::Master)
            && !description.flags.init
            && !options_changed
            && expected == Some(description.sequence)
    }

    /// Whether the last description sent had the M-bit clear.
    pub fn described_all(&self) -> bool {
        self.sent.as_ref().is_some_and(|sent| match &sent.body {
            Body::DatabaseDescription(sent) => !sent.flags.more,
            _ => false,
        })
    }

    /// Whether a Link State Request is needed and none is outstanding.
    pub fn may_request(&mut self) -> bool {
        let requests = &self.requests;
        self.requested.retain(|key| requests.contains_key(key));
        self.requested.is_empty()
    }

    /// All requested LSAs have been received.
    pub fn end_requests(&mut self) {
        self.timers.stop(ExchangeTimer::Request);
        self.requested.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(sequence: u32, init: bool, master: bool) -> DatabaseDescription {
        let flags = DescriptionFlags { init, more: init, master, ipv6_mtu_differs: false };
        DatabaseDescription { options: Options::V6, interface_mtu: 1500, flags, sequence, headers: Vec::new() }
    }

    #[test]
    fn rfc2328_10_6_the_router_of_the_larger_id_is_the_master() {
        let (small, large) = (RouterId(1), RouterId(2));
        let mut exchange = Exchange::default();
        exchange.begin(40);
        assert_eq!(exchange.negotiate(small, large, &description(7, true, true)), Negotiation::Done);
        assert_eq!(exchange.role, Role::Slave);
        exchange.begin(0);
        assert_eq!(exchange.negotiate(large, small, &description(7, true, true)), Negotiation::Unheard);
        assert_eq!(exchange.negotiate(large, small, &description(40, false, false)), Negotiation::Ignored);
        assert_eq!(exchange.negotiate(large, small, &description(41, false, false)), Negotiation::Done);
        assert_eq!(exchange.role, Role::Master);
    }

    #[test]
    fn rfc2328_10_6_the_next_description_has_the_sequence_number_that_the_role_expects() {
        let mut exchange = Exchange::default();
        exchange.begin(40);
        assert!(exchange.is_next(&description(40, false, false)) && !exchange.is_next(&description(41, false, false)));
        exchange.role = Role::Slave;
        assert!(exchange.is_next(&description(41, false, true)) && !exchange.is_next(&description(40, false, true)));
        let next = description(41, false, true);
        exchange.received = Some((next.flags, Options::V6 | Options::E, 40));
        assert!(!exchange.is_next(&next));
        exchange.received = Some((next.flags, next.options, next.sequence));
        assert!(exchange.is_duplicate(&next));
    }

    #[test]
    fn a_request_waits_until_the_last_one_is_answered() {
        let mut exchange = Exchange::default();
        let header = LsaHeader::default();
        exchange.requests.insert(header.key, header);
        assert!(exchange.may_request());
        exchange.requested.insert(header.key);
        assert!(!exchange.may_request());
        exchange.requests.clear();
        assert!(exchange.may_request());
    }

    #[test]
    fn what_is_cleared_keeps_its_sequence_number() {
        let mut exchange = Exchange::default();
        exchange.begin(40);
        exchange.clear();
        exchange.begin(90);
        assert_eq!(exchange.sequence, Some(41));
    }
}
