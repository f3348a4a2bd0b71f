"""The cases of .ci/steering-kernel: paths, receive buffer, direction, congestion control; and the modes of each."""

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import paths
from paths import Path, path_settings

# Some of the lab's. The narrow path has a longer delay here, and less beside it.
PAIRS = {name: paths.PAIRS[name] for name in ("alike", "Wi-Fi, LTE", "slow second", "satellite")}
PAIRS["narrow second"] = (Path(20, 10, 200, 0), Path(1, 150, 50, 0))
PAIRS["lossy second"] = paths.PAIRS["lossy second"]
# Bytes that the program asks for, which the kernel doubles.
BUFFERS = {"128 kB": "131072", "automatic": "automatic"}
PAPERS_BUFFER = "65536"

# Seconds before the measurement, and of it.
WARM_UP, MEASURED = 6, 6


class Daemon(NamedTuple):
    """A daemon that steers: at the "sender" or the "receiver" of the data, and its path manager with settings."""

    at: str
    policy: str


class Mode(NamedTuple):
    """How the paths are used: with or without MPTCP's set-up of the hosts, and what steers."""

    name: str
    multipath: bool = True
    daemon: Daemon | None = None


ALL = Mode("all")
ALONE = Mode("alone", multipath=False)
STEERED = Mode("steered", daemon=Daemon("sender", "goodput_trial"))
RECEIVER = Mode("steered at the receiver", daemon=Daemon("receiver", "goodput_trial,path_manager.late=0.03"))


@dataclasses.dataclass(frozen=True)
class Case:
    """A scenario with settings, how a connection uses it, and the modes that are compared; times in seconds."""

    name: str
    scenario: str
    settings: tuple[str, ...]
    buffer: str
    direction: str
    congestion: str
    warm_up: float
    measured: float
    modes: tuple[Mode, ...]


def pair_case(pair: str, buffer: str, direction: str, congestion: str) -> Case:
    """The case of a pair of paths."""
    return Case(
        name=f"{pair}, {buffer}, {direction}, {congestion}",
        scenario="scenarios/steering.toml",
        settings=tuple(path_settings(PAIRS[pair])),
        buffer=BUFFERS[buffer],
        direction=direction,
        congestion=congestion,
        warm_up=WARM_UP,
        measured=MEASURED,
        modes=(ALL, ALONE, STEERED, RECEIVER) if direction == "download" else (ALL, ALONE, STEERED),
    )


def pairs() -> Iterator[Case]:
    """The pairs of paths: all of them with CUBIC, and uploads with the small buffer with BBR."""
    for pair in PAIRS:
        for buffer in BUFFERS:
            for direction in ("upload", "download"):
                yield pair_case(pair, buffer, direction, "cubic")
    for pair in PAIRS:
        yield pair_case(pair, "128 kB", "upload", "bbr")


def paper_case(
    name: str, scenario: str, seconds: float, modes: tuple[Mode, ...], settings: tuple[str, ...] = ()
) -> Case:
    """The case of a network of a paper, of which the whole run counts."""
    return Case(
        name=name,
        scenario=f"scenarios/{scenario}.toml",
        settings=settings,
        buffer=PAPERS_BUFFER,
        direction="upload",
        congestion="cubic",
        warm_up=0,
        measured=seconds,
        modes=modes,
    )


def steered(*policies: str) -> tuple[Mode, ...]:
    """A mode for each path manager, at the sender."""
    return tuple(Mode(f"steered by {policy.split(',')[0]}", daemon=Daemon("sender", policy)) for policy in policies)


def papers() -> Iterator[Case]:
    """The papers' networks with their path managers. The emulation has no TCP cross traffic: all of LM3's is UDP."""
    of_lm3 = steered("lm3", "pu2m2", "goodput_trial")
    yield paper_case("LM3, section 2", "lm3_motivation", 120, (ALL, ALONE, *of_lm3))
    no_tcp = tuple(f"paths.{path}.background.tcp=0 %" for path in "ABC")
    yield paper_case("LM3, section 4", "lm3_evaluation", 100, (ALL, *of_lm3), no_tcp)
    of_recpr = steered("one_way_delay,path_manager.measured_by=sender", "pu2m2", "goodput_trial")
    yield paper_case("recPR, section V.B", "recpr_bulk", 100, (ALL, *of_recpr))
