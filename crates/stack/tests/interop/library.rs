//! The library as its users have it: examples, both kinds of streams, and what dropping them does.

use crate::kernel::{ip, mptcp_socket};
use crate::pair::{config, ours, theirs, with_paths};
use anabranch_attach::blocking;
use anabranch_attach::{Attachment, HostOptions, Local};
use anabranch_mptcp::CloseCause;
use anabranch_policy::combination::Combination;
use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_stack::PathChange;
use anabranch_stack::StackConfig;
use anabranch_system::Namespace;
use libtest_mimic::Trial;
use socket2::Socket;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[path = "../../../attach/examples/answer.rs"]
#[allow(dead_code)]
mod answer;
#[path = "../../../attach/examples/ask.rs"]
#[allow(dead_code)]
mod ask;

/// Long enough for a machine that is busy with other things.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(20));

pub fn trials() -> Vec<Trial> {
    let trial = |name: &str, test: fn()| {
        Trial::test(format!("library::{name}"), move || {
            test();
            Ok(())
        })
    };
    vec![
        trial("the_asynchronous_example_asks_a_server_of_the_kernels", the_asynchronous_example),
        trial("the_blocking_example_answers_clients_of_the_kernels", the_blocking_example),
        trial("what_was_written_before_a_stream_is_dropped_arrives", dropped_after_writing),
        trial("what_comes_for_a_dropped_stream_resets_it", dropped_before_reading),
        trial("halves_are_used_by_two_tasks_and_end_on_their_own", halves),
        trial("path_changes_are_told_with_addresses_and_names", path_changes),
        trial("blocking_operations_end_when_their_time_is_over", timeouts),
        trial("one_thread_reads_while_another_writes", two_threads),
        trial("a_blocking_stack_leaves_nothing_behind", nothing_left),
    ]
}

/// Runs `test` in a fresh namespace, with an attachment of two paths to it.
fn in_namespace(name: &str, test: impl FnOnce(&Attachment) + Send) {
    let journal = std::env::temp_dir().join(format!("anabranch-library-{}-{name}", std::process::id()));
    let options = HostOptions { journal: Some(journal.clone()), ..HostOptions::default() };
    let attachment = Attachment::Local(Local { paths: 2, options });
    let namespace = Namespace::new().expect("namespaces were there a moment ago");
    let work = || {
        ip("link set lo up");
        test(&attachment);
    };
    namespace.run(work).expect("it can be entered");
    // It may never have been made.
    let _ = std::fs::remove_dir_all(journal);
}

/// The kernel's address on the first path of an attachment.
const KERNEL: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 1));
/// The stack's.
const STACK: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 18, 0, 2));

fn listen(address: SocketAddr) -> Socket {
    let listener = mptcp_socket(address);
    listener.bind(&address.into()).expect("the port is free");
    listener.listen(8).expect("it can listen");
    listener
}

