//! What the measured transfer sends.

use super::extras::Extras;
use crate::scenario::Scenario;
use crate::scenario::model::{Heading, Transfer};
use anabranch_policy::time::Duration;
use anabranch_sim::Application;
use anabranch_sim::application::Sending;

pub fn application(scenario: &Scenario, extras: &Extras) -> Application {
    if let Some(file) = &extras.send {
        return match scenario.heading {
            Heading::Upload => Application::file(file.content.clone()),
            Heading::Download => Application::file_to_client(file.content.clone()),
        };
    }
    let one_way = |sending| match scenario.heading {
        Heading::Upload => Application::upload(sending).verified(),
        Heading::Download => Application::download(sending).verified(),
    };
    match scenario.transfer {
        // Not used by any connection.
        Transfer::None => one_way(Sending::Nothing),
        // Validated with the scenario.
        Transfer::Video => scenario
            .video
            .as_ref()
            .map_or_else(|| one_way(Sending::Nothing), |video| Application::video(super::video::sent(video).schedule)),
        Transfer::Endless => one_way(Sending::Endless),
        Transfer::Finite(size) => one_way(Sending::Bytes(size.0)),
        Transfer::Messages { size, interval } => {
            one_way(Sending::Messages { size: size.0, interval }).in_messages(size.0)
        }
        Transfer::RequestResponse { request, response, pause } => {
            // More than a run can hold: at most one request per 10 microseconds.
            let count = scenario.duration.as_micros() / 10 + 1;
            Application::requests(request.0, response.0, pause.max(Duration::from_micros(10)), count).verified()
        }
    }
}
