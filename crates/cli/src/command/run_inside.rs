//! The child process of `run -- PROGRAM`: it creates the program's namespaces, and executes the program once they are
//! connected.

use crate::console::remark;
use anabranch_capture::open_device;
use anabranch_host::{INSIDE_DEVICE, lead_out};
use anabranch_system::Channel;
use anabranch_system::sandbox::{SandboxError, enter, renounce, resolve_with};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::{CommandExt as _, parent_id};
use std::process::Command;

/// Name of the hidden command that `run` uses.
pub const NAME: &str = "inside";

/// Message that accompanies the device.
pub const READY: &[u8] = b"ready";

/// Message that allows the program to start.
pub const GO: &[u8] = b"go";

/// Exit codes of shells for programs that cannot be executed.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

/// Executes the program; returns an exit code on failure.
pub fn run_inside(channel: i32, program: &[OsString]) -> u8 {
    let parent = parent_id();
    let Ok(channel) = Channel::inherited(channel) else {
        remark("error: this command is part of `anabranch run -- PROGRAM`");
        return 2;
    };
    let told = match prepare() {
        Ok(device) => channel.send(READY, Some(&device)),
        Err(sentence) => channel.send(sentence.as_bytes(), None),
    };
    // The parent has ended or refuses.
    if told.is_err() || !channel.receive().is_ok_and(|(message, _)| message == GO) {
        return 2;
    }
    drop(channel);
    if let Err(error) = renounce(parent) {
        remark(&format!("error: the program was to have no rights, and that failed: {error}"));
        return NOT_RUN;
    }
    let Some((name, arguments)) = program.split_first() else { return 2 };
    let error = Command::new(name).args(arguments).exec();
    remark(&format!("error: cannot run {}: {error}", name.to_string_lossy()));
    if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN }
}

/// Creates namespaces, device and routes; the error names what is missing.
fn prepare() -> Result<OwnedFd, String> {
    enter().map_err(|error| forbidden(&error, &setting))?;
    let device = open_device(INSIDE_DEVICE).map_err(|error| no_device(&error))?;
    let group = fs::metadata("/proc/self").map(|process| process.gid()).unwrap_or_default();
    let resolver = lead_out(group).map_err(|error| format!("cannot set up the program's network: {error}"))?;
    resolve_with(resolver).map_err(|error| format!("cannot lead the program's questions for names: {error}"))?;
    Ok(device)
}

/// A sysctl.
fn setting(name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()?;
    Some(text.trim().to_owned())
}

/// Explains why namespaces are not permitted, and the remedy.
fn forbidden(error: &SandboxError, setting: &dyn Fn(&str) -> Option<String>) -> String {
    let is = |name: &str, value: &str| setting(name).as_deref() == Some(value);
    let allow = |name: &str, value: &str| format!("allow them with `sysctl -w {name}={value}` as root");
    let error = match error {
        SandboxError::Rights(error) => {
            let name = "kernel.apparmor_restrict_unprivileged_userns";
            return if is(name, "1") {
                let help = allow(name, "0");
                format!(
                    "AppArmor gives programs no rights in user namespaces of their own, which `run` needs; {help}, or give anabranch a profile with `userns,`"
                )
            } else {
                format!("this process may not set up a user namespace of its own, which `run` needs: {error}")
            };
        }
        SandboxError::Namespaces(error) => error,
    };
    let name = "kernel.unprivileged_userns_clone";
    if is(name, "0") {
        return format!("this host forbids users namespaces of their own, which `run` needs; {}", allow(name, "1"));
    }
    let name = "user.max_user_namespaces";
    if is(name, "0") {
        return format!("this host allows no user namespaces, which `run` needs; {}", allow(name, "15000"));
    }
    format!(
        "this process may not begin a user namespace, which `run` needs: {error}; inside a container they are often forbidden"
    )
}

/// Explains why there is no device, and the remedy.
fn no_device(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "there is no /dev/net/tun here, which `run` needs; load it with `modprobe tun` as root".to_owned()
        }
        io::ErrorKind::PermissionDenied => {
            "this user may not open /dev/net/tun, which `run` needs; allow it, as most hosts do, with \
                                            `chmod 666 /dev/net/tun` as root"
                .to_owned()
        }
        _ => format!("cannot open a TUN device: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied() -> io::Error {
        io::ErrorKind::PermissionDenied.into()
    }

    #[test]
    fn a_host_that_forbids_namespaces_is_told_of_with_the_setting_that_does() {
        let host = |set: &'static str, value: &'static str| move |name: &str| (name == set).then(|| value.to_owned());
        let namespaces = SandboxError::Namespaces(denied());
        let said = forbidden(&namespaces, &host("kernel.unprivileged_userns_clone", "0"));
        assert!(said.contains("sysctl -w kernel.unprivileged_userns_clone=1"), "{said}");
        let said = forbidden(&namespaces, &host("user.max_user_namespaces", "0"));
        assert!(said.contains("sysctl -w user.max_user_namespaces="), "{said}");
        let said = forbidden(&namespaces, &host("user.max_user_namespaces", "100"));
        assert!(said.contains("container"), "{said}");
        let said =
            forbidden(&SandboxError::Rights(denied()), &host("kernel.apparmor_restrict_unprivileged_userns", "1"));
        assert!(said.contains("AppArmor"), "{said}");
        let said = forbidden(&SandboxError::Rights(denied()), &|_| None);
        assert!(!said.contains("AppArmor"), "{said}");
    }

    #[test]
    fn a_host_without_the_device_is_told_of_with_what_helps() {
        assert!(no_device(&io::ErrorKind::NotFound.into()).contains("modprobe tun"));
        assert!(no_device(&denied()).contains("chmod 666 /dev/net/tun"));
    }
}
