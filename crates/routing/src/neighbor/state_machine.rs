//! The neighbour state machine (RFC 2328, 10.3, changed by RFC 5614, 7.1).

/// The state of the conversation with a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum NeighborState {
    /// Nothing was received from it lately, or it is not accepted yet.
    #[default]
    Down,
    /// Its Hellos are received.
    Init,
    /// It hears this router too: a bidirectional neighbour.
    TwoWay,
    /// An adjacency is being formed: negotiation of the master.
    ExStart,
    /// Descriptions of the databases are exchanged.
    Exchange,
    /// LSAs that the neighbour has and this router lacks are requested.
    Loading,
    Full,
}

/// An event of a neighbour. Conditions that determine the new state are part of the event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NeighborEvent {
    /// A Hello was received, and the neighbour acceptance condition (RFC 5614, 4.3) is satisfied or not.
    HelloReceived { accepted: bool },
    /// A Hello shows that the neighbour hears this router.
    TwoWayReceived,
    /// A Hello shows that it does not.
    OneWayReceived,
    /// Whether an adjacency should exist (RFC 5614, 7.2 and 7.3) was decided again.
    AdjOk { wanted: bool },
    /// The master is decided.
    NegotiationDone,
    /// Both have described their databases.
    ExchangeDone { requests_left: bool },
    /// The last missing LSA was received.
    LoadingDone,
    /// A request for an LSA that is not in the database.
    BadLsReq,
    /// An unexpected Database Description.
    SeqNumberMismatch,
    /// Nothing was received for RouterDeadInterval.
    InactivityTimer,
    /// The interface is down.
    KillNbr,
}

/// The action of a transition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NeighborAction {
    None,
    /// Restart the Inactivity Timer.
    StartInactivityTimer,
    /// Clear the three LSA lists.
    ClearLists,
    /// Clear the lists and stop the Inactivity Timer.
    Forget,
    /// Clear the lists and start the negotiation: send an empty Database Description until it ends.
    Negotiate,
    /// List the database for its description.
    Summarize,
    /// Continue with Link State Requests.
    Request,
    /// Schedule the decision whether an adjacency should exist.
    ScheduleAdjOk,
}

/// The next state after `state` and `event`, and the action.
pub(crate) fn transition(state: NeighborState, event: NeighborEvent) -> (NeighborState, NeighborAction) {
    use NeighborAction as Do;
    use NeighborEvent as On;
    use NeighborState as S;
    match (state, event) {
        // RFC 5614, 7.1, replaces the transition of RFC 2328.
        (S::Down, On::HelloReceived { accepted: true }) => (S::Init, Do::StartInactivityTimer),
        (S::Down, On::HelloReceived { accepted: false }) => (S::Down, Do::None),
        (
            S::Init | S::TwoWay | S::ExStart | S::Exchange | S::Loading | S::Full,
            On::HelloReceived { accepted: true | false },
        ) => (state, Do::StartInactivityTimer),

        // RFC 5614, 7.1; on other interfaces the decision, which is scheduled at once, has the same result.
        (S::Init, On::TwoWayReceived) => (S::TwoWay, Do::ScheduleAdjOk),
        (S::Down | S::TwoWay | S::ExStart | S::Exchange | S::Loading | S::Full, On::TwoWayReceived) => {
            (state, Do::None)
        }

        (S::TwoWay | S::ExStart | S::Exchange | S::Loading | S::Full, On::OneWayReceived) => (S::Init, Do::ClearLists),
        (S::Down | S::Init, On::OneWayReceived) => (state, Do::None),

        (S::TwoWay, On::AdjOk { wanted: true }) => (S::ExStart, Do::Negotiate),
        (S::ExStart | S::Exchange | S::Loading | S::Full, On::AdjOk { wanted: false }) => (S::TwoWay, Do::ClearLists),
        (S::ExStart | S::Exchange | S::Loading | S::Full, On::AdjOk { wanted: true })
        | (S::TwoWay, On::AdjOk { wanted: false })
        | (S::Down | S::Init, On::AdjOk { wanted: true | false }) => (state, Do::None),

        (S::ExStart, On::NegotiationDone) => (S::Exchange, Do::Summarize),
        (S::Down | S::Init | S::TwoWay | S::Exchange | S::Loading | S::Full, On::NegotiationDone) => (state, Do::None),

        (S::Exchange, On::ExchangeDone { requests_left: false }) => (S::Full, Do::None),
        (S::Exchange, On::ExchangeDone { requests_left: true }) => (S::Loading, Do::Request),
        (
            S::Down | S::Init | S::TwoWay | S::ExStart | S::Loading | S::Full,
            On::ExchangeDone { requests_left: true | false },
        ) => (state, Do::None),

        (S::Loading, On::LoadingDone) => (S::Full, Do::None),
        (S::Down | S::Init | S::TwoWay | S::ExStart | S::Exchange | S::Full, On::LoadingDone) => (state, Do::None),

        (S::Exchange | S::Loading | S::Full, On::BadLsReq | On::SeqNumberMismatch) => (S::ExStart, Do::Negotiate),
        (S::Down | S::Init | S::TwoWay | S::ExStart, On::BadLsReq | On::SeqNumberMismatch) => (state, Do::None),

        (
            S::Down | S::Init | S::TwoWay | S::ExStart | S::Exchange | S::Loading | S::Full,
            On::InactivityTimer | On::KillNbr,
        ) => (S::Down, Do::Forget),
    }
}