fn connect(address: SocketAddr) -> Socket {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    loop {
        let socket = mptcp_socket(address);
        match socket.connect(&address.into()) {
            Ok(()) => return socket,
            Err(error) if std::time::Instant::now() > deadline => panic!("{error}"),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn blocking_stack(attachment: &Attachment) -> blocking::Stack {
    let path_manager = Combination::default().build_path_manager().expect("the default exists");
    blocking::Stack::attach(attachment, StackConfig::new(path_manager)).expect("we are root")
}

fn the_asynchronous_example() {
    in_namespace("ask", |attachment| {
        // The address comes with the stack.
        let listener = listen(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 7));
        let server = thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("the example connects");
            let mut question = String::new();
            socket.read_to_string(&mut question).expect("the stream ends");
            socket.write_all(b"An arm of a river.").expect("the example reads");
            question
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let answer = runtime.block_on(ask::ask(attachment, SocketAddr::new(KERNEL, 7))).expect("it is answered");
        assert_eq!(answer, "An arm of a river.");
        assert_eq!(server.join().expect("the server ends"), "What is an anabranch?\n");
    });
}

fn the_blocking_example() {
    in_namespace("answer", |attachment| {
        let namespace = Namespace::current().expect("it is there");
        let client = thread::spawn(move || {
            let work = || {
                (0..2)
                    .map(|_| {
                        let mut socket = connect(SocketAddr::new(STACK, 7));
                        socket.write_all(b"What is an anabranch?\n").expect("it reads");
                        socket.shutdown(Shutdown::Write).expect("it is open");
                        let mut answer = String::new();
                        socket.read_to_string(&mut answer).expect("it closes");
                        answer
                    })
                    .collect::<Vec<_>>()
            };
            namespace.run(work).expect("it can be entered")
        });
        answer::answer(attachment, 7, 2).expect("it serves two");
        let answers = client.join().expect("the client ends");
        assert_eq!(answers, ["What is an anabranch? An arm of a river that comes back to it.\n"; 2]);
    });
}

fn dropped_after_writing() {
    with_paths(2, false, |stack| async move {
        let address = SocketAddr::new(theirs(0, false), 7);
        let listener = listen(address);
        let server = thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("we connect");
            let mut bytes = Vec::new();
            socket.read_to_end(&mut bytes).expect("the stream ends");
            bytes
        });
        let mut stream = stack.connect(None, address, config(&Combination::default())).await.expect("it accepts");
        let written = vec![7; 3_000_000];
        stream.write_all(&written).await.expect("it reads");
        drop(stream);
        let read = tokio::task::spawn_blocking(|| server.join().expect("it ends")).await.expect("it ran");
        assert!(read == written, "{} bytes", read.len());
    });
}

fn dropped_before_reading() {
    with_paths(1, false, |stack| async move {
        let address = SocketAddr::new(ours(0, false), 7);
        let listener = stack.listen(7, config(&Combination::default())).expect("the port is free");
        let client = thread::spawn(move || {
            let mut socket = connect(address);
            socket.write_all(&[7; 1_000]).expect("it is open");
            // Reset, as nobody has read.
            loop {
                if let Err(error) = socket.write_all(&[7; 1_000]) {
                    break error;
                }
                thread::sleep(Duration::from_millis(5));
            }
        });
        let stream = listener.accept().await.expect("the kernel connects");
        // Until what it sent is here, unread.
        while stream.receive_state().is_none_or(|state| state.readable < 1_000) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(stream);
        let error = tokio::task::spawn_blocking(|| client.join().expect("it ends")).await.expect("it ran");
        assert!(matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe), "{error}");
    });
}

fn halves() {
    with_paths(1, false, |stack| async move {
        let address = SocketAddr::new(theirs(0, false), 7);
        let listener = listen(address);
        let echo = thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("we connect");
            let mut bytes = Vec::new();
            socket.read_to_end(&mut bytes).expect("the writing half is dropped");
            socket.write_all(&bytes).expect("the reading half is there");
        });
        let stream = stack.connect(None, address, config(&Combination::default())).await.expect("it accepts");
        assert_eq!(stream.local_address().map(|local| local.ip()), Some(ours(0, false)));
        stream.set_priority(3).expect("it is open");
        assert_eq!(stream.view().map(|view| view.priority), Some(3));
        let (mut reader, mut writer) = stream.into_split();
        let reading = tokio::spawn(async move {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).await.expect("it closes");
            (bytes, reader.closed().await)
        });
        writer.write_all(&[3; 100_000]).await.expect("it reads");
        drop(writer);
        let (bytes, cause) = reading.await.expect("it does not panic");
        assert_eq!((bytes.len(), cause), (100_000, CloseCause::Finished));
        echo.join().expect("it ends");
    });
}

fn path_changes() {
    with_paths(2, false, |stack| async move {
        let address = SocketAddr::new(theirs(0, false), 7);
        let listener = listen(address);
        let server = thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("we connect");
            let mut bytes = Vec::new();
            socket.read_to_end(&mut bytes).expect("the stream ends");
        });
        let mut stream = stack.connect(None, address, config(&Combination::default())).await.expect("it accepts");
        stream.write_all(b"data that lets us join").await.expect("room");
        assert_eq!(stream.path_change().await, Some(PathChange::Established(SubflowId(0))));
        assert_eq!(stream.path_change().await, Some(PathChange::Established(SubflowId(1))));
        let paths = stream.paths();
        let names: Vec<(&str, IpAddr)> = paths.iter().map(|p| (p.name.as_str(), p.subflow.local.ip())).collect();
        assert_eq!(names, [("path0", ours(0, false)), ("path1", ours(1, false))]);
        stack.address_down(AddressId(2));
        assert!(matches!(stream.path_change().await, Some(PathChange::Closed(SubflowId(1), _))));
        stream.shutdown().await.expect("open");
        stream.closed().await;
        while stream.path_change().await.is_some() {}
        server.join().expect("it ends");
    });
}

