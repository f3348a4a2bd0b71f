"""The cases of .ci/steering, and its tables."""

import argparse
import pathlib
import statistics
import subprocess
import sys
from typing import NamedTuple

from comparison import PROGRAM, compare, repeated
from paths import PAIRS, path_settings

PAGE = pathlib.Path("docs/measurements/steering.md")
BUFFERS = ["128 kB", "512 kB", "4 MB"]
UNSTEERED = ["all", "first", "second"]
# Not steered_recpr: its runs over the satellite with 128 kB do not end.
STEERED = ["steered", "steered_lm3", "steered_pu2m2", "steered_predictive"]
# What is better by less than this share counts as neither better nor worse.
DIFFERENCE = 0.05

Metrics = dict[str, float]


class Asked(argparse.Namespace):
    """The options."""

    write: bool
    quick: bool
    download: bool
    seeds: int
    first_seed: int
    pair: list[str] | None
    buffer: list[str] | None
    policy: list[str] | None
    program: str


def options() -> Asked:
    """The options of this run."""
    parser = argparse.ArgumentParser(prog=".ci/steering")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--download", action="store_true", help="the daemon runs at the receiver")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--pair", action="append")
    parser.add_argument("--buffer", action="append")
    parser.add_argument("--policy", action="append")
    parser.add_argument("program", nargs="?", default=PROGRAM)
    return parser.parse_args(namespace=Asked())


def settings(pair: str, buffer: str, download: bool) -> list[str]:
    """The settings of the scenario for a case."""
    found = [*path_settings(PAIRS[pair]), f"connection.receive_buffer={buffer}"]
    return [*found, "transfer.direction=download"] if download else found


def run(asked: Asked, policies: list[str], pair: str, buffer: str) -> dict[str, Metrics]:
    """Means over the seeds: by policy, by metric."""
    words = ["--seeds", str(2 if asked.quick else asked.seeds), "--first-seed", str(asked.first_seed)]
    words += repeated("--policy", policies) + repeated("--set", settings(pair, buffer, asked.download))
    found = compare(asked.program, "scenarios/steering.toml", words).means()
    return {policy.split("@")[0]: metrics for policy, metrics in found.items()}


class Case(NamedTuple):
    """The means of a case, by policy."""

    pair: str
    buffer: str
    means: dict[str, Metrics]

    def goodput(self, policy: str) -> float:
        """In Mbit/s."""
        return self.means[policy]["throughput"]

    def alone(self) -> float:
        """The goodput of the better path alone."""
        return max(self.goodput("first"), self.goodput("second"))

    def best(self) -> float:
        """The goodput of the best way that is not steered."""
        return max(self.goodput("all"), self.alone())

    def has_gap(self) -> bool:
        """Whether the better path alone carries clearly more than all of them."""
        return self.alone() > (1 + DIFFERENCE) * self.goodput("all")

    def is_clear(self) -> bool:
        """Whether it is clear which of the two is better."""
        return self.has_gap() or self.alone() < (1 - DIFFERENCE) * self.goodput("all")

    def recovered(self, policy: str) -> float:
        """The share of the gap that a path manager makes good."""
        unsteered = self.goodput("all")
        return (self.goodput(policy) - unsteered) / (self.alone() - unsteered)

    def is_demoted(self, policy: str) -> bool:
        """Whether a path was demoted during most of the time."""
        return self.means[policy].get("demoted", 0) > 50


def case_row(case: Case, steered: list[str]) -> str:
    """The goodput of each policy in a case."""
    cells = [f"{case.goodput(name):.2f}" for name in UNSTEERED]
    for name in steered:
        cells.append(f"{case.goodput(name):.2f} ({100 * case.goodput(name) / case.best():.0f} %)")
    return f"| {case.pair} | {case.buffer} | " + " | ".join(cells) + " |"


def summary_row(name: str, cases: list[Case]) -> str:
    """How a path manager does over all cases."""
    least = min(case.goodput(name) / case.best() for case in cases)
    gaps = [case.recovered(name) for case in cases if case.has_gap()]
    recovered = f"{statistics.median(gaps):.2f} ({len(gaps)} cases)" if gaps else "\N{EN DASH}"
    positive = [case.is_demoted(name) for case in cases if case.has_gap()]
    negative = [case.is_demoted(name) for case in cases if case.is_clear() and not case.has_gap()]
    decisions = f"{sum(positive)} of {len(positive)} | {sum(negative)} of {len(negative)}"
    return f"| {name} | {100 * least:.1f} | {recovered} | {decisions} |"


def estimator(name: str, cases: list[Case]) -> list[str]:
    """How often the estimator of a path manager was right about whether the sender is blocked."""
    right_no, wrong_yes, wrong_no, right_yes = (
        sum(case.means[name].get(key, 0) for case in cases)
        for key in ("unblocked_seen", "blocked_imagined", "blocked_missed", "blocked_seen")
    )
    precision, recall = (right_yes / max(1, right_yes + wrong) for wrong in (wrong_yes, wrong_no))
    return [
        "| | estimated to be blocked | estimated not to be |",
        "|---|---|---|",
        f"| blocked | {right_yes:.0f} | {wrong_no:.0f} |",
        f"| not blocked | {wrong_yes:.0f} | {right_no:.0f} |",
        "",
        f"Precision {precision:.3f}, recall {recall:.3f}.",
    ]


def tables(cases: list[Case], steered: list[str], download: bool) -> str:
    """The summary, the estimator of the first path manager, and all cases."""
    heads = ["path manager", "least share of the better, %", "median share of the gap recovered"]
    heads += ["true positives", "false positives"]
    summary = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    summary += [summary_row(name, cases) for name in steered]
    heads = ["paths", "receive buffer", "all", "first alone", "second alone", *steered]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += [case_row(case, steered) for case in cases]
    # The engine knows whether the sender is blocked, so the estimator of a receiver is compared with nothing.
    parts = [summary, lines] if download else [summary, estimator(steered[0], cases), lines]
    return "\n\n".join("\n".join(part) for part in parts)


def place(asked: Asked) -> str:
    """The line of the page before the tables."""
    return "<!-- .ci/steering --download -->\n" if asked.download else "<!-- .ci/steering -->\n"


def write(asked: Asked, text: str) -> None:
    """Puts the tables into the page."""
    head = ["git", "rev-parse", "--short=7", "HEAD"]
    commit = subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()
    begin = place(asked)
    before, rest = PAGE.read_text().split(begin, 1)
    after = rest.split("<!-- end -->", 1)[1]
    seeds = f"seeds {asked.first_seed} to {asked.first_seed + asked.seeds - 1}"
    PAGE.write_text(before + begin + f"\nCommit {commit}, {seeds}:\n\n" + text + "\n\n<!-- end -->" + after)


def main() -> None:
    """Runs the cases, and prints or writes their tables."""
    asked = options()
    if asked.write and place(asked) not in PAGE.read_text():
        sys.exit(f"{PAGE} has no place for these tables")
    steered = asked.policy or (["steered_receiver"] if asked.download else STEERED)
    buffers = asked.buffer or (BUFFERS[:1] if asked.quick else BUFFERS)
    cases = [
        Case(pair, buffer, run(asked, [*UNSTEERED, *steered], pair, buffer))
        for pair in dict.fromkeys(asked.pair or PAIRS)
        for buffer in dict.fromkeys(buffers)
    ]
    text = tables(cases, steered, asked.download)
    if asked.write:
        write(asked, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
