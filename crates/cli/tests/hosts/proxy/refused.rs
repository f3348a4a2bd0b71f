//! Errors are reported before the host's configuration changes.

use crate::program::{anabranch, complaint, directory, text};
use libtest_mimic::Trial;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

pub fn trials() -> Vec<Trial> {
    let trial = |name: &str, work: fn()| {
        Trial::test(format!("proxy::refused::{name}"), move || {
            work();
            Ok(())
        })
    };
    vec![
        trial("an_address_in_use", address_in_use),
        trial("a_key_that_is_not_there_or_not_secret_or_not_long_enough", keys),
        trial("a_key_is_never_overwritten", overwritten),
        trial("credentials_that_others_can_read_or_that_are_none", credentials),
        trial("a_host_that_nobody_knows", unknown_hosts),
        trial("a_server_for_everybody", open_relay),
        trial("a_proxy_for_everybody", open_proxy),
        trial("a_forward_that_leads_nowhere", forwards),
        trial("a_user_without_the_right", no_permission),
        trial("a_limit_of_open_files_that_is_too_low", open_files),
        trial("a_configuration_file_that_is_wrong", configuration),
    ]
}

fn refused(arguments: &[&str]) -> String {
    complaint(&anabranch(arguments).output().expect("the program runs"))
}

fn write(path: &Path, content: &str, mode: u32) -> String {
    std::fs::write(path, content).expect("the file can be written");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    path.display().to_string()
}

fn address_in_use() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it has an address").to_string();
    let message = refused(&["proxy", "--local", "--listen", &address]);
    assert!(message.contains(&address) && message.contains("another program listens there"), "{message}");
    let message = refused(&["proxy", "--local", "--listen", "192.0.2.1:1080", "--allow-remote"]);
    assert!(message.contains("no such address"), "{message}");
}

fn keys() {
    let place = directory("proxy-keys");
    let serve = |key: &str| refused(&["serve", "--local", "--port", "4410", "--to", "127.0.0.1:80", "--key", key]);
    let absent = place.join("absent").display().to_string();
    assert!(serve(&absent).contains("No such file"));
    let good = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n";
    let message = serve(&write(&place.join("open"), good, 0o644));
    assert!(message.contains("mode 644") && message.contains("chmod 600"), "{message}");
    let message = serve(&write(&place.join("short"), "AAECAwQFBgcICQoLDA0ODw==\n", 0o600));
    assert!(message.contains("16 bytes") && message.contains("anabranch key"), "{message}");
    let message = serve(&write(&place.join("password"), "correct horse battery staple\n", 0o600));
    assert!(message.contains("no key") && message.contains("anabranch key"), "{message}");
    let message = serve(&place.display().to_string());
    assert!(message.contains("directory") || message.contains("mode"), "{message}");
    // The proxy reads its key in the same way.
    let message = refused(&["proxy", "--local", "--server", "127.0.0.1:4410", "--key", &absent]);
    assert!(message.contains("No such file"), "{message}");
}

fn overwritten() {
    let place = directory("proxy-overwritten");
    let file = place.join("key");
    let name = file.display().to_string();
    let output = anabranch(&["key", &name]).output().expect("the program runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(std::fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
    let key = std::fs::read_to_string(&file).expect("it is ours");
    assert_eq!(key.trim().len(), 44);
    assert!(refused(&["key", &name]).contains("not overwritten"));
    assert_eq!(std::fs::read_to_string(&file).expect("it is ours"), key);
    let nowhere = place.join("no/such/directory").display().to_string();
    assert!(refused(&["key", &nowhere]).contains("cannot write"));
}

fn credentials() {
    let place = directory("proxy-credentials");
    let proxy = |file: &str| refused(&["proxy", "--local", "--credentials", file]);
    assert!(proxy(&write(&place.join("open"), "fred:secret\n", 0o640)).contains("chmod 600"));
    assert!(proxy(&write(&place.join("none"), "fred\n", 0o600)).contains("NAME:PASSWORD"));
    assert!(proxy(&place.join("absent").display().to_string()).contains("No such file"));
}

fn unknown_hosts() {
    let place = directory("proxy-unknown_hosts");
    let key = write(&place.join("key"), "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n", 0o600);
    for arguments in [
        &["proxy", "--udp", "--server", "no-such-host.invalid:4410", "--key", &key, "--dry-run"][..],
        &["proxy", "--local", "--forward", "8080=no-such-host.invalid:80"],
        &["serve", "--local", "--port", "4410", "--to", "no-such-host.invalid:80"],
    ] {
        let message = refused(arguments);
        assert!(message.contains("no-such-host.invalid") && message.contains("not known"), "{message}");
    }
}

fn open_relay() {
    for to in [&["--to", "127.0.0.1:80"][..], &["--socks"]] {
        let message = refused(&[&["serve", "--port", "4410"], to].concat());
        assert!(message.contains("--key") && message.contains("--local"), "{message}");
        let message = refused(&[&["serve", "--port", "4410", "--uplink", "lo"], to].concat());
        assert!(message.contains("--key"), "{message}");
    }
}

fn open_proxy() {
    for address in ["0.0.0.0:1080", "[::]:1080"] {
        let message = refused(&["proxy", "--local", "--listen", address]);
        assert!(message.contains("--allow-remote"), "{message}");
        let message = refused(&["proxy", "--local", "--forward", &format!("{address}=127.0.0.1:80")]);
        assert!(message.contains("--allow-remote"), "{message}");
    }
}

fn forwards() {
    let message = refused(&["proxy", "--local", "--forward", "8080"]);
    assert!(message.contains("=HOST:PORT"), "{message}");
    // Unreadable files are reported by their reader, with more detail.
    let output = anabranch(&["proxy", "--local", "--forward", "8080=example.org"]).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("a port from 1 to 65535"));
}

