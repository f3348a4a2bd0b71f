"""Policies in Python: what the lab calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from anabranch._native import Chunk, ConnectionView, SubflowView


class Scheduler(Protocol):
    """A scheduler in Python: a class without arguments, of which each connection has an instance."""

    def schedule(self, connection: ConnectionView, chunk: Chunk, subflows: Sequence[SubflowView]) -> int | float | None:
        """Chooses the subflow of the chunk.

        Returns the id of a usable subflow; if its window is full, the chunk queues there. None waits until anything
        changes, a float until that time in seconds at the latest.
        """


class CongestionControl(Protocol):
    """A congestion control in Python: a class without arguments, of which each connection has an instance.

    `event` has floats by name: times in seconds, sizes in bytes, rates in bytes per second; what is unknown is NaN.
    """

    def on_subflow_added(self, subflow: int, event: Mapping[str, float]) -> None:
        """A subflow begins: now, mss, initial_window."""

    def on_subflow_removed(self, subflow: int, event: Mapping[str, float]) -> None:
        """A subflow ended; the event is empty."""

    def on_ack(self, subflow: int, event: Mapping[str, float]) -> None:
        """Data was acknowledged: now, acked, delivered, in_flight, rtt, smoothed_rtt, min_rtt, delivery_rate, lost,
        cwnd_limited, in_recovery.
        """

    def on_congestion(self, subflow: int, event: Mapping[str, float]) -> None:
        """The window must shrink: now, in_flight, lost, and 1.0 for one of timeout, mark, penalty, 0.0 for a loss."""

    def window(self, subflow: int) -> float:
        """The congestion window in bytes."""

    def ssthresh(self, subflow: int) -> float:
        """The slow-start threshold in bytes."""
