//! Programs that go straight to servers of the kernel's, with multipath TCP and without.

use crate::kernel::counter;
use crate::program::{Directory, curl, noise, output, run, sha256, start, there_is, web};
use crate::scene::{kernel_address, limits, one_listener, proxy, scene, stack};
use anabranch_proxy::{Forward, Via};
use libtest_mimic::Trial;
use std::net::SocketAddr;

pub fn trials() -> Vec<Trial> {
    let test = |name: &str, programs: &[&str], work: fn()| {
        let missing: Vec<&str> = programs.iter().copied().filter(|program| !there_is(program)).collect();
        if !missing.is_empty() {
            eprintln!("skipped: direct::{name}: there is no {}", missing.join(" and no "));
        }
        let run = move || {
            work();
            Ok(())
        };
        Trial::test(format!("direct::{name}"), run).with_ignored_flag(!missing.is_empty())
    };
    vec![
        test("curl_over_socks_to_a_multipath_server", &["curl", "python3", "mptcpize"], || fetch("socks5h", true)),
        test("curl_over_connect_to_a_multipath_server", &["curl", "python3", "mptcpize"], || fetch("http", true)),
        test("curl_over_socks_to_a_plain_server", &["curl", "python3"], || fetch("socks5", false)),
        test("git_clones_over_http", &["git", "python3", "mptcpize"], git),
        test("ssh_through_a_forwarded_port", &["ssh", "sshd", "ssh-keygen", "unshare"], ssh),
        test("a_browser_shows_a_page", &["chromium", "python3", "mptcpize"], browser),
        test("python_serves_with_multipath_sockets", &["curl", "python3"], python),
    ]
}

fn fetch(scheme: &'static str, multipath: bool) {
    scene(60, || async move {
        let stack = stack(0..2);
        let (address, running) = proxy(&stack, Via::Direct, limits());
        let directory = Directory::new();
        let digest = directory.fill("file", 20_000_000);
        let _web = web(directory.path(), 8000, multipath).await;
        let body = curl(scheme, address, &format!("http://{}:8000/file", kernel_address(0))).await;
        assert_eq!(sha256(&body), digest);
        assert_eq!(
            counter("MPCapableACKRX"),
            u64::from(multipath),
            "connections that the kernel accepted as multipath"
        );
        let counters = running.stop().await;
        assert_eq!((counters.accepted, counters.finished), (1, 1), "{counters}");
        assert!(counters.bytes_down > 20_000_000);
    });
}

fn git() {
    scene(60, || async {
        let stack = stack(0..2);
        let (address, running) = proxy(&stack, Via::Direct, limits());
        let directory = Directory::new();
        let origin = directory.file("origin");
        let digest = {
            run(&["git", "init", "--quiet", &origin]).await;
            let bytes = noise(3_000_000);
            std::fs::write(directory.path().join("origin/file"), &bytes).expect("the file can be written");
            run(&["git", "-C", &origin, "add", "file"]).await;
            let who = ["-c", "user.name=Somebody", "-c", "user.email=somebody@example.org"];
            run(&[&["git", "-C", &origin][..], &who, &["commit", "--quiet", "--message", "a file"]].concat()).await;
            run(&["git", "-C", &origin, "update-server-info"]).await;
            sha256(&bytes)
        };
        let _web = web(directory.path(), 8000, true).await;
        let (copy, url) = (directory.file("copy"), format!("http://{}:8000/origin/.git", kernel_address(0)));
        let setting = format!("http.proxy=socks5h://{address}");
        run(&["git", "-c", &setting, "clone", "--quiet", &url, &copy]).await;
        let bytes = std::fs::read(directory.path().join("copy/file")).expect("it is there");
        assert_eq!(sha256(&bytes), digest);
        let counters = running.stop().await;
        assert!(counters.accepted > 0 && counters.reset == 0 && counters.failed == 0, "{counters}");
    });
}