fn configuration() {
    let place = directory("proxy-configuration");
    let file = place.join("anabranch.toml").display().to_string();
    let check = |text: &str| {
        std::fs::write(&file, text).expect("the file can be written");
        anabranch(&["check-config", &file]).output().expect("the program runs")
    };
    let output = check("[serve]\nport = 4410\nsocks = true\nmax-conections = 3\n");
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.contains("anabranch.toml:4:1: unknown key 'max-conections'"), "{message}");
    // The command reports the same, with any other options.
    let output = anabranch(&["serve", "--local", "--config", &file]).output().expect("the program runs");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), message));
    let everybody = "[serve]\nport = 4410\nsocks = true\n";
    assert!(text(&check(everybody).stderr).contains("anabranch.toml:1:2: [serve] without --key"));
    let policy = "[proxy]\npolicy = \"congestion=cubik\"\n";
    assert!(text(&check(policy).stderr).contains("did you mean 'cubic'"));
    let listen = "[proxy]\nlisten = \"0.0.0.0:1080\"\n";
    assert!(text(&check(listen).stderr).contains("--allow-remote"));
    let route = "[route]\ninterface = \"wlan0\"\nhello-interval = \"1500 ms\"\n";
    assert!(text(&check(route).stderr).contains("whole seconds"));
    assert!(text(&check("[prxy]\n").stderr).contains("did you mean 'proxy'?"));
    assert!(text(&check("").stderr).contains("no table"));
    let good = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n";
    let right = format!("{everybody}key = \"key\"\n[proxy]\n");
    assert!(text(&check(&right).stderr).contains("No such file"));
    write(&place.join("key"), good, 0o600);
    assert_eq!(text(&check(&right).stdout), "ok: proxy, serve\n");
}

fn open_files() {
    let limited = |limit: &str| {
        let program = env!("CARGO_BIN_EXE_anabranch");
        let script = format!("ulimit {limit} 8 && exec {program} serve --local --port 4410 --to 127.0.0.1:80");
        let mut command = std::process::Command::new("sh");
        if is_root() {
            // The user nobody may not exceed the hard limit.
            command.uid(65_534).gid(65_534);
        }
        command.args(["-c", &script]).output().expect("a shell is there")
    };
    let output = limited("-n");
    if output.status.code() == Some(126) {
        // The user nobody may not be able to access the executable.
        return;
    }
    let message = complaint(&output);
    assert!(message.contains("Too many open files") && message.contains("ulimit -n"), "{message}");
    // What it may raise it raises before it needs it.
    let message = text(&limited("-S -n").stderr);
    assert!(message.contains("CAP_NET_ADMIN") && !message.contains("open files"), "{message}");
}

fn is_root() -> bool {
    text(&std::fs::read("/proc/self/status").expect("/proc is there")).contains("\nUid:\t0\t")
}

fn no_permission() {
    let place = directory("proxy-no_permission");
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o777)).expect("it is ours");
    let mut command = anabranch(&["proxy", "--local", "--listen", "127.0.0.1:0", "--journal"]);
    command.arg(&place);
    if is_root() {
        // The user nobody.
        command.uid(65_534).gid(65_534);
    }
    match command.output() {
        Ok(output) => {
            let message = complaint(&output);
            assert!(message.contains("root") || message.contains("CAP_NET_ADMIN"), "{message}");
        }
        // The user nobody may not be able to access the executable.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied),
    }
}
