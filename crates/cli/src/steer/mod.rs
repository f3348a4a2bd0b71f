//! `anabranch steer`: path policies for the MPTCP connections of the kernel.

mod ground;
mod log;
mod options;
mod words;

pub use options::SteerOptions;

use crate::command::read_again_of;
use crate::configuration::ReadAgain;
use crate::console::print;
use crate::diagnostic::Diagnostic;
use crate::ending::{asked_to_end, block_on};
use crate::service_manager;
use anabranch_policy::path_manager::PathManager;
use anabranch_steer::{Addresses, Daemon};
use anabranch_steering::settings::Settings;
use anabranch_steering::steering::Steering;
use anabranch_system::{Capability, keep_only};
use ground::Ground;
use log::Log;
use std::io;
use tokio::sync::mpsc;

/// Keys of the file that can change at runtime.
const TAKEN: [&str; 1] = ["policy"];

/// Steers until it is told to end.
///
/// # Errors
/// An error of the options or the host.
pub fn steer(options: &SteerOptions) -> Result<(), Diagnostic> {
    let manager = options.build()?;
    let ground = Ground::look(options)?;
    if options.check {
        return check(options, &ground);
    }
    block_on(run(options, ground, manager))
}

fn check(options: &SteerOptions, ground: &Ground) -> Result<(), Diagnostic> {
    let mut text: String = ground.describe().into_iter().map(|line| format!("{line}\n")).collect();
    let mut addresses = Addresses::open(options.uplinks.clone()).map_err(|error| cannot(&error))?;
    addresses.look().map_err(|error| cannot(&error))?;
    let known: Vec<String> = addresses.known().keys().map(ToString::to_string).collect();
    text += &match known.as_slice() {
        [] => "no address can be used\n".to_owned(),
        known => format!("addresses: {}\n", known.join(", ")),
    };
    text += &format!("policy: {}\n", options.policy());
    print(&text);
    Ok(())
}

fn cannot(error: &io::Error) -> Diagnostic {
    Diagnostic::plain(format!("cannot talk to the kernel over netlink: {error}"))
}

/// Why a machine stops.
enum Wish {
    End,
    /// The configuration was read again.
    Replace(Box<dyn PathManager>),
}

async fn run(options: &SteerOptions, ground: Ground, manager: Box<dyn PathManager>) -> Result<(), Diagnostic> {
    let log = Log::new(options);
    let (ground, mut setup) = ground.prepare(options)?;
    let settings = Settings { control: ground.control(), interval: options.interval, ..Settings::default() };
    let opened = Daemon::open(Steering::new(manager, settings), options.uplinks.clone());
    let mut daemon = opened.map_err(|error| cannot(&error))?;
    keep_only(Capability::NET_ADMIN)
        .map_err(|error| Diagnostic::plain(format!("the other capabilities cannot be dropped: {error}")))?;
    ground.describe().iter().for_each(|line| log.say(line));
    log.say(&format!("policy {}", options.policy()));
    service_manager::ready();
    let (sender, mut managers) = mpsc::unbounded_channel();
    let again = ReadAgain::new::<SteerOptions>("steer", &options.configuration)?;
    let again = read_again_of(again, &TAKEN, |new: &SteerOptions| {
        // The receiver lives as long as this.
        let _ = sender.send(new.build()?);
        Ok(())
    });
    let steered = async {
        loop {
            let wish = async {
                tokio::select! {
                    () = asked_to_end(None) => Wish::End,
                    Some(manager) = managers.recv() => Wish::Replace(manager),
                }
            };
            match daemon.run(options.interval, wish, |notice| log.tell(&notice)).await {
                Ok(Wish::End) => return Ok(()),
                Ok(Wish::Replace(manager)) => daemon.replace(Steering::new(manager, settings)),
                Err(error) => return Err(cannot(&error)),
            }
        }
    };
    let steered = tokio::select! {
        steered = steered => steered,
        never = again => match never {},
    };
    service_manager::stopping();
    daemon.end();
    let undone = setup.undo().map_err(|error| Diagnostic::plain(error.to_string()));
    steered.and(undone)
}