fn ssh() {
    scene(60, || async {
        let stack = stack(0..2);
        let target = SocketAddr::new(kernel_address(0), 22);
        let (address, running) = one_listener(&stack, Via::Direct, Forward::To(target.into()), limits());
        let directory = Directory::new();
        let (host, user) = (directory.file("host"), directory.file("user"));
        for key in [&host, &user] {
            run(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key]).await;
        }
        // The daemon wants a directory in /run, which is one of its own here.
        let options = format!(
            "-o HostKey={host} -o AuthorizedKeysFile={user}.pub -o StrictModes=no -o UsePAM=no -o PidFile=none \
             -o PermitRootLogin=yes -o ListenAddress={target}"
        );
        let shell = format!(
            "mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && exec /usr/sbin/sshd -D -f /dev/null {options}"
        );
        let _sshd = start(&["unshare", "--mount", "sh", "-c", &shell], 22).await;
        let digest = directory.fill("file", 5_000_000);
        let port = address.port().to_string();
        let printed = run(&[
            "ssh",
            "-F",
            "none",
            "-i",
            &user,
            "-p",
            &port,
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-o",
            "BatchMode=yes",
            "root@127.0.0.1",
            "cat",
            &directory.file("file"),
        ])
        .await;
        assert_eq!(sha256(&printed), digest);
        let counters = running.stop().await;
        assert_eq!((counters.accepted, counters.reset), (1, 0), "{counters}");
    });
}

fn browser() {
    scene(60, || async {
        let stack = stack(0..2);
        let (address, running) = proxy(&stack, Via::Direct, limits());
        let directory = Directory::new();
        let script = "document.body.textContent = ['over', 'the', 'river'].join(' ')";
        std::fs::write(directory.path().join("script.js"), script).expect("the file can be written");
        let page = "<!doctype html><title>page</title><body><script src=script.js></script></body>";
        std::fs::write(directory.path().join("page.html"), page).expect("the file can be written");
        let _web = web(directory.path(), 8000, true).await;
        let profile = format!("--user-data-dir={}", directory.file("profile"));
        let proxy = format!("--proxy-server=socks5://{address}");
        let url = format!("http://{}:8000/page.html", kernel_address(0));
        let dom = run(&[
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
            &profile,
            &proxy,
            "--dump-dom",
            &url,
        ])
        .await;
        let dom = String::from_utf8_lossy(&dom);
        assert!(dom.contains("over the river"), "{dom}");
        let _ = running.stop().await;
        assert!(counter("MPCapableACKRX") > 0);
    });
}

/// A server that speaks HTTP just well enough, on a socket of the kernel's MPTCP.
const PYTHON: &str = "
import socket, sys
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
listener.bind(('', 8000))
listener.listen()
while True:
    connection, _ = listener.accept()
    head = b''
    while b'\\r\\n\\r\\n' not in head:
        head += connection.recv(65536)
    body = open(sys.argv[1], 'rb').read()
    connection.sendall(b'HTTP/1.0 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(body) + body)
    connection.close()
";

fn python() {
    scene(60, || async {
        let stack = stack(0..2);
        let (address, running) = proxy(&stack, Via::Direct, limits());
        let directory = Directory::new();
        let digest = directory.fill("file", 10_000_000);
        let _server = start(&["python3", "-c", PYTHON, &directory.file("file")], 8000).await;
        for path in 0..2 {
            let body = curl("socks5h", address, &format!("http://{}:8000/", kernel_address(path))).await;
            assert_eq!(sha256(&body), digest);
        }
        assert_eq!(counter("MPCapableACKRX"), 2);
        let refused =
            output(&["curl", "--silent", "--proxy", &format!("socks5h://{address}"), "http://10.0.0.1:9/"]).await;
        // 97: the proxy says no.
        assert_eq!(refused.status.code(), Some(97));
        let counters = running.stop().await;
        assert_eq!((counters.finished, counters.failed), (2, 1), "{counters}");
    });
}
