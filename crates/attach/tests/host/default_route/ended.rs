//! How it ends: by a signal, by a kill, with a kill switch; and that the plan which is printed does the same.

use super::*;

/// Environment variable that makes the test program a child: the journal's directory.
const CHILD: &str = "ANABRANCH_TEST_HOST_ROUTE";

/// Whether this process is the child that sets up the default route and waits.
pub fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Sets up the default route, reports that, and waits to be told to end.
pub fn child() {
    let journal = std::env::var_os(CHILD).expect("we are a child");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let kill_switch = std::env::args().any(|word| word == "kill-switch");
        listen_for_the_end().expect("signals can be heard");
        let route = DefaultRoute { kill_switch, gateways: vec!["lan0".to_owned()], ..route() };
        let led = LedRoute::begin(route, Some(Path::new(&journal)), |name| open_tun(name, MTU));
        let said = led.as_ref().map_or_else(ToString::to_string, |_| "led".to_owned());
        std::io::stdout().write_all(format!("{said}\n").as_bytes()).expect("the test reads");
        let Ok((led, device)) = led else { return };
        let _reader = Reader::new(device, false);
        asked_to_end().await.expect("signals can be heard");
        led.end().expect("all is undone");
    });
}

/// A child that has the default route.
fn start(scene: &Scene, words: &[&str]) -> Child {
    let mut child = scene.in_ours(|| {
        let mut command = Command::new(std::env::current_exe().expect("we run"));
        command.args(words).env(CHILD, scene.journal()).stdout(Stdio::piped());
        command.spawn().expect("it can run again")
    });
    let mut line = String::new();
    let output = child.stdout.as_mut().expect("it is piped");
    BufReader::new(output).read_line(&mut line).expect("it says something");
    assert_eq!(line, "led\n");
    child
}

fn end(mut child: Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).expect("it lives");
    let status = child.wait().expect("it ends");
    assert_eq!(status.success(), signal == Signal::SIGTERM, "{status}");
}

pub(super) fn after_sigterm() {
    let place = Place::new();
    let before = place.scene.state();
    let child = start(&place.scene, &[]);
    assert_ne!(place.scene.state(), before);
    end(child, Signal::SIGTERM);
    place.scene.assert_as_before(&before);
}

pub(super) fn after_kill() {
    let place = Place::new();
    world_answers(&place.scene);
    let before = place.scene.state();
    for _ in 0..2 {
        let child = start(&place.scene, &[]);
        assert!(!place.scene.in_ours(|| answered("203.0.113.9")), "the device has it, and is silent");
        end(child, Signal::SIGKILL);
        assert!(place.scene.in_ours(|| answered("203.0.113.9")));
        assert!(place.scene.in_ours(|| answered("2001:db8::9")));
    }
    assert_ne!(place.scene.state(), before, "a killed program cannot clean up");
    end(start(&place.scene, &[]), Signal::SIGTERM);
    place.scene.assert_as_before(&before);
}

pub(super) fn kill_switch() {
    let place = Place::new();
    world_answers(&place.scene);
    let before = place.scene.state();
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        end(start(&place.scene, &["kill-switch"]), signal);
        for to in ["203.0.113.9", "2001:db8::9"] {
            assert!(!place.scene.in_ours(|| answered(to)), "{to}");
        }
        // Nor is it removed when a stack without a default route is attached.
        place.scene.run(|| async {
            let attached = crate::scene::attached(place.scene.uplinks(&[])).await.expect("we may");
            assert!(!answered("203.0.113.9"));
            attached.detach().await.expect("all is undone");
        });
        assert!(!place.scene.in_ours(|| answered("203.0.113.9")));
        assert!(place.scene.in_ours(|| answered("203.0.113.1")), "the server can be reached");
        assert!(place.end_kill_switch());
        assert!(place.scene.in_ours(|| answered("203.0.113.9")));
        place.scene.assert_as_before(&before);
        assert!(!place.end_kill_switch(), "there is none any more");
    }
}

pub(super) fn kill_switch_replaced() {
    let place = Place::new();
    let before = place.scene.state();
    end(start(&place.scene, &["kill-switch"]), Signal::SIGKILL);
    let second = start(&place.scene, &["kill-switch"]);
    assert!(!place.end_kill_switch(), "its program runs");
    end(second, Signal::SIGTERM);
    assert_ne!(place.scene.state(), before);
    let third = start(&place.scene, &[]);
    assert_eq!(place.scene.in_ours(|| way(Bound::No, "203.0.113.9", 443)), ["ours"]);
    assert_eq!(place.scene.in_ours(|| way(Bound::Address("10.1.0.2"), "203.0.113.9", 443)), ["up0"]);
    end(third, Signal::SIGTERM);
    place.scene.assert_as_before(&before);
}

pub(super) fn dry_run() {
    for kill_switch in [false, true] {
        let place = Place::new();
        let before = place.scene.state();
        let route = DefaultRoute { kill_switch, gateways: vec!["lan0".to_owned()], ..route() };
        let plan = place.scene.in_ours(|| plan_default_route(&route, Some(place.scene.journal()), false));
        let plan = plan.expect("there is nothing in the way");
        place.scene.assert_as_before(&before);
        let commands: String = plan.steps.iter().map(|step| format!("{step}\n")).collect();
        // The printed commands have the same effect as the setup.
        place.scene.in_ours(|| {
            let shell = Command::new("sh").args(["-ec", &commands]).output().expect("there is a shell");
            assert!(shell.status.success(), "{}\n{commands}", String::from_utf8_lossy(&shell.stderr));
        });
        let by_hand = place.scene.state();
        let other = Place::new();
        let child = start(&other.scene, if kill_switch { &["kill-switch"] } else { &[] });
        let by_us = other.scene.state();
        end(child, Signal::SIGTERM);
        // Hardware addresses differ between two scenes, and a device that is not held open is not running.
        let comparable = |state: Vec<String>| -> Vec<String> {
            let words = ["lookup", "proto 198", "forwarding", "chain", "drop", "reject"];
            let lines = state.into_iter().filter(|line| words.iter().any(|word| line.contains(word)));
            lines.map(|line| line.replace(" linkdown", "").trim_end().to_owned()).collect()
        };
        let (by_hand, by_us) = (comparable(by_hand), comparable(by_us));
        let differs: Vec<_> = by_hand.iter().zip(&by_us).filter(|(hand, us)| hand != us).collect();
        assert!(by_hand == by_us, "{differs:#?}");
    }
}
