//! Requirements on a machine for hosts in namespaces, the kernel's MPTCP and other programs, and which of them are
//! missing.

use crate::Namespace;
use std::env;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// A requirement of a test or a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need<'a> {
    /// MPTCP in the kernel (`net.mptcp` exists, though MPTCP may be disabled).
    Mptcp,
    /// The kernel's TUN and TAP devices.
    Tun,
    /// Permission to create network namespaces, CAP_SYS_ADMIN.
    Namespaces,
    /// Programs, by name in `PATH` or by path.
    Programs(&'a [&'a str]),
}

/// The first of `needs` that is missing, as a sentence without a full stop.
pub fn missing(needs: &[Need]) -> Option<String> {
    needs.iter().find_map(Need::complaint)
}

impl Need<'_> {
    fn complaint(&self) -> Option<String> {
        match self {
            Self::Mptcp => lacks("/proc/sys/net/mptcp/enabled", "MPTCP"),
            Self::Tun => lacks("/dev/net/tun", "TUN"),
            Self::Namespaces => {
                Namespace::new().err().map(|error| format!("no network namespaces, are we root? ({error})"))
            }
            Self::Programs(names) => {
                let name = names.iter().find(|name| !is_installed(name))?;
                Some(format!("there is no program `{name}`"))
            }
        }
    }
}

fn lacks(path: &str, what: &str) -> Option<String> {
    (!Path::new(path).exists()).then(|| format!("the kernel has no {what}"))
}

/// Whether a shell would find the program.
fn is_installed(name: &str) -> bool {
    if name.contains('/') {
        return is_executable(Path::new(name));
    }
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|folder| is_executable(&folder.join(name))))
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_its_name_and_by_its_path() {
        assert_eq!(missing(&[Need::Programs(&["sh", "/bin/sh"])]), None);
    }

    #[test]
    fn what_is_missing_is_named() {
        let said = missing(&[Need::Programs(&["sh", "no-such-program"])]);
        assert_eq!(said.as_deref(), Some("there is no program `no-such-program`"));
        // Non-executable files and directories are no programs.
        for name in ["/proc/version", "/usr/bin"] {
            assert_eq!(missing(&[Need::Programs(&[name])]), Some(format!("there is no program `{name}`")));
        }
    }

    #[test]
    fn the_kernel_is_asked_by_its_files() {
        assert_eq!(lacks("/proc/self", "processes"), None);
        assert_eq!(lacks("/proc/no-such-file", "MPTCP").as_deref(), Some("the kernel has no MPTCP"));
    }
}