#[cfg(test)]
mod tests {
    use super::NeighborAction as Do;
    use super::NeighborEvent as On;
    use super::NeighborState as S;
    use super::*;

    const STATES: [S; 7] = [S::Down, S::Init, S::TwoWay, S::ExStart, S::Exchange, S::Loading, S::Full];

    #[test]
    fn rfc5614_7_1_a_hello_from_a_neighbour_that_is_not_accepted_leaves_it_down() {
        assert_eq!(transition(S::Down, On::HelloReceived { accepted: false }), (S::Down, Do::None));
        assert_eq!(transition(S::Down, On::HelloReceived { accepted: true }), (S::Init, Do::StartInactivityTimer));
        assert_eq!(transition(S::Full, On::HelloReceived { accepted: false }), (S::Full, Do::StartInactivityTimer));
    }

    #[test]
    fn rfc5614_7_1_two_way_is_entered_first_and_the_adjacency_decided_after() {
        assert_eq!(transition(S::Init, On::TwoWayReceived), (S::TwoWay, Do::ScheduleAdjOk));
        assert_eq!(transition(S::TwoWay, On::AdjOk { wanted: false }), (S::TwoWay, Do::None));
        assert_eq!(transition(S::TwoWay, On::AdjOk { wanted: true }), (S::ExStart, Do::Negotiate));
    }

    #[test]
    fn rfc5614_7_1_an_adjacency_that_is_not_wanted_any_more_ends_in_two_way() {
        for state in [S::ExStart, S::Exchange, S::Loading, S::Full] {
            assert_eq!(transition(state, On::AdjOk { wanted: false }), (S::TwoWay, Do::ClearLists));
            assert_eq!(transition(state, On::AdjOk { wanted: true }), (state, Do::None));
        }
    }

    #[test]
    fn rfc2328_10_3_a_mismatch_begins_the_exchange_again() {
        for event in [On::SeqNumberMismatch, On::BadLsReq] {
            for state in [S::Exchange, S::Loading, S::Full] {
                assert_eq!(transition(state, event), (S::ExStart, Do::Negotiate));
            }
            assert_eq!(transition(S::TwoWay, event), (S::TwoWay, Do::None));
        }
    }

    #[test]
    fn rfc2328_10_3_one_way_and_silence_end_every_conversation() {
        for state in STATES {
            assert_eq!(transition(state, On::InactivityTimer), (S::Down, Do::Forget));
            assert_eq!(transition(state, On::KillNbr), (S::Down, Do::Forget));
            assert!(transition(state, On::OneWayReceived).0 <= S::Init);
        }
    }

    #[test]
    fn rfc2328_10_3_the_exchange_ends_full_or_loading() {
        assert_eq!(transition(S::Exchange, On::ExchangeDone { requests_left: false }), (S::Full, Do::None));
        assert_eq!(transition(S::Exchange, On::ExchangeDone { requests_left: true }), (S::Loading, Do::Request));
        assert_eq!(transition(S::Loading, On::LoadingDone), (S::Full, Do::None));
    }
}