fn timeouts() {
    in_namespace("timeouts", |attachment| {
        let stack = blocking_stack(attachment);
        let short = Some(Duration::from_millis(50));
        let config = || config(&Combination::default());
        let listener = stack.listen(8, config()).expect("the port is free");
        assert_eq!(listener.accept(short).err().map(|error| error.kind()), Some(io::ErrorKind::TimedOut));
        // Nobody is there, and the kernel that is the router does not say so.
        ip("rule add to 192.0.2.1 priority 1 blackhole");
        let nowhere = SocketAddr::new(Ipv4Addr::new(192, 0, 2, 1).into(), 7);
        let error = stack.connect(None, nowhere, config(), short).err().expect("nobody answers");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let refused = stack.connect(None, SocketAddr::new(KERNEL, 9), config(), PATIENCE).err();
        assert_eq!(refused.map(|error| error.kind()), Some(io::ErrorKind::ConnectionRefused));
        let server = listen(SocketAddr::new(KERNEL, 7));
        let mut stream = stack.connect(None, SocketAddr::new(KERNEL, 7), config(), PATIENCE).expect("it accepts");
        stream.set_read_timeout(short);
        stream.set_write_timeout(short);
        let mut bytes = [0; 10];
        assert_eq!(stream.read(&mut bytes).err().map(|error| error.kind()), Some(io::ErrorKind::TimedOut));
        // Nobody reads: at some time there is no room.
        let full = loop {
            if let Err(error) = stream.write(&[7; 100_000]) {
                break error;
            }
        };
        assert_eq!(full.kind(), io::ErrorKind::TimedOut);
        drop(server);
    });
}

fn two_threads() {
    in_namespace("two_threads", |attachment| {
        let stack = blocking_stack(attachment);
        let listener = listen(SocketAddr::new(KERNEL, 7));
        let echo = thread::spawn(move || {
            let (socket, _) = listener.accept().expect("we connect");
            let (mut from, mut to) = (&socket, &socket);
            io::copy(&mut from, &mut to).expect("both directions work");
        });
        let config = config(&Combination::default());
        let stream = stack.connect(None, SocketAddr::new(KERNEL, 7), config, PATIENCE).expect("it accepts");
        stream.set_read_timeout(PATIENCE);
        let sent: Vec<u8> = (0..20_000_000_u32).map(|at| (at >> 8) as u8).collect();
        let received = thread::scope(|scope| {
            let (reader, length) = (&stream, sent.len());
            let reading = scope.spawn(move || {
                let mut bytes = Vec::with_capacity(length);
                (&*reader).read_to_end(&mut bytes).map(|_| bytes)
            });
            (&stream).write_all(&sent).expect("the other thread reads");
            stream.shutdown();
            reading.join().expect("it does not panic").expect("the echo closes")
        });
        assert!(received == sent, "{} bytes", received.len());
        assert_eq!(stream.finish(PATIENCE), Some(CloseCause::Finished));
        echo.join().expect("it ends");
    });
}

fn nothing_left() {
    in_namespace("nothing_left", |attachment| {
        let interfaces = || {
            let all = nix::ifaddrs::getifaddrs().expect("they can be listed");
            all.map(|interface| interface.interface_name).filter(|name| name != "lo").count()
        };
        let stack = blocking_stack(attachment);
        let listener = stack.listen(8, config(&Combination::default())).expect("the port is free");
        assert!(interfaces() > 0);
        drop(stack);
        // The listener holds the stack.
        assert_eq!(listener.accept(Some(Duration::ZERO)).err().map(|e| e.kind()), Some(io::ErrorKind::TimedOut));
        drop(listener);
        assert_eq!(interfaces(), 0);
    });
}
