//! `anabranch steer`: path policies for the MPTCP connections of the kernel.

mod ground;
mod guard;
mod log;
mod observer;
mod options;
mod rule;
mod words;

pub use options::SteerOptions;

use crate::command::{Taken, read_again};
use crate::configuration::ReadAgain;
use crate::console::print;
use crate::ending::{self, asked_to_end, block_on};
use crate::service_manager;
use crate::status::{Serving, Source, SteeredHost};
use crate::uplink_care::{Roles, absent, govern};
use anabranch_host::{HostError, Netlink, Setup, Snapshot, Step};
use anabranch_settings::diagnostic::Diagnostic;
use anabranch_steer::{Addresses, Classes, Daemon, Endpoint, Notice, flags, interface_name, open_path_manager};
use anabranch_steering::event::Interface;
use anabranch_steering::settings::{Control, Settings};
use anabranch_system::{Capability, keep_only};
use ground::Ground;
use guard::Only;
use log::Log;
use observer::Observer;
use std::cell::RefCell;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use tokio::sync::mpsc;

/// Keys of the file that can change at runtime.
const TAKEN: [&str; 5] = ["policy", "rule", "backup", "metered", "quota"];

/// Steers until it is told to end.
///
/// # Errors
/// An error of the options or the host.
pub fn steer(options: &SteerOptions) -> Result<(), Diagnostic> {
    options.check()?;
    let ground = Ground::look(options)?;
    refuse_loopback(options.interfaces())?;
    if options.check {
        return check(options, &ground);
    }
    block_on(run(options, ground))
}

fn check(options: &SteerOptions, ground: &Ground) -> Result<(), Diagnostic> {
    options.classes(Settings::default())?;
    let mut text: String = ground.describe().into_iter().map(|line| format!("{line}\n")).collect();
    let addresses = usable(options)?;
    let roles = Roles::new(&options.care, &options.backups);
    text.extend(unused(options, ground, &addresses)?.into_iter().map(|line| format!("{line}\n")));
    for (address, interface) in addresses.known() {
        let name = interface_name(*interface);
        let governed = roles.of(&name);
        let quota = governed.quota.map(|(_, quota)| format!(", with a quota of {quota} octets")).unwrap_or_default();
        text += &format!("address {address} of {name}, {}{quota}\n", governed.role);
    }
    text.extend(
        absent(options.interfaces().chain(&options.backups).chain(options.care.metered()))
            .into_iter()
            .map(|line| format!("{line}\n")),
    );
    text.extend(options.missing_groups().into_iter().map(|line| format!("{line}\n")));
    text += &format!("policy: {}\n", options.policy());
    text.extend(options.rules.iter().map(|rule| format!("rule: {rule}\n")));
    print(&text);
    Ok(())
}

/// The addresses that can be used now.
fn usable(options: &SteerOptions) -> Result<Addresses, Diagnostic> {
    let mut addresses = Addresses::open(options.uplinks.clone()).map_err(|error| cannot(&error))?;
    addresses.look().map_err(|error| cannot(&error))?;
    Ok(addresses)
}

/// That no address can be used, or which ones have no endpoint where only endpoints count, each in a sentence.
fn unused(options: &SteerOptions, ground: &Ground, addresses: &Addresses) -> Result<Vec<String>, Diagnostic> {
    if addresses.known().is_empty() {
        let why = if options.uplinks.is_empty() {
            "no interface has a default route in the main table; --uplink names others"
        } else {
            "no uplink is up and has an address and a route"
        };
        return Ok(vec![format!("no address can be used yet: {why}")]);
    }
    if ground.control() != Control::Priorities {
        return Ok(Vec::new());
    }
    let mut kernel = open_path_manager().map_err(|error| cannot(&error))?;
    let endpoints = kernel.endpoints().map_err(|error| cannot(&io::Error::other(error.to_string())))?;
    let without = addresses.known().iter().filter(|(address, _)| endpoints.iter().all(|one| one.address != **address));
    let sentence = |(address, interface): (&IpAddr, &Interface)| no_endpoint(*address, &interface_name(*interface));
    Ok(without.map(sentence).collect())
}

fn no_endpoint(address: IpAddr, interface: &str) -> String {
    format!(
        "{address} has no endpoint: the kernel opens no subflow from it and none is demoted, until \
         `ip mptcp endpoint add {address} dev {interface} subflow` adds one"
    )
}

/// Refuses names of interfaces that can never be uplinks.
fn refuse_loopback<'a>(names: impl IntoIterator<Item = &'a String>) -> Result<(), Diagnostic> {
    let snapshot =
        Netlink::open().and_then(|mut netlink| Snapshot::take(&mut netlink)).map_err(|error| cannot(&error))?;
    let is_loopback = |name: &&String| snapshot.interface(name).is_some_and(|interface| interface.loopback);
    match names.into_iter().find(is_loopback) {
        Some(name) => {
            let error = HostError::NotAnUplink { name: name.clone(), reason: "it is the loopback interface" };
            Err(Diagnostic::plain(error.to_string()))
        }
        None => Ok(()),
    }
}

/// What is said at the start.
fn at_start(options: &SteerOptions, ground: &Ground) -> Result<Vec<String>, Diagnostic> {
    let unused = unused(options, ground, &usable(options)?)?;
    let policy = format!("policy {}", options.policy());
    let groups = options.missing_groups();
    Ok([ground.describe(), absent(options.interfaces()), unused, groups, vec![policy]].concat())
}

fn cannot(error: &io::Error) -> Diagnostic {
    Diagnostic::plain(format!("cannot talk to the kernel over netlink: {error}"))
}

