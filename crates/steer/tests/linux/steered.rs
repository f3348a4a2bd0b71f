//! A daemon at the client, on a thread of its own.

use crate::scene::{PathManager, Scene};
use anabranch_policy::combination::{Combination, Family};
use anabranch_policy::time::Duration;
use anabranch_steer::{Daemon, Notice};
use anabranch_steering::settings::{Control, Settings};
use anabranch_steering::steering::Steering;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// A daemon. Dropped, it ends as if it was killed.
pub struct Steered {
    stop: Option<oneshot::Sender<()>>,
    notices: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

/// What decides in a daemon.
pub fn steering(policy: &str, control: Control) -> Steering {
    let mut combination = Combination::default();
    combination.choice_mut(Family::PathManager).name = policy.to_owned();
    let manager = combination.build_path_manager().expect("a path manager of ours");
    Steering::new(manager, Settings { control, ..Settings::default() })
}

impl Steered {
    /// Begins to steer the client's connections.
    pub fn start(scene: &Scene, policy: &'static str, path_manager: PathManager) -> Self {
        let control = match path_manager {
            PathManager::Kernel => Control::Priorities,
            PathManager::UserSpace => Control::Subflows,
        };
        let notices = Arc::new(Mutex::new(Vec::new()));
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = channel();
        let told = Arc::clone(&notices);
        let thread = scene.client(move || {
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                runtime.block_on(async {
                    let daemon = Daemon::open(steering(policy, control), Vec::new());
                    let mut daemon = daemon.expect("the kernel has what it needs");
                    ready.send(()).expect("it is waited for");
                    let tell = |notice: Notice<'_>| {
                        told.lock().expect("nobody panics").push(format!("{notice:?}"));
                    };
                    daemon.run(Duration::from_millis(100), stopped, tell).await.expect("its sockets work").ok();
                });
            })
        });
        is_ready.recv().expect("it has begun");
        Self { stop: Some(stop), notices, thread: Some(thread) }
    }

    /// What it told so far.
    pub fn notices(&self) -> Vec<String> {
        self.notices.lock().expect("nobody panics").clone()
    }

    /// How many commands of a kind were carried out.
    pub fn commands(&self, kind: &str) -> usize {
        let is_one = |notice: &&String| notice.contains(kind) && notice.contains("outcome: Done");
        self.notices().iter().filter(is_one).count()
    }
}

impl Drop for Steered {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().map(JoinHandle::join);
        if std::env::var_os("ANABRANCH_STEER_LOG").is_some() {
            self.notices().iter().for_each(|notice| eprintln!("{notice}"));
        }
    }
}
