//! The routers of a mesh of hosts, each in its own thread in its node.

use super::mesh::Mesh;
use anabranch_router::{RouteConfig, RouteDaemon, RouteError};
use anabranch_system::Namespace;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use tokio::sync::oneshot;

/// A running router.
struct Running {
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// All routers. They end when this is dropped.
pub struct Routers {
    running: Vec<Running>,
}

impl Routers {
    /// Starts a router with these settings in each node.
    ///
    /// # Errors
    /// The first router's error.
    pub fn start(mesh: &Mesh, config: &RouteConfig) -> Result<Self, RouteError> {
        let mut routers = Self { running: Vec::new() };
        for node in mesh.nodes() {
            let (end, ended) = oneshot::channel();
            let (tell, started) = sync_channel(1);
            let (namespace, config) = (node.namespace.clone(), config.clone());
            let work = move || inside(&namespace, config, ended, &tell);
            let spawned = thread::Builder::new().name(node.name.clone()).spawn(work);
            let thread = spawned.map_err(RouteError::system("start a thread"))?;
            routers.running.push(Running { end: Some(end), thread: Some(thread) });
            // A thread that ended without a message could not enter its node.
            started.recv().unwrap_or(Err(RouteError::NoPermission))?;
        }
        Ok(routers)
    }
}

impl Drop for Routers {
    fn drop(&mut self) {
        self.running.iter_mut().for_each(|running| drop(running.end.take()));
        for running in &mut self.running {
            if let Some(thread) = running.thread.take() {
                // Anything left disappears with its node.
                let _ = thread.join();
            }
        }
    }
}

fn inside(
    namespace: &Namespace,
    config: RouteConfig,
    ended: oneshot::Receiver<()>,
    tell: &SyncSender<Result<(), RouteError>>,
) {
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            match RouteDaemon::start(config).await {
                Ok(daemon) => {
                    // The starter waits for it.
                    let _ = tell.send(Ok(()));
                    let end = async {
                        // A dropped sender ends the router too.
                        let _ = ended.await;
                    };
                    let _ = daemon.run(end).await;
                }
                Err(error) => drop(tell.send(Err(error))),
            }
        });
    };
    // A node that cannot be entered has no report, and its absence shows that.
    let _ = namespace.run(work);
}
