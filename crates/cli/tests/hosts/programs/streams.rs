//! Programs over TCP.

use crate::programs::Test;
use crate::programs::scene::text;
use crate::programs::town::{LARGE, TARGET, TARGET_V6, Town, Way};

pub const TESTS: &[Test] = &[
    ("curl_fetches_a_file_over_ipv4_and_ipv6", &["curl"], curl),
    ("curl_fetches_over_tls_with_http_1_and_2", &["curl", "openssl", "caddy"], curl_tls),
    ("curl_says_what_it_always_says_of_targets_that_are_not_there", &["curl"], nothing_there),
    ("wget_fetches_a_file_by_a_name", &["wget"], wget),
    ("git_clones_over_http_and_its_own_protocol", &["git"], git),
    ("git_clones_over_ssh", &["git", "ssh", "/usr/sbin/sshd"], git_ssh),
    ("ssh_gives_the_exit_code_of_what_it_runs", &["ssh", "/usr/sbin/sshd"], ssh),
    ("scp_copies_a_file_there_and_back", &["scp", "ssh", "/usr/sbin/sshd"], scp),
    ("apt_updates_and_downloads_a_package", &["apt-get", "dpkg-deb"], apt),
    ("iperf3_sends_on_one_connection_and_on_eight_both_ways", &["iperf3"], iperf3),
    ("chromium_shows_a_page_of_many_parts", &["chromium", "openssl", "caddy"], chromium),
    ("chromium_shows_it_over_http_3", &["chromium", "openssl", "caddy"], chromium_quic),
];

/// Options that make ssh independent of this machine's configuration; the key is the town's.
fn ssh_options(town: &Town) -> Vec<String> {
    let key = town.file("ssh/id").display().to_string();
    let options = ["-F", "/dev/null", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o"];
    let mut options: Vec<String> = options.map(str::to_owned).to_vec();
    options.extend(["LogLevel=ERROR".to_owned(), "-i".to_owned(), key]);
    options
}

fn with<'a>(program: &'a str, options: &'a [String], words: &[&'a str]) -> Vec<&'a str> {
    [&[program][..], &options.iter().map(String::as_str).collect::<Vec<_>>(), words].concat()
}

fn curl(town: &Town, way: Way) {
    for address in [TARGET, &format!("[{TARGET_V6}]")] {
        let file = town.fresh(way, "curl");
        town.run(way, &["curl", "-sS", "--fail", "-o", &file, &format!("http://{address}:8080/large")]);
        town.is_large(&file);
    }
}

fn curl_tls(town: &Town, way: Way) {
    let certificate = town.file("tls.crt").display().to_string();
    let file = town.fresh(way, "curl-tls");
    let get = |words: &[&str]| {
        let words =
            [&["curl", "-sS", "--fail", "--cacert", &certificate, "-w", "%{http_version} "][..], words].concat();
        town.run(way, &words)
    };
    assert_eq!(get(&["--http1.1", "-o", &file, "https://town.example/large"]), "1.1 ");
    town.is_large(&file);
    assert_eq!(get(&["--http2", "-6", "-o", &file, &format!("https://[{TARGET_V6}]/large")]), "2 ");
    town.is_large(&file);
    // All requests in parallel on one connection.
    let versions = get(&["--http2", "--parallel", "-o", "/dev/null", "https://town.example/many/[1-30]"]);
    assert_eq!(versions, "2 ".repeat(30));
}

fn nothing_there(town: &Town, way: Way) {
    // A closed port, an unknown host on the server's link, and a destination without a route.
    for (url, expected) in [
        ("http://198.51.100.2:81/", 7),
        ("http://198.51.100.77/", 7),
        ("http://203.0.113.99/", 7),
        ("http://[2001:db8:9::1]/", 7),
    ] {
        let output = town.try_to(way, &["curl", "-sS", "--max-time", "20", url]);
        assert_eq!(output.status.code(), Some(expected), "{url}: {}", text(&output.stderr));
    }
}

fn wget(town: &Town, way: Way) {
    let file = town.fresh(way, "wget");
    town.run(way, &["wget", "--quiet", "--output-document", &file, "http://town.example:8080/large"]);
    town.is_large(&file);
}

