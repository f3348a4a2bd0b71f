"""What a call of a policy in Python costs: calls per second of processor time, beside the same policies in Rust.

    python python/examples/policy_speed.py

Each policy is a thin class around the built-in one, which decides, so that what is measured is mostly the way there and
back; the runs have the same trace hashes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anabranch
from anabranch import Chunk, ConnectionView, PathEvent, SubflowView

calls = 0


class LowestRtt:
    """The scheduler of docs/python.md."""

    def schedule(self, connection: ConnectionView, chunk: Chunk, subflows: Sequence[SubflowView]) -> int | None:
        """The subflow with room whose round trip is the shortest."""
        global calls
        calls += 1
        there = [one for one in subflows if one.usable and one.has_room and one.id != chunk.last_sent_on]
        return min(there, key=lambda one: one.smoothed_rtt).id if there else None


class Congestion:
    """`lia`, called from Python."""

    def __init__(self) -> None:
        """It alone decides."""
        self.rust = anabranch.RustCongestionControl("lia")

    def __getattr__(self, name: str) -> Any:
        """Each method of its, counted."""
        method = getattr(self.rust, name)

        def counted(*arguments: int | Mapping[str, float]) -> Any:
            global calls
            calls += 1
            return method(*arguments)

        return counted


class Paths:
    """`lm3`, called from Python: it measures once per round trip."""

    def __init__(self) -> None:
        """It alone decides."""
        self.rust = anabranch.RustPathManager("lm3")
        self.measurements = self.rust.measurements

    def handle(self, now: float, event: PathEvent) -> list[anabranch.PathAction]:
        """What it decides."""
        global calls
        calls += 1
        return self.rust.handle(now, event)


def measure(policy: str, **classes: Any) -> tuple[float, int, str]:
    """Processor seconds of a run, calls in it, and its trace hash."""
    global calls
    calls, start = 0, time.process_time()
    runs = anabranch.run("two_paths", policy=policy, seeds=1, jobs=1, **classes)
    return time.process_time() - start, calls, runs.to_pandas()["trace_hash"][0]


def main() -> None:
    """A line per family: of 30 s of two_paths."""
    measure("plain")
    families: list[tuple[str, str, Callable[[], Any]]] = [
        ("scheduler", "scheduler=lowest_rtt", LowestRtt),
        ("congestion", "congestion=lia", Congestion),
        ("path_manager", "path_manager=lm3", Paths),
    ]
    for family, policy, policy_class in families:
        inside = [measure(policy, **{family: policy_class}) for _ in range(3)]
        rust = [measure(policy) for _ in range(3)]
        seconds = statistics.median(one[0] for one in inside)
        alone = statistics.median(one[0] for one in rust)
        count, same = inside[0][1], inside[0][2] == rust[0][2]
        rate = count / (seconds - alone)
        trace = "the same" if same else "another"
        print(f"{family}: {count} calls, {rate:.0f} a second; {seconds:.2f} s, in Rust {alone:.3f} s; {trace} trace")


if __name__ == "__main__":
    main()
