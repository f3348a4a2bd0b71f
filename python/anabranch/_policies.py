"""Policies in Python: what the lab calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, Protocol, TypeAlias

from anabranch._native import Chunk, ConnectionView, PathAction, PathEvent, SubflowView

#: Classes by family, and the limit of their time; what the compiled part takes.
InPython: TypeAlias = dict[str, Any]


class Scheduler(Protocol):
    """A scheduler in Python: a class without arguments, of which each connection has an instance."""

    def schedule(self, connection: ConnectionView, chunk: Chunk, subflows: Sequence[SubflowView]) -> int | float | None:
        """Chooses the subflow of the chunk.

        Returns the id of a usable subflow; if its window is full, the chunk queues there. None waits until anything
        changes, a float until that time in seconds at the latest, which is later than `connection.now`.
        """


class CongestionControl(Protocol):
    """A congestion control in Python: a class without arguments, of which each connection has an instance.

    `event` has floats by name: times in seconds, sizes in bytes, rates in bytes per second, 1 for true and 0 for false;
    what is unknown is NaN.

    A class may also have these methods: `on_sent(subflow, event)`: now, bytes, in_flight, total_delivered, app_limited;
    `on_recovery_end(subflow, event)` and `on_spurious(subflow, event)`: now; `on_idle_restart(subflow, event)`: window;
    `on_mss(subflow, event)`: mss; `on_rest()`: the connection is idle; `pacing_rate(subflow)` and `bandwidth(subflow)`,
    which return bytes per second or None; `shares_bottleneck(one, other)`, which returns True, False or None;
    `governs_recovery()`, which returns whether the window limits sending during recovery too and losses are reported to
    `on_lost(subflow, event)`: now, bytes, total_lost, total_delivered, prior_lost, tx_in_flight, app_limited.
    """

    def on_subflow_added(self, subflow: int, event: Mapping[str, float]) -> None:
        """A subflow begins: now, mss, initial_window, smoothed_rtt (of the handshake)."""

    def on_subflow_removed(self, subflow: int, event: Mapping[str, float]) -> None:
        """A subflow ended; the event is empty."""

    def on_ack(self, subflow: int, event: Mapping[str, float]) -> None:
        """Data was acknowledged.

        now, acked (cumulatively), delivered (or selectively), in_flight and prior_in_flight (after and before it), rtt
        (its sample), smoothed_rtt, min_rtt, delivery_rate, lost, cwnd_limited, in_recovery, app_limited; since the
        subflow began: total_acked, total_sent, total_delivered, total_lost; when the newest segment that is
        acknowledged was sent: prior_delivered, prior_lost, tx_in_flight.
        """

    def on_congestion(self, subflow: int, event: Mapping[str, float]) -> None:
        """The window must shrink.

        now, in_flight, lost, and 1.0 for one of timeout, mark, penalty, 0.0 for a loss; repeated: this is not the first
        timeout of the same data; uncounted: there is no SACK, and how much was lost is not known.
        """

    def window(self, subflow: int) -> float:
        """The congestion window in bytes."""

    def ssthresh(self, subflow: int) -> float:
        """The slow-start threshold in bytes."""


class PathManager(Protocol):
    """A path manager in Python: a class without arguments, of which each host has an instance.

    A class may also have `measurements()`, the interval of `PathEvent.Measured`: None (never, as without the method),
    "every_round_trip" (the longest smoothed one of the connection's usable subflows, at least 10 ms) or seconds, 0.001
    or more; and `forward_delays()`, the one-way delays to be measured: None, "of_arrivals" or "of_acknowledgements".
    Both are asked once per connection.
    """

    def handle(self, now: float, event: PathEvent) -> Iterable[PathAction] | None:
        """Handles an event at a time in seconds; returns actions, or yields them."""


def in_python(
    scheduler: Callable[[], Scheduler] | None,
    congestion: Callable[[], CongestionControl] | None,
    path_manager: Callable[[], PathManager] | None,
    policy_timeout: float | None,
) -> InPython:
    """Classes by family, and the limit of their time.

    Raises TypeError if one is no class, or the limit no number.
    """
    for family, given in (("scheduler", scheduler), ("congestion", congestion), ("path_manager", path_manager)):
        if given is not None and not callable(given):
            named = f"policy='{family}={given}'" if isinstance(given, str) else f"{type(given).__name__}, the class"
            raise TypeError(f"{family} is a class of yours, and not {given!r}: did you mean {named}?")
    _decides(scheduler, Scheduler, ("schedule",))
    _decides(congestion, CongestionControl, ("window", "ssthresh"))
    _decides(path_manager, PathManager, ("handle",))
    if policy_timeout is not None and not isinstance(policy_timeout, Real):
        raise TypeError(f"policy_timeout is a number of seconds, and not {policy_timeout!r}")
    return {
        "scheduler": scheduler,
        "congestion": congestion,
        "path_manager": path_manager,
        "timeout": None if policy_timeout is None else float(policy_timeout),
    }


def _decides(given: object, protocol: type, methods: tuple[str, ...]) -> None:
    """Raises TypeError if a class has only inherited what it must decide: those methods are empty.

    A scheduler with a misspelt `schedule` would wait for ever, and its runs would look like those of a dead network.
    """
    if not isinstance(given, type) or protocol not in given.__mro__:
        return
    for method in methods:
        if getattr(given, method) is getattr(protocol, method):
            raise TypeError(f"{given.__name__} has no method '{method}' of its own, which {protocol.__name__} needs")


def is_given(own: InPython) -> bool:
    """Whether there is any class."""
    return any(own[family] is not None for family in ("scheduler", "congestion", "path_manager"))


def check(own: InPython, backend: str | object, out: str | None) -> None:
    """Policies in Python run here only, and what they do is not kept.

    Their rows would stand for another class of the same name.
    """
    if is_given(own) and (backend != "local" or out is not None):
        raise ValueError("policies in Python run with the backend 'local' only, and without 'out'")