/// Clones a repository and checks its contents.
fn clones(town: &Town, way: Way, options: &[&str], url: &str) {
    let by = url.split([':', '@']).next().unwrap_or_default();
    let folder = town.fresh(way, &format!("clone-{by}"));
    let words = [&["git", "-c", "safe.directory=*"][..], options, &["clone", "--quiet", url, &folder]].concat();
    town.run(way, &words);
    for part in [1, 30] {
        let name = format!("many/{part}");
        let cloned = std::fs::read(format!("{folder}/{name}")).expect("it was cloned");
        assert!(cloned == std::fs::read(town.file("www").join(&name)).expect("it was made"), "{url}: {name}");
    }
}

fn git(town: &Town, way: Way) {
    clones(town, way, &[], "http://town.example:8080/town.git");
    clones(town, way, &[], &format!("git://{TARGET}/town.git"));
}

fn git_ssh(town: &Town, way: Way) {
    let command = format!("core.sshCommand=ssh {}", ssh_options(town).join(" "));
    let url = format!("root@{TARGET}:{}", town.file("www/town.git").display());
    clones(town, way, &["-c", &command], &url);
}

fn ssh(town: &Town, way: Way) {
    let options = ssh_options(town);
    let output = town.try_to(way, &with("ssh", &options, &["root@town.example", "echo over the river; exit 3"]));
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(3), "over the river\n".to_owned()));
}

fn scp(town: &Town, way: Way) {
    let options = ssh_options(town);
    let (large, there) = (town.file("www/large").display().to_string(), town.fresh(way, "there"));
    let back = town.fresh(way, "back");
    town.run(way, &with("scp", &options, &["-q", &large, &format!("root@{TARGET}:{there}")]));
    town.is_large(&there);
    town.run(way, &with("scp", &options, &["-q", &format!("root@{TARGET}:{there}"), &back]));
    town.is_large(&back);
}

fn apt(town: &Town, way: Way) {
    let place = town.fresh(way, "apt");
    for folder in ["lists/partial", "archives/partial", "etc"] {
        std::fs::create_dir_all(format!("{place}/{folder}")).expect("there is room");
    }
    let list = format!("{place}/etc/sources.list");
    std::fs::write(&list, "deb [trusted=yes] http://town.example:8080/apt ./\n").expect("there is room");
    std::fs::write(format!("{place}/status"), "").expect("there is room");
    let script = format!(
        "cd {place} && set -- -qq -o Dir::Etc::SourceList={list} -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists={place}/lists \
         -o Dir::State::status={place}/status -o Dir::Cache={place} -o Dir::Etc::Main=/dev/null -o Dir::Etc::Parts=/dev/null \
         -o APT::Sandbox::User=root && apt-get \"$@\" update && apt-get \"$@\" download town"
    );
    town.run(way, &["sh", "-ec", &script]);
    let fetched = std::fs::read(format!("{place}/town_1_all.deb")).expect("it was fetched");
    assert!(fetched == std::fs::read(town.file("www/apt/town.deb")).expect("it was made"), "{} bytes", fetched.len());
    assert!(fetched.len() > LARGE / 2, "the package has the large file");
}

fn iperf3(town: &Town, way: Way) {
    for words in [&[][..], &["-R"], &["-P", "8"], &["-P", "8", "-R"]] {
        let said = town.iperf3(way, &[&["-n", "3M"][..], words].concat());
        assert!(said.contains("iperf Done."), "{words:?}");
    }
}

/// The page of a headless browser after its script has finished.
fn shown(town: &Town, way: Way, profile: &str, words: &[&str]) -> String {
    // With an existing profile, a browser would delegate to the running one.
    let profile = format!("--user-data-dir={}", town.fresh(way, profile));
    let pin = format!("--ignore-certificate-errors-spki-list={}", town.word("tls.pin"));
    let browser = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
    let page = ["--virtual-time-budget=20000", "--dump-dom", "https://town.example/many.html"];
    town.run(way, &[&browser[..], &[&profile, &pin], words, &page].concat())
}

fn chromium(town: &Town, way: Way) {
    let page = shown(town, way, "chromium", &[]);
    assert!(page.contains("<body>600000</body>"), "{page}");
}

fn chromium_quic(town: &Town, way: Way) {
    let by_quic = || town.word("served").matches(r#""proto":"HTTP/3.0""#).count();
    let before = by_quic();
    let page = shown(town, way, "chromium-quic", &["--origin-to-force-quic-on=town.example:443"]);
    assert!(page.contains("<body>600000</body>"), "{page}");
    assert!(by_quic() >= before + 31, "the page and its parts came by QUIC");
}