/// Why a machine stops.
enum Wish {
    End,
    /// The configuration was read again.
    Replace(Box<Classes>, String),
    /// Paths over these interfaces are for the time when no other works.
    Reserve(Vec<String>),
    Warn(String),
}

/// An endpoint is noted before it is made a backup, so that the next start can undo that.
fn note(setup: &Rc<RefCell<Setup>>, endpoint: &Endpoint) -> io::Result<()> {
    let full_mesh = endpoint.flags & flags::FULL_MESH != 0;
    let step = Step::Endpoint { address: endpoint.address, full_mesh };
    setup.borrow_mut().note(&step).map_err(io::Error::other)
}

/// A daemon that takes over from the one before.
fn open(
    options: &SteerOptions,
    settings: Settings,
    setup: &Rc<RefCell<Setup>>,
    roles: &Roles,
) -> Result<Daemon, Diagnostic> {
    let opened = Daemon::open(options.classes(settings)?, options.uplinks.clone());
    let mut daemon = opened.map_err(|error| cannot(&error))?;
    let noted = Rc::clone(setup);
    daemon.note_endpoints(move |endpoint| note(&noted, endpoint));
    daemon.reserve(roles.reserve());
    if !options.opens_backups() {
        daemon.take_over();
    }
    Ok(daemon)
}

async fn run(options: &SteerOptions, ground: Ground) -> Result<(), Diagnostic> {
    let _only = Only::take()?;
    // Before the host's configuration changes.
    ending::listen()?;
    let (log, host) = (Log::new(options), SteeredHost::new());
    let listeners = options.status.listen(options.journal.as_deref(), "steer").await?;
    let (ground, setup) = ground.prepare(options)?;
    let setup = Rc::new(RefCell::new(setup));
    let settings = Settings { control: ground.control(), interval: options.interval, ..Settings::default() };
    let roles = Roles::new(&options.care, &options.backups);
    let mut daemon = open(options, settings, &setup, &roles)?;
    keep_only(Capability::NET_ADMIN)
        .map_err(|error| Diagnostic::plain(format!("the other capabilities cannot be dropped: {error}")))?;
    for line in at_start(options, &ground)? {
        log.say(&line);
    }
    let mut observer = Observer::new(host.clone(), ground.future().to_string());
    observer.begin(&options.policy());
    let source = Source::of_the_kernel("steer", host).with_roles(roles.clone());
    let _serving = Serving::start(listeners, Some(source));
    service_manager::ready();
    let (sender, mut wishes) = mpsc::unbounded_channel();
    let again = ReadAgain::new::<SteerOptions>("steer", &options.configuration)?;
    let again = read_again(again, Taken { keys: &TAKEN, counts: "from now on" }, |new: &SteerOptions| {
        new.check()?;
        let classes = refuse_loopback(new.interfaces()).and_then(|()| new.classes(settings))?;
        absent(new.interfaces()).iter().chain(&new.missing_groups()).for_each(|line| log.say(line));
        roles.set(&new.care, &new.backups);
        // The receiver lives as long as this.
        let _ = sender.send(Wish::Replace(Box::new(classes), new.policy()));
        Ok(Vec::new())
    });
    let governed = govern(&roles, Vec::new, |reserve, _| {
        let _ = sender.send(Wish::Reserve(reserve.to_vec()));
    });
    let kept = guard::keep(&ground, &setup, |text| {
        log.say(&text);
        let _ = sender.send(Wish::Warn(text));
    });
    let steered = async {
        loop {
            let wish = async {
                tokio::select! {
                    () = asked_to_end() => Wish::End,
                    Some(wish) = wishes.recv() => wish,
                }
            };
            let tell = |notice: Notice<'_>| {
                log.tell(&notice);
                observer.hear(&notice);
            };
            match daemon.run(options.interval, wish, tell).await {
                Ok(Wish::End) => return Ok(()),
                Ok(Wish::Replace(classes, policy)) => {
                    daemon.replace(*classes);
                    observer.begin(&policy);
                }
                Ok(Wish::Reserve(interfaces)) => daemon.reserve(interfaces),
                Ok(Wish::Warn(text)) => observer.warn(text),
                Err(error) => return Err(cannot(&error)),
            }
        }
    };
    let steered = tokio::select! {
        steered = steered => steered,
        never = again => match never {},
        never = governed => match never {},
        never = kept => match never {},
    };
    service_manager::stopping(std::time::Duration::ZERO);
    daemon.end();
    let mut setup = setup.borrow_mut();
    setup.forget(|step| matches!(step, Step::Endpoint { .. }));
    let undone = setup.undo().map_err(|error| Diagnostic::plain(error.to_string()));
    steered.and(undone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_an_endpoint_is_told_with_the_command_that_adds_one() {
        assert_eq!(
            no_endpoint(IpAddr::from([10, 9, 1, 2]), "pa"),
            "10.9.1.2 has no endpoint: the kernel opens no subflow from it and none is demoted, until \
             `ip mptcp endpoint add 10.9.1.2 dev pa subflow` adds one"
        );
    }

    #[test]
    fn the_loopback_interface_is_no_uplink_and_one_that_is_not_there_may_be_later() {
        let refusal = |name: &str| refuse_loopback(&[name.to_owned()]).err().map(|refusal| refusal.to_string());
        let lo = refusal("lo").expect("it is refused");
        assert!(lo.contains("'lo' cannot be an uplink: it is the loopback interface"), "{lo}");
        assert_eq!(refusal("anabranch-none"), None);
    }
}
