//! The scene with `up`, and servers at the target: files over HTTP and HTTPS, repositories of git and apt, ssh, iperf3.

use crate::programs::scene::{Running, Scene, text};
use anabranch_system::{Need, missing};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Addresses of the target.
pub const TARGET: &str = "198.51.100.2";
pub const TARGET_V6: &str = "2001:db8:2::2";

const ENTER: &str = "the namespace can be entered";

/// Bytes of the large file.
pub const LARGE: usize = 5_000_000;

/// How a program's traffic is carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Up,
    Run,
}

pub struct Town {
    scene: Scene,
    _up: Running,
    _standing: Vec<Standing>,
    /// Of the next iperf3 server; tests run in parallel.
    next_port: AtomicU16,
}

/// A server, killed on drop.
struct Standing(std::process::Child);

impl Drop for Standing {
    fn drop(&mut self) {
        // It has exited unless the test failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Files created by a shell script in the directory that is its first argument; those that need a missing program are
/// skipped.
const FILES: &str = r#"
cd "$1"
mkdir -p www/many www/apt ssh
head -c 5000000 /dev/urandom > www/large
for i in $(seq 30); do head -c 20000 /dev/urandom > www/many/$i; done
echo '<body>0</body><script>
let got = 0
for (let i = 1; i <= 30; i++) fetch("/many/" + i).then(r => r.arrayBuffer()).then(b => document.body.innerText = got += b.byteLength)
</script>' > www/many.html
if command -v git > /dev/null; then
    export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
    git init --quiet work
    cp -r www/many work/
    (cd work; git add .; git commit --quiet --message one)
    git clone --quiet --bare work www/town.git
    (cd www/town.git; git update-server-info)
fi
if command -v dpkg-deb > /dev/null; then
    mkdir -p package/DEBIAN package/usr/share/town
    cp www/large package/usr/share/town/
    printf 'Package: town\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b>\nDescription: a town\n' > package/DEBIAN/control
    dpkg-deb --build package www/apt/town.deb > /dev/null
    sum=$(sha256sum www/apt/town.deb | cut -d ' ' -f 1)
    printf 'Filename: ./town.deb\nSize: %s\nSHA256: %s\n' $(stat -c %s www/apt/town.deb) $sum | cat package/DEBIAN/control - > www/apt/Packages
fi
if command -v ssh-keygen > /dev/null; then
    ssh-keygen -q -t ed25519 -N '' -f ssh/host
    ssh-keygen -q -t ed25519 -N '' -f ssh/id
    printf 'Port 22\nHostKey %s/ssh/host\nAuthorizedKeysFile %s/ssh/id.pub\nStrictModes no\nPermitRootLogin yes\nPidFile none\nUsePAM no\nSubsystem sftp internal-sftp\n' "$1" "$1" > ssh/config
fi
if command -v openssl > /dev/null; then
    openssl req -x509 -newkey rsa:2048 -nodes -keyout tls.key -out tls.crt -days 30 -subj /CN=town.example \
        -addext 'subjectAltName=DNS:town.example,IP:198.51.100.2,IP:2001:db8:2::2' 2> /dev/null
    openssl x509 -in tls.crt -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64 > tls.pin
fi
cat > Caddyfile <<end
{
    admin off
    auto_https off
    storage file_system $1/caddy
}
https://town.example, https://198.51.100.2, https://[2001:db8:2::2] {
    tls $1/tls.crt $1/tls.key
    root * $1/www
    file_server
    log {
        output file $1/served
    }
}
end
"#;

/// Servers of the target: a name for the log, and the command; `@` is the directory of the files.
const SERVERS: &[(&str, &str)] = &[
    ("files", "python3 -m http.server 8080 --bind :: --directory @/www"),
    ("caddy", "caddy run --config @/Caddyfile --adapter caddyfile"),
    // Not by `git daemon`, whose child would survive its kill.
    ("git", "/usr/lib/git-core/git-daemon --base-path=@/www --export-all --reuseaddr"),
    ("ssh", "/usr/sbin/sshd -D -e -f @/ssh/config"),
];

impl Town {
    pub fn new() -> Self {
        let scene = Scene::new("programs", true);
        let place = scene.place.display().to_string();
        let made = Command::new("sh").args(["-ec", FILES, "sh", &place]).output().expect("there is a shell");
        assert!(made.status.success(), "{}", text(&made.stderr));
        let every_group = "0 2147483647";
        let allow = || std::fs::write("/proc/sys/net/ipv4/ping_group_range", every_group).expect("it can be set");
        scene.server.run(allow).expect(ENTER);
        // sshd requires it.
        std::fs::create_dir_all("/run/sshd").expect("we may");
        let stand = |(name, words): &(&str, &str)| {
            let words = words.replace('@', &place);
            let mut words = words.split_whitespace();
            let log = std::fs::File::create(scene.place.join(format!("{name}.log"))).expect("there is room");
            let mut command = Command::new(words.next()?);
            command.args(words).env("HOME", &place).env("GIT_CONFIG_COUNT", "1").stdin(Stdio::null());
            command.env("GIT_CONFIG_KEY_0", "safe.directory").env("GIT_CONFIG_VALUE_0", "*");
            command.stdout(log.try_clone().expect("a descriptor is free")).stderr(log);
            // Tests that need a missing server are ignored.
            scene.target.run(|| command.spawn().ok().map(Standing)).expect(ENTER)
        };
        let standing = SERVERS.iter().filter_map(stand).collect();
        let up = scene.up(&["--udp"]);
        let town = Self { scene, _up: up, _standing: standing, next_port: AtomicU16::new(5201) };
        town.settle();
        town
    }

