//! Private user, network and mount namespaces without privileges, in which a process can set up its own network.

use crate::capabilities::drop_all;
use nix::mount::{MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getegid, geteuid};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file that names the resolvers.
const RESOLVER_FILE: &str = "/etc/resolv.conf";

/// Sockets of name services on the host, which would answer from the host's network.
const RESOLVER_SERVICES: [&str; 4] = ["/run/systemd/resolve", "/run/nscd", "/var/run/nscd", "/run/avahi-daemon"];

/// Directories of which every system has at least one, used to prepare a file on a private mount.
const SCRATCH: [&str; 4] = ["/tmp", "/run", "/var", "/mnt"];

/// Why a sandbox failed.
#[derive(Debug)]
pub enum SandboxError {
    /// The namespaces were refused.
    Namespaces(io::Error),
    /// They were created, but without privileges in them.
    Rights(io::Error),
}

/// Moves the single-threaded process into new user, network and mount namespaces. It keeps its user and group, and has
/// all capabilities in the namespaces until [`renounce`] or exec.
///
/// # Errors
/// [`SandboxError`].
pub fn enter() -> Result<(), SandboxError> {
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| SandboxError::Namespaces(error.into()))?;
    // The kernel only accepts a group map after setgroups is denied.
    fs::write("/proc/self/setgroups", "deny").map_err(SandboxError::Rights)?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1")).map_err(SandboxError::Rights)?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1")).map_err(SandboxError::Rights)?;
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).map_err(|error| SandboxError::Rights(error.into()))?;
    // Mounts here are not visible outside.
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>).map_err(|error| SandboxError::Rights(error.into()))
}

/// Makes programs use `resolver` for DNS, and none of the host's name services. Call this in a sandbox.
///
/// # Errors
/// An error of the kernel.
pub fn resolve_with(resolver: core::net::IpAddr) -> io::Result<()> {
    let content = format!("nameserver {resolver}\n");
    let named = fs::canonicalize(RESOLVER_FILE).ok();
    for service in RESOLVER_SERVICES {
        let Ok(directory) = fs::canonicalize(service) else { continue };
        // One may be a link to the other.
        if directory.is_dir() && !is_covered(&directory) {
            cover(&directory, &content, named.as_deref())?;
        }
    }
    match named {
        // It was in a covered directory.
        Some(named) if fs::read_to_string(&named).is_ok_and(|text| text == content) => Ok(()),
        Some(named) => replace(&named, &content),
        // The C library then queries localhost in the namespace, where no resolver runs.
        None => Ok(()),
    }
}

/// Whether we have mounted over it.
fn is_covered(directory: &Path) -> bool {
    directory.join(MARK).exists()
}

/// A file that marks a covered directory.
const MARK: &str = ".anabranch";

/// Mounts an empty directory over another, with a copy of the resolver file if that was in it.
fn cover(directory: &Path, content: &str, named: Option<&Path>) -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("tmpfs"), directory, Some("tmpfs"), flags, Some("mode=0755,size=64k"))?;
    fs::write(directory.join(MARK), "")?;
    match named.filter(|named| named.starts_with(directory)) {
        Some(named) => {
            named.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(named, content)
        }
        None => Ok(()),
    }
}

/// Mounts a new file over another. It is on no disk.
fn replace(named: &Path, content: &str) -> io::Result<()> {
    let scratch = SCRATCH.iter().map(Path::new).find(|path| path.is_dir()).ok_or(io::ErrorKind::NotFound)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("tmpfs"), scratch, Some("tmpfs"), flags, Some("mode=0755,size=64k"))?;
    let file: PathBuf = scratch.join("resolv.conf");
    let bound = fs::write(&file, content)
        .and_then(|()| Ok(mount(Some(&file), named, None::<&str>, MsFlags::MS_BIND, None::<&str>)?));
    umount2(scratch, nix::mount::MntFlags::MNT_DETACH)?;
    bound
}

/// Drops all capabilities, also for programs executed later, and makes this process end with its parent `parent`.
///
/// # Errors
/// An error of the kernel; [`io::ErrorKind::NotConnected`] if `parent` is gone.
pub fn renounce(parent: u32) -> io::Result<()> {
    drop_all()?;
    set_pdeathsig(Signal::SIGKILL)?;
    // A parent that is already dead sends no signal.
    if u32::try_from(Pid::parent().as_raw()) == Ok(parent) { Ok(()) } else { Err(io::ErrorKind::NotConnected.into()) }
}
