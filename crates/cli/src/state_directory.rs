//! Where usage of quotas and the Router ID are kept over restarts.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The directory that was asked for, else that of the service manager, else the state directory of the system or the user.
pub fn state_directory(wanted: Option<&Path>) -> PathBuf {
    if let Some(wanted) = wanted {
        return wanted.to_owned();
    }
    if let Some(directory) = std::env::var_os("STATE_DIRECTORY") {
        return PathBuf::from(directory);
    }
    if std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0) {
        return PathBuf::from("/var/lib/anabranch");
    }
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/state"));
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
    state.unwrap_or_else(std::env::temp_dir).join("anabranch")
}