    /// Waits until the servers listen.
    fn settle(&self) {
        for (program, port) in [("python3", 8080), ("caddy", 443), ("git", 9418), ("/usr/sbin/sshd", 22)] {
            if missing(&[Need::Programs(&[program])]).is_none() {
                self.wait_for(program, port);
            }
        }
    }

    fn wait_for(&self, program: &str, port: u16) {
        let until = Instant::now() + Duration::from_secs(20);
        let here = format!(":{port} ");
        let list = || Command::new("ss").arg("-lntH").output().expect("it is iproute2's");
        while !text(&self.scene.target.run(list).expect(ENTER).stdout).contains(&here) {
            assert!(Instant::now() < until, "{program} does not listen on port {port}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// A test with iperf3 and its output. Each has a server of its own: between two tests a server is busy for a moment, and then
    /// closes its listener and opens another.
    pub fn iperf3(&self, way: Way, words: &[&str]) -> String {
        let port = self.next_port.fetch_add(1, Ordering::Relaxed);
        let text = port.to_string();
        let serve =
            || Command::new("iperf3").args(["--server", "--one-off", "--port", &text]).stdout(Stdio::null()).spawn();
        let _server = Standing(self.scene.target.run(serve).expect(ENTER).expect("the test needs it"));
        self.wait_for("iperf3", port);
        self.run(way, &[&["iperf3", "-c", TARGET, "-p", &text][..], words].concat())
    }

    /// Path of a file of the town.
    pub fn file(&self, name: &str) -> PathBuf {
        self.scene.place.join(name)
    }

    /// Contents of a file of the town, without the final newline.
    pub fn word(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).expect("it was made").trim().to_owned()
    }

    /// Runs a program that exits within a minute.
    pub fn try_to(&self, way: Way, words: &[&str]) -> Output {
        let mut command = Command::new("timeout");
        command.arg("60");
        if way == Way::Run {
            command.args([env!("CARGO_BIN_EXE_anabranch"), "run", "--server", "203.0.113.1:4433", "--key"]);
            command.arg(self.file("key")).args(["--uplink", "up0", "--uplink", "up1", "--"]);
        }
        // Removes this machine's settings of proxies and certificates.
        for name in ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "SSL_CERT_FILE"]
        {
            command.env_remove(name);
        }
        command.args(words).env("HOME", self.file("")).env("GIT_CONFIG_GLOBAL", "/dev/null").stdin(Stdio::null());
        self.scene.on_host(|| command.output().expect("the program runs"))
    }

    /// Runs a program that must succeed; returns its output.
    pub fn run(&self, way: Way, words: &[&str]) -> String {
        let output = self.try_to(way, words);
        assert!(output.status.success(), "{words:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    /// An unused path for a program's output.
    pub fn fresh(&self, way: Way, name: &str) -> String {
        let file = self.file(&format!("{way:?}-{name}"));
        // Usually it does not exist.
        let _ = std::fs::remove_dir_all(&file);
        file.display().to_string()
    }

    /// Asserts that a file equals the large file.
    pub fn is_large(&self, file: &str) {
        let found = std::fs::read(file).expect("it was written");
        let expected = std::fs::read(self.file("www/large")).expect("it was made");
        assert!(found == expected, "{} bytes of {}", found.len(), expected.len());
    }
}
