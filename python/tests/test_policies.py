"""Policies in Python beside those in Rust: the same decisions, by hand and in runs; what goes wrong is told."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import anabranch
from anabranch import Chunk, ConnectionView, PathAction, PathEvent, SubflowView

SHORT = {"duration": "5 s"}


def hashes(**classes: Any) -> list[str]:
    """Trace hashes of two runs with these classes."""
    return trace_hashes("plain", **classes)


def trace_hashes(policy: str, scenario: str = "two_paths", **classes: Any) -> list[str]:
    runs = anabranch.run(scenario, policy=policy, seeds=2, set=SHORT, **classes)
    return list(runs.to_pandas()["trace_hash"])


class FullMesh:
    """What the built-in path manager of this name does as long as no subflow is lost."""

    def __init__(self) -> None:
        self.addresses: list[int] = []
        self.remotes: dict[int, list[int]] = {}
        self.tried: dict[int, set[tuple[int, int]]] = {}

    def handle(self, now: float, event: PathEvent) -> Iterator[PathAction]:
        match event:
            case PathEvent.AddressUp(id=address):
                self.addresses.append(address)
            case PathEvent.ConnectionEstablished(connection=connection, role="client", local=local):
                self.remotes[connection] = [0]
                self.tried[connection] = {(local, 0)}
                yield from self.extend(connection)
            case PathEvent.ConnectionEstablished(connection=connection, local=local):
                others = [address for address in self.addresses if address != local]
                yield from (PathAction.Announce(connection, address) for address in others)
            case PathEvent.AddressAnnounced(connection=connection, id=remote) if connection in self.remotes:
                self.remotes[connection].append(remote)
                yield from self.extend(connection)

    def extend(self, connection: int) -> Iterator[PathAction]:
        for pair in [(local, remote) for local in self.addresses for remote in self.remotes[connection]]:
            if pair not in self.tried[connection]:
                self.tried[connection].add(pair)
                yield PathAction.CreateSubflow(connection, *pair)


def test_a_path_manager_in_python_leaves_the_trace_of_the_same_in_rust() -> None:
    assert hashes(path_manager=FullMesh) == hashes()
    runs = anabranch.run("two_paths", policy="plain", seeds=1, set=SHORT, path_manager=FullMesh).to_pandas()
    assert runs["policies"][0].endswith("path_manager=FullMesh")

    class Nothing:
        def handle(self, now: float, event: PathEvent) -> None:
            del now, event

    assert hashes(path_manager=Nothing) != hashes()


@pytest.mark.parametrize("name", ["full_mesh", "lm3", "one_way_delay", "goodput_trial", "predictive", "anabranch"])
def test_a_path_manager_of_rust_called_from_python_leaves_its_own_trace(name: str) -> None:
    policy = f"path_manager={name}"
    assert trace_hashes(policy) == trace_hashes(policy, path_manager=lambda: anabranch.RustPathManager(name))


@pytest.mark.parametrize("name", ["lia", "cubic", "bbr", "olia", "wvegas", "anabranch", "bounded_cubic"])
def test_a_congestion_control_of_rust_called_from_python_leaves_its_own_trace(name: str) -> None:
    policy = f"congestion={name}"
    assert trace_hashes(policy) == trace_hashes(policy, congestion=lambda: anabranch.RustCongestionControl(name))


def test_a_path_manager_of_rust_acts_on_events() -> None:
    manager = anabranch.RustPathManager("full_mesh", subflows=1)
    assert manager.measurements() is None
    events = [
        PathEvent.AddressUp(1, "10.0.0.1"),
        PathEvent.AddressUp(2, "10.0.1.1"),
        PathEvent.AddressUp(3, "10.0.2.1"),
        PathEvent.ConnectionEstablished(7, "client", 1, ("10.0.9.1", 80)),
    ]
    actions = [action for event in events for action in manager.handle(0.0, event)]
    # The limit is one subflow beside the initial one.
    assert actions[0] == PathAction.CreateSubflow(7, 2, 0)
    assert not any(isinstance(action, PathAction.CreateSubflow) for action in actions[1:])
    (waking,) = (action for action in actions if isinstance(action, PathAction.WakeAt))
    # An attempt without a result for 120 s counts as timed out.
    assert waking.time == 120.0
    lm3 = anabranch.RustPathManager("lm3")
    assert lm3.measurements() == "every_round_trip"
    assert anabranch.RustPathManager("one_way_delay").forward_delays() == "of_arrivals"
    with pytest.raises(ValueError, match="'somebody' is none of client, server"):
        manager.handle(0.0, PathEvent.ConnectionEstablished(7, "somebody", 1, ("10.0.9.1", 80)))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'nowhere' is no address"):
        manager.handle(0.0, PathEvent.AddressUp(1, "nowhere"))
    with pytest.raises(ValueError, match="unknown"):
        anabranch.RustPathManager("no_such")


@pytest.mark.parametrize("now", [-1.0, float("nan"), 1e300])
def test_a_time_that_is_none_is_told(now: float) -> None:
    with pytest.raises(ValueError, match="'now' is a time of 0 to 1e7 s, and not "):
        anabranch.RustPathManager("full_mesh").handle(now, PathEvent.Wake())


def test_events_with_views_have_them() -> None:
    seen: list[PathEvent] = []

    class Looks(FullMesh):
        def handle(self, now: float, event: PathEvent) -> Iterator[PathAction]:
            seen.append(event)
            if isinstance(event, PathEvent.AddressUp):
                yield PathAction.WakeAt(1.5)
            elif isinstance(event, PathEvent.Wake):
                assert now == 1.5
            yield from super().handle(now, event)

        def measurements(self) -> float:
            return 0.5

        def forward_delays(self) -> str:
            return "of_acknowledgements"

    anabranch.run("two_paths", policy="plain", seeds=1, set=SHORT, path_manager=Looks)
    measured = [event for event in seen if isinstance(event, PathEvent.Measured)]
    assert len(measured) > 10
    # One of the two hosts sends.
    last = max(measured, key=lambda event: event.connection.data_una)
    assert [one.state for one in last.subflows] == ["established"] * 2
    assert all(one.forward_delay is not None for one in last.subflows)
    assert sum(one.bytes_acked for one in last.subflows) > 1_000_000
    assert sum(isinstance(event, PathEvent.Wake) for event in seen) == 2


def test_a_congestion_control_of_rust_follows_events() -> None:
    reno = anabranch.RustCongestionControl("lia")
    reno.on_subflow_added(0, {"now": 0.0, "mss": 1400.0, "initial_window": 14_000.0})
    assert reno.window(0) == 14_000
    reno.on_congestion(0, {"now": 1.0, "in_flight": 14_000.0, "lost": 1400.0})
    assert reno.ssthresh(0) == 7_000
    assert not reno.governs_recovery()
    assert reno.pacing_rate(0) is None
    with pytest.raises(ValueError, match="an event has no 'cwnd': it has now, mss"):
        reno.on_subflow_added(1, {"cwnd": 1.0})
    assert anabranch.RustCongestionControl("bbr").governs_recovery()


class Raises(FullMesh):
    def handle(self, now: float, event: PathEvent) -> Iterator[PathAction]:
        if isinstance(event, PathEvent.SubflowEstablished):
            raise RuntimeError("mine")
        yield from super().handle(now, event)


def manages(answer: object) -> Any:
    """A path manager that always answers this."""

    class Answers:
        def handle(self, now: float, event: PathEvent) -> object:
            del now, event
            return answer

    return Answers


def measures(interval: object) -> Any:
    class Measures(FullMesh):
        def measurements(self) -> object:
            return interval

    return Measures


@pytest.mark.parametrize(
    ("manager", "message"),
    [
        (manages("all"), r"handle\(\) returned 'a': it is a list of anabranch.PathAction, or None"),
        (manages(7), r"handle\(\) returned 7: it is a list"),
        (manages([PathAction.WakeAt(1.0), 7]), r"handle\(\) returned 7"),
        (manages([PathAction.WakeAt(0.0)]), r"to wake at 0 s, and it is 0 s: the time is a later one"),
        (manages([PathAction.WakeAt(float("nan"))]), r"to wake at NaN s"),
        (manages([PathAction.WakeAt(-1e300)]), r"to wake at -1e300 s, and"),
        (measures("often"), r"measurements\(\) returned 'often': it is None, 'every_round_trip', or a time"),
        (measures(0.0), r"measurements\(\) returned 0.0"),
        (measures(float("nan")), r"measurements\(\) returned nan"),
    ],
)
def test_what_a_path_manager_answers_wrongly_is_told(manager: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hashes(path_manager=manager)


def test_what_is_no_class_is_told_with_what_was_meant() -> None:
    with pytest.raises(TypeError, match="did you mean policy='scheduler=blest'"):
        hashes(scheduler="blest")
    with pytest.raises(TypeError, match="did you mean FullMesh, the class"):
        hashes(path_manager=FullMesh())


def test_what_a_path_manager_raises_is_raised_and_a_missing_method_told() -> None:
    with pytest.raises(RuntimeError, match="mine"):
        hashes(path_manager=Raises)
    with pytest.raises(AttributeError, match="handle"):
        hashes(path_manager=object)
    with pytest.raises(ValueError, match="without 'out'"):
        hashes(path_manager=FullMesh, out="somewhere")
    # Nobody has these subflows and addresses: the engine drops the actions.
    absurd = [PathAction.Suspend(99, 99), PathAction.CreateSubflow(99, 9, 9), PathAction.Probe(0, 77)]
    assert hashes(path_manager=manages(absurd)) == hashes(path_manager=manages(None))


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        ("window", "much", r"window\(\) returned 'much': it is a number of bytes"),
        ("ssthresh", -1.0, r"ssthresh\(\) returned -1.0: it is a number of bytes"),
        ("pacing_rate", 0.5, r"pacing_rate\(\) returned 0.5"),
        ("pacing_rate", -1.0, r"pacing_rate\(\) returned -1.0: it is a rate of 1 byte"),
        ("governs_recovery", "perhaps", r"returned 'perhaps': it is True or False"),
    ],
)
def test_what_a_congestion_control_answers_wrongly_is_told(method: str, answer: object, message: str) -> None:
    class Nonsense:
        def __init__(self) -> None:
            self.rust = anabranch.RustCongestionControl("lia")

        def __getattr__(self, name: str) -> Any:
            return (lambda *_: answer) if name == method else getattr(self.rust, name)

    with pytest.raises(ValueError, match=message):
        hashes(congestion=Nonsense)


def test_views_have_what_rust_has() -> None:
    view = SubflowView(3, smoothed_rtt=0.05, rtt_variation=0.025, bandwidth=125_000, suspended=True)
    assert (view.state, view.phase, view.suspended, view.usable) == (
        "established",
        "congestion_avoidance",
        True,
        False,
    )
    assert (view.rto, view.delivery_rate, view.forward_delay) == (0.2, 125_000.0, None)
    assert ConnectionView(id=4).id == 4


class Sleeps:
    """A scheduler that needs far more time than its limit: a second for each of its hundreds of calls."""

    def schedule(self, connection: ConnectionView, chunk: Chunk, subflows: Sequence[SubflowView]) -> int | None:
        del connection, chunk
        time.sleep(1.0)
        return next((one.id for one in subflows if one.usable and one.has_room), None)


class NeverReturns(FullMesh):
    def measurements(self) -> str:
        return "every_round_trip"

    def handle(self, now: float, event: PathEvent) -> Iterator[PathAction]:
        while isinstance(event, PathEvent.Measured) and now > 2.0:
            # Whoever ends it may not be an Exception.
            with contextlib.suppress(Exception):
                sum(range(1000))
        yield from super().handle(now, event)


def test_a_policy_that_is_too_slow_is_told_with_its_calls_per_second() -> None:
    sentence = (
        r"^Sleeps is too slow: 1 call in a run took \d+\.\d+ s of wall time, more than policy_timeout=0.5 s: \d+\.\d"
    )
    with pytest.raises(TimeoutError, match=sentence + " calls per second$") as told:
        hashes(scheduler=Sleeps, policy_timeout=0.5)
    # Python cannot interrupt it, and it is told how long it took then.
    assert float(str(told.value).split(" took ")[1].split()[0]) >= 1.0


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_policy_that_does_not_return_is_interrupted(jobs: int) -> None:
    sentence = r"^NeverReturns is too slow: \d+ calls in a run took .* policy_timeout=0.3 s"
    with pytest.raises(TimeoutError, match=sentence):
        hashes(path_manager=NeverReturns, policy_timeout=0.3, jobs=jobs)


def test_a_limit_that_is_kept_changes_nothing() -> None:
    assert hashes(path_manager=FullMesh, policy_timeout=1e6) == hashes()
    for limit in (0, 1e300, float("nan")):
        with pytest.raises(ValueError, match=r"policy_timeout is a time above 0, in seconds, and not \S+$"):
            hashes(path_manager=FullMesh, policy_timeout=limit)
    with pytest.raises(TypeError, match="policy_timeout is a number of seconds, and not '3'"):
        hashes(path_manager=FullMesh, policy_timeout="3")


def test_runs_that_were_done_are_in_what_is_raised() -> None:
    done: list[int] = []

    class Third(FullMesh):
        """Raises in the third run: each has two hosts."""

        def __init__(self) -> None:
            super().__init__()
            done.append(1)
            if len(done) > 4:
                raise LookupError("enough")

    with pytest.raises(LookupError, match="enough") as raised:
        anabranch.run("two_paths", policy="plain", seeds=4, set=SHORT, path_manager=Third, jobs=1)
    runs: anabranch.Runs = raised.value.runs  # type: ignore[attr-defined]
    assert list(runs.to_pandas()["trace_hash"]) == hashes()


def test_interruption_ends_a_policy_that_does_not_return(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    file = tmp_path / "endless.py"
    file.write_text(
        "import anabranch\n"
        "class Endless:\n"
        "    def schedule(self, *_):\n"
        f"        open({str(begun)!r}, 'w').close()\n"
        "        while True: pass\n"
        "anabranch.run('two_paths', seeds=1, scheduler=Endless)\n"
    )
    process = subprocess.Popen([sys.executable, str(file)], stderr=subprocess.PIPE, text=True)
    patience = time.monotonic() + 60
    while time.monotonic() < patience and not begun.exists():
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert errors.splitlines()[-1].startswith("KeyboardInterrupt")


@pytest.mark.parametrize(
    ("family", "protocol", "method"),
    [
        ("scheduler", anabranch.Scheduler, "schedule"),
        ("congestion", anabranch.CongestionControl, "window"),
        ("path_manager", anabranch.PathManager, "handle"),
    ],
)
def test_a_class_that_inherits_what_it_must_decide_is_refused(family: str, protocol: type, method: str) -> None:
    misspelt: Any = type("Misspelt", (protocol,), {f"{method}s": lambda *_: None})
    with pytest.raises(TypeError, match=f"Misspelt has no method '{method}' of its own"):
        anabranch.run("two_paths", seeds=1, **{family: misspelt})
