"""A leaderboard: any policy on a fixed suite that nobody tunes on.

    python -m anabranch.leaderboard                          every built-in policy; writes leaderboard.md
    python -m anabranch.leaderboard --policy lowest_rtt+cubic --policy scheduler=ecf
    python -m anabranch.leaderboard --scheduler mine.py:MyScheduler
    python -m anabranch.leaderboard --congestion mine.py:MyWindows --path-manager mine.py:MyPaths

The suite is two sets of points: networks of the sweep's design, each with one transfer, and networks of its second
design, where connections compete, paths pause and rates walk. Their seeds were drawn for it and are used for nothing
else. The score of a policy is its mean rank by goodput, delay, stalls, and harm to others.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from anabranch import __commit__, __version__, _native
from anabranch._lab import POINTS as DESIGN
from anabranch._lab import sweep

#: Seeds of the suite.
ALONE_SEED, COMPETING_SEED = 3_141_592, 2_718_281
#: Points of each set.
POINTS, COMPETING_POINTS = 64, 36
#: Families of policies that classes of Python may replace.
FAMILIES = ("scheduler", "congestion", "path_manager")


@dataclass(frozen=True)
class Entry:
    """A line of the leaderboard."""

    policy: str
    #: Median aggregation benefit on networks alone: 1 the sum of the paths, 0 TCP on the best of them.
    benefit: float
    #: Share of points on which goodput is more than 2 % below TCP's on the best path.
    below: float
    #: Median over the points of the delay of 95 % of the data, over that of TCP on its best path.
    delay: float
    #: Share of points whose longest stall is more than 0.5 s longer than TCP's on its best path.
    stalls: float
    #: Mean share of its fair share that TCP of others keeps beside it.
    others: float
    #: Mean of Jain's index among its own connections.
    jain: float


def rows_of(table: object) -> dict[str, list[dict[str, Any]]]:
    """Rows of a table by policy."""
    import pyarrow as pa

    rows: dict[str, list[dict[str, Any]]] = {}
    for row in pa.table(table).to_pylist():
        rows.setdefault(row["policy"], []).append(row)
    return rows


def known(values: Sequence[float | None]) -> list[float]:
    """The values that were measured."""
    return [value for value in values if value is not None]


def entry(policy: str, alone: list[dict[str, Any]], competing: list[dict[str, Any]]) -> Entry:
    """The line of a policy."""
    both = alone + competing
    ratios = known([row["delay_p95"] / row["tcp_delay_p95"] if row.get("tcp_delay_p95") else None for row in both])
    stalled = known(
        [
            float(row["longest_stall"] > row["tcp_longest_stall"] + 0.5)
            if row.get("tcp_longest_stall") is not None and row.get("longest_stall") is not None
            else None
            for row in both
        ]
    )
    singles = [max(known([row.get(f"tcp_{place}") for place in (1, 2, 3)]), default=0.0) for row in alone]
    below = [row["goodput"] < 0.98 * single for row, single in zip(alone, singles, strict=True)]
    return Entry(
        policy=policy,
        benefit=median(row["benefit"] for row in alone),
        below=mean(below),
        delay=median(ratios) if ratios else float("nan"),
        stalls=mean(stalled) if stalled else float("nan"),
        others=mean(known([row.get("others_share") for row in competing]) or [float("nan")]),
        jain=mean(known([row.get("jain") for row in competing]) or [float("nan")]),
    )


def ranked(entries: list[Entry]) -> list[tuple[float, Entry]]:
    """Lines with their scores, the best first."""
    criteria: list[Callable[[Entry], float]] = [
        lambda one: -one.benefit,
        lambda one: one.delay,
        lambda one: one.stalls,
        lambda one: -min(one.others, 1.0),
    ]

    def rank(one: Entry, criterion: Callable[[Entry], float]) -> float:
        # NaN is never less: what was not measured is last.
        value = criterion(one)
        better = sum(criterion(other) < value for other in entries) if value == value else len(entries)
        return better + 1

    scored = [(mean(rank(one, criterion) for criterion in criteria), one) for one in entries]
    return sorted(scored, key=lambda pair: (pair[0], pair[1].policy))


def page(lines: list[tuple[float, Entry]], points: int, competing: int) -> str:
    """The leaderboard as Markdown."""
    text = [
        "# Leaderboard",
        "",
        f"`python -m anabranch.leaderboard`, anabranch {__version__}, commit {__commit__}: {points} networks with one "
        f"transfer (seed {ALONE_SEED}) and {competing} on which connections compete (seed {COMPETING_SEED}).",
        "",
        "| | policy | score | benefit | < -2 % | delay x TCP | stalls | others keep | Jain |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for place, (score, one) in enumerate(lines, start=1):
        text.append(
            f"| {place} | `{one.policy}` | {score:.1f} | {one.benefit:.2f} | {one.below:.0%} | {one.delay:.2f} | "
            f"{one.stalls:.0%} | {one.others:.2f} | {one.jain:.3f} |"
        )
    text += [
        "",
        "Score: mean of the ranks by benefit, delay, stalls, and what others keep (at most all of it counts).",
        "Benefit: median, 1 the sum of the paths, 0 TCP on the best of them. < -2 %: points on which goodput is so far",
        "below TCP's on the best path. Delay: of 95 % of the data, over TCP's on its best path, median. Stalls: points",
        "whose longest is more than 0.5 s longer than TCP's. Others keep: mean share of its fair share that competing",
        "TCP keeps. Jain: mean of the index among its own connections. The score has no weights: who sends little, as",
        "LIA on paths that lose, adds little delay and disturbs nobody.",
        "",
    ]
    return "\n".join(text)


def evaluate(
    policies: Sequence[str],
    *,
    classes: Mapping[str, Any] | None = None,
    points: int = POINTS,
    competing: int = COMPETING_POINTS,
    backend: str | object = "local",
    out: str | None = None,
) -> list[Entry]:
    """Lines of these policies on the suite; with classes of Python, by family, in place of their own."""
    asked = list(policies)

    def rows(seed: int, count: int, competition: bool) -> dict[str, list[dict[str, Any]]]:
        suite: dict[str, Any] = {"points": count, "seed": seed, "competition": competition}
        return rows_of(sweep(asked, backend=backend, out=out, **suite, **(classes or {})))

    alone, beside = rows(ALONE_SEED, points, False), rows(COMPETING_SEED, competing, True)
    return [entry(policy, alone[policy], beside[policy]) for policy in alone]


def load(family: str, place: str) -> Callable[[], Any]:
    """A class of a file, named as FILE:CLASS."""
    option = "--" + family.replace("_", "-")
    file, _, name = place.rpartition(":")
    spec = importlib.util.spec_from_file_location("policy", file)
    if not file or spec is None or spec.loader is None or not Path(file).exists():
        raise SystemExit(f"{option} {place}: it is FILE.py:CLASS, and the file is there")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        raise SystemExit(f"{option} {place}: there is no '{name}' in {file}")
    found: Callable[[], Any] = getattr(module, name)
    return found


def _count(text: str) -> int:
    """A number of points."""
    count = int(text)
    if not 1 <= count <= DESIGN:
        raise argparse.ArgumentTypeError(f"there are 1 to {DESIGN} points, and not {count}")
    return count


def _page(text: str) -> Path:
    """A file that can be written, as far as can be known before it is."""
    page = Path(text)
    if page.is_dir() or not page.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text} is no file in a directory that is there")
    return page


def main(arguments: Sequence[str] | None = None) -> None:
    """The command; what is wrong with its options is told before anything is evaluated."""
    parser = argparse.ArgumentParser(prog="python -m anabranch.leaderboard", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--policy", action="append", default=[], help="as of `anabranch sweep` (repeatable) [all]")
    for family in FAMILIES:
        option, words = "--" + family.replace("_", "-"), family.replace("_", " ")
        parser.add_argument(option, help=f"a {words} in Python, FILE.py:CLASS, with the other policies of `plain`")
    parser.add_argument("--points", type=_count, default=POINTS, help=f"networks alone [{POINTS}]")
    parser.add_argument(
        "--competing", type=_count, default=COMPETING_POINTS, help=f"with competition [{COMPETING_POINTS}]"
    )
    parser.add_argument("--backend", default="local", help="local, joblib, dask or ray [local]")
    parser.add_argument("--out", help="a directory for results; what is there is not computed again")
    parser.add_argument("--page", type=_page, default="leaderboard.md", help="the page [leaderboard.md]")
    asked = parser.parse_args(arguments)
    suite = {"points": asked.points, "competing": asked.competing, "backend": asked.backend}
    try:
        entries: list[Entry] = []
        places = {family: place for family in FAMILIES if (place := getattr(asked, family)) is not None}
        classes = {family: load(family, place) for family, place in places.items()}
        if asked.policy or not places:
            entries += evaluate(asked.policy or _native.sweep_policies(), out=asked.out, **suite)
        if places:
            (own,) = evaluate(["plain"], classes=classes, **suite)
            entries.append(Entry(**{**own.__dict__, "policy": " ".join(places.values())}))
        text = page(ranked(entries), asked.points, asked.competing)
        # First to where it cannot be lost: it may have taken hours.
        sys.stdout.write(text)
        asked.page.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
