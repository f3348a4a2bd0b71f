//! Namespaces of a process's own, without privileges: users, network and mounts, so that it can set up its network and nobody else's.

use nix::libc;
use nix::mount::{MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::{set_no_new_privs, set_pdeathsig};
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getegid, geteuid};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The file that says who is asked for names.
const RESOLVER_FILE: &str = "/etc/resolv.conf";

/// Where programs ask for names beside that file: services on the host, which would answer from the host's network.
const RESOLVER_SERVICES: [&str; 4] = ["/run/systemd/resolve", "/run/nscd", "/var/run/nscd", "/run/avahi-daemon"];

/// Directories one of which every system has, to prepare a file in that is seen nowhere else.
const SCRATCH: [&str; 4] = ["/tmp", "/run", "/var", "/mnt"];

/// What cannot be done.
#[derive(Debug)]
pub enum SandboxError {
    /// The namespaces themselves are refused.
    Namespaces(io::Error),
    /// They are there, and the process has no rights in them.
    Rights(io::Error),
}

/// Puts the process, which has one thread, into new namespaces of users, network and mounts. It keeps its user and group, and may do in
/// the namespaces what the superuser may do on a host, until [`renounce`] or until it runs another program.
///
/// # Errors
/// [`SandboxError`].
pub fn enter() -> Result<(), SandboxError> {
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| SandboxError::Namespaces(error.into()))?;
    // Without a word on groups the kernel lets nobody map them.
    fs::write("/proc/self/setgroups", "deny").map_err(SandboxError::Rights)?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1")).map_err(SandboxError::Rights)?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1")).map_err(SandboxError::Rights)?;
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS).map_err(|error| SandboxError::Rights(error.into()))?;
    // What is mounted here is seen nowhere else.
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, private, None::<&str>).map_err(|error| SandboxError::Rights(error.into()))
}

/// Has programs ask `resolver` for names, and none of the host's services. To be called in namespaces of the process's own.
///
/// # Errors
/// What the kernel says.
pub fn resolve_with(resolver: core::net::IpAddr) -> io::Result<()> {
    let content = format!("nameserver {resolver}\n");
    let named = fs::canonicalize(RESOLVER_FILE).ok();
    for service in RESOLVER_SERVICES {
        let Ok(directory) = fs::canonicalize(service) else { continue };
        // One may be the other's link.
        if directory.is_dir() && !is_covered(&directory) {
            cover(&directory, &content, named.as_deref())?;
        }
    }
    match named {
        // It was in a directory that is covered.
        Some(named) if fs::read_to_string(&named).is_ok_and(|text| text == content) => Ok(()),
        Some(named) => replace(&named, &content),
        // Then the C library asks this host, which is the namespace: nobody.
        None => Ok(()),
    }
}

/// Whether we have covered it.
fn is_covered(directory: &Path) -> bool {
    directory.join(MARK).exists()
}

/// What a covered directory has in it.
const MARK: &str = ".anabranch";

/// Puts an empty directory over one, with the file about names in it, if that was there.
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

/// Puts another file over one. It lies on no disk.
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

/// Drops all capabilities, for the programs that follow too, and ends with the process `parent` from now on.
///
/// # Errors
/// What the kernel says; [`io::ErrorKind::NotConnected`] if `parent` is gone.
pub fn renounce(parent: u32) -> io::Result<()> {
    // Programs with capabilities of their own run without them; without this they would not run at all.
    set_no_new_privs()?;
    let header = CapabilityHeader { version: CAPABILITIES_VERSION_3, process: 0 };
    let none = [CapabilitySets::default(); 2];
    // SAFETY: the header says version 3, for which the kernel reads two sets; both live until the call has returned.
    #[allow(unsafe_code)]
    let outcome = unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) };
    if outcome != 0 {
        return Err(io::Error::last_os_error());
    }
    set_pdeathsig(Signal::SIGKILL)?;
    // Who is gone already sends no signal.
    if u32::try_from(Pid::parent().as_raw()) == Ok(parent) { Ok(()) } else { Err(io::ErrorKind::NotConnected.into()) }
}

/// _LINUX_CAPABILITY_VERSION_3 of `linux/capability.h`.
const CAPABILITIES_VERSION_3: u32 = 0x2008_0522;

/// `struct __user_cap_header_struct`.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    /// 0 for the calling thread.
    process: i32,
}

/// `struct __user_cap_data_struct`: half of the capabilities.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilitySets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}
