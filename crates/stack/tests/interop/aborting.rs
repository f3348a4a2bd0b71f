//! Ends before the end: fast close, closing on a peer that still sends, resets of subflows, ports that nobody listens on.

use crate::middlebox::Way;
use crate::mischief::{Failure, befall};
use crate::scene::{Role, Scene, blocking};
use crate::traffic::{End, exchange};
use anabranch_mptcp::{CloseCause, ConnectionConfig};
use anabranch_policy::time::Duration as Span;
use anabranch_policy::view::{SubflowState, SubflowView};
use anabranch_stack::Stream;
use anabranch_wire::{Flags, MptcpOption, Packet};
use libtest_mimic::Trial;
use socket2::Socket;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Who aborts, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Abort {
    /// The kernel's application closes and has not read all.
    KernelUnread,
    /// It asks for no lingering.
    KernelLinger,
    /// Ours aborts.
    Ours,
    /// Ours lets go and has not read all.
    OursUnread,
}

impl Abort {
    const ALL: [(Self, &'static str); 4] = [
        (Self::KernelUnread, "the_kernel_closes_with_unread_data"),
        (Self::KernelLinger, "the_kernel_closes_without_lingering"),
        (Self::Ours, "we_abort"),
        (Self::OursUnread, "we_let_go_of_unread_data"),
    ];
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    let mut add = |name: String, test: Box<dyn FnOnce() + Send>| {
        trials.push(Trial::test(format!("aborting::{name}"), move || {
            test();
            Ok(())
        }));
    };
    for (role, who) in Role::ALL {
        for (v6, family) in [(false, "ipv4"), (true, "ipv6")] {
            for paths in [1, 2] {
                let suffix = format!("on_{paths}_paths_{family}");
                for (how, what) in Abort::ALL {
                    let test = move || abort(role, how, Scene::new(paths, v6));
                    add(format!("{who}_and_{what}_{suffix}"), Box::new(test));
                }
                let test = move || we_let_go(role, Scene::new(paths, v6));
                add(format!("{who}_and_the_kernel_writes_to_nobody_{suffix}"), Box::new(test));
                let test = move || the_kernel_lets_go(role, Scene::new(paths, v6));
                add(format!("{who}_and_we_write_to_nobody_{suffix}"), Box::new(test));
            }
            add(format!("{who}_to_a_closed_port_{family}"), Box::new(move || refused(role, v6)));
        }
        for path in [0, 1] {
            let test = move || one_reset(role, path);
            add(format!("{who}_and_subflow_{path}_of_two_is_reset"), Box::new(test));
        }
        for paths in [1, 2] {
            let test = move || nobody_answers(role, paths);
            add(format!("{who}_and_nobody_answers_for_the_user_timeout_on_{paths}_paths"), Box::new(test));
        }
        add(format!("{who}_and_the_only_subflow_is_reset"), Box::new(move || all_reset(role)));
    }
    trials
}

/// Opens the connection's second subflow, if there is a second path.
pub async fn warm_up(stream: &mut Stream, socket: &mut Socket, paths: usize) {
    let mut byte = [0];
    stream.write_all(b"x").await.expect("open");
    let mut second = socket.try_clone().expect("a descriptor");
    blocking(move || second.read_exact(&mut [0]).expect("it was written")).await;
    socket.write_all(b"y").expect("open");
    stream.read_exact(&mut byte).await.expect("it was written");
    let established = |s: &&SubflowView| s.state == SubflowState::Established;
    while stream.subflows().iter().filter(established).count() < paths {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The error that the kernel's application hears, after what can be read.
async fn kernel_hears(mut socket: Socket) -> Option<ErrorKind> {
    blocking(move || {
        let mut buffer = [0; 4096];
        loop {
            match socket.read(&mut buffer) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some(error.kind()),
            }
        }
    })
    .await
}

fn abort(role: Role, how: Abort, scene: Scene) {
    let paths = scene.links.len();
    scene.run(|hosts| async move {
        let (mut stream, mut socket) = hosts.open(role, hosts.config()).await;
        warm_up(&mut stream, &mut socket, paths).await;
        match how {
            Abort::KernelUnread | Abort::KernelLinger => {
                if how == Abort::KernelUnread {
                    stream.write_all(&[1; 10_000]).await.expect("open");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                } else {
                    socket.set_linger(Some(Duration::ZERO)).expect("an option that sockets have");
                }
                drop(socket);
                let heard = stream.read_to_end(&mut Vec::new()).await.expect_err("the kernel has aborted");
                assert_eq!(heard.kind(), ErrorKind::ConnectionReset);
                assert_eq!(stream.closed().await, CloseCause::AbortedByPeer);
            }
            Abort::Ours | Abort::OursUnread => {
                if how == Abort::Ours {
                    stream.abort();
                    assert_eq!(stream.closed().await, CloseCause::Aborted);
                } else {
                    socket.write_all(&[1; 10_000]).expect("open");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                drop(stream);
                assert_eq!(kernel_hears(socket).await, Some(ErrorKind::ConnectionReset));
            }
        }
        let fast_closes = |way| {
            let is_fast_close = |option: &MptcpOption| matches!(option, MptcpOption::FastClose { .. });
            let seen = |middlebox: &crate::middlebox::Middlebox| {
                middlebox
                    .seen(|seen| seen.way == way && seen.packet.segment.options.mptcp.iter().any(is_fast_close))
                    .len()
            };
            hosts.middleboxes.iter().map(seen).sum::<usize>()
        };
        let way = if matches!(how, Abort::Ours | Abort::OursUnread) { Way::ToKernel } else { Way::ToUs };
        assert!(fast_closes(way) > 0, "MP_FASTCLOSE was sent");
        hosts.nothing_lingers().await;
    });
}

/// Our application lets go of the connection, and the kernel's goes on writing.
fn we_let_go(role: Role, scene: Scene) {
    let paths = scene.links.len();
    scene.run(|hosts| async move {
        let (mut stream, mut socket) = hosts.open(role, hosts.config()).await;
        warm_up(&mut stream, &mut socket, paths).await;
        drop(stream);
        let heard = blocking(move || {
            loop {
                if let Err(error) = socket.write_all(&[2; 1_000]) {
                    return error.kind();
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let heard = heard.await;
        assert!(matches!(heard, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{heard:?}");
        hosts.nothing_lingers().await;
    });
}

/// The kernel's application closes both ways with nothing unread, and ours goes on writing for a while. Linux takes what
/// comes, as far as its buffer goes, and says nothing: there it differs from a TCP, which resets.
fn the_kernel_lets_go(role: Role, scene: Scene) {
    let paths = scene.links.len();
    scene.run(|hosts| async move {
        let (mut stream, mut socket) = hosts.open(role, hosts.config()).await;
        warm_up(&mut stream, &mut socket, paths).await;
        drop(socket);
        assert_eq!(stream.read(&mut [0; 10]).await.expect("the stream has ended well"), 0);
        stream.write_all(&[2; 30_000]).await.expect("the kernel says nothing");
        stream.shutdown().await.expect("open");
        assert_eq!(stream.closed().await, CloseCause::Finished);
        drop(stream);
        hosts.nothing_lingers().await;
    });
}

/// Nobody listens.
fn refused(role: Role, v6: bool) {
    Scene::new(1, v6).run(|hosts| async move {
        let heard = match role {
            Role::WeOpen => {
                let outcome = hosts.stack.connect(None, hosts.kernel_address(), hosts.config()).await;
                std::io::Error::from(outcome.err().expect("nobody listens")).kind()
            }
            Role::TheKernelOpens => {
                let (address, socket) = (hosts.our_address(), crate::kernel::mptcp_socket(hosts.our_address()));
                blocking(move || socket.connect(&address.into()).expect_err("nobody listens").kind()).await
            }
        };
        assert_eq!(heard, ErrorKind::ConnectionRefused);
        hosts.nothing_lingers().await;
    });
}

/// All paths swallow everything: after the user timeout the stream says so, and a kernel that is reached again ends, too.
fn nobody_answers(role: Role, paths: usize) {
    Scene::new(paths, false).links(10, 0.0).run(move |hosts| async move {
        let config = ConnectionConfig { user_timeout: Some(Span::from_secs(2)), ..hosts.config() };
        let (mut stream, mut socket) = hosts.open(role, config).await;
        warm_up(&mut stream, &mut socket, paths).await;
        // What comes from the kernel still passes, but none of our answers does.
        for path in &hosts.middleboxes {
            let ends = |packet: &Packet| packet.segment.flags.contains(Flags::RST);
            path.obey(move |way, packet| if way == Way::ToUs || ends(&packet) { vec![packet] } else { Vec::new() });
        }
        stream.write_all(b"z").await.expect("open");
        assert_eq!(stream.closed().await, CloseCause::UserTimeout);
        let heard = stream.read_to_end(&mut Vec::new()).await.expect_err("it has timed out");
        assert_eq!(heard.kind(), ErrorKind::TimedOut);
        drop(stream);
        assert_eq!(kernel_hears(socket).await, Some(ErrorKind::ConnectionReset));
        hosts.nothing_lingers().await;
    });
}

/// A reset hits one of two subflows in mid-transfer, at both ends.
fn one_reset(role: Role, path: usize) {
    Scene::new(2, false).links(10, 0.0).run(|hosts| async move {
        let (mut stream, mut socket) = hosts.open(role, hosts.config()).await;
        warm_up(&mut stream, &mut socket, 2).await;
        let reset = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            befall(&hosts, path, Failure::Resets);
        };
        let end = End::new(6_000_000);
        tokio::join!(exchange(stream, socket, &end, &end, Duration::from_secs(40)), reset);
        hosts.nothing_lingers().await;
    });
}

/// A reset hits the only subflow: without another within the time that is set, both ends hear of it.
fn all_reset(role: Role) {
    let mut scene = Scene::new(1, false);
    if Path::new("/proc/sys/net/mptcp/close_timeout").exists() {
        scene = scene.set("mptcp/close_timeout", 2);
    } else {
        // Older kernels have it a minute for good.
        scene.deadline = 120;
    }
    scene.run(|hosts| async move {
        let mut config: ConnectionConfig = hosts.config();
        config.survive_without_subflows = Span::from_secs(2);
        let (mut stream, mut socket) = hosts.open(role, config).await;
        warm_up(&mut stream, &mut socket, 1).await;
        befall(&hosts, 0, Failure::ResetsForGood);
        stream.write_all(b"z").await.expect("open");
        assert_eq!(stream.closed().await, CloseCause::TimedOut);
        let heard = stream.read_to_end(&mut Vec::new()).await.expect_err("it has timed out");
        assert_eq!(heard.kind(), ErrorKind::TimedOut);
        drop(stream);
        let heard = kernel_hears(socket).await;
        assert!(
            matches!(heard, Some(ErrorKind::TimedOut | ErrorKind::ConnectionReset | ErrorKind::NotConnected)),
            "{heard:?}"
        );
        hosts.nothing_lingers().await;
    });
}
