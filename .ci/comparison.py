"""Runs `anabranch compare` and reads what it found."""

import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Of a release build, relative to the root.
PROGRAM = "target/release/anabranch"


class Mean(NamedTuple):
    """The mean of a metric, half its 95 % interval if there is one, and the number of seeds."""

    mean: float
    half: float | None
    unit: str
    seeds: int


class Comparison(NamedTuple):
    """The commit of the program, the trace hash, and means: by policy as the program names it, by metric."""

    commit: str
    trace_hash: str
    policies: dict[str, dict[str, Mean]]

    def means(self) -> dict[str, dict[str, float]]:
        """Without intervals."""
        return {policy: {of: seen.mean for of, seen in found.items()} for policy, found in self.policies.items()}


def repeated(name: str, values: Iterable[str]) -> list[str]:
    """An option that is repeated for each value."""
    return [word for value in values for word in (name, value)]


def compare(program: str, scenario: str, words: Iterable[str] = ()) -> Comparison:
    """Compares policies on a scenario; ends this program if that fails."""
    command = [program, "compare", scenario, "--json", *words]
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run([*command, "--out", place], cwd=ROOT, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: ended with {done.returncode}")
    outcome = json.loads(done.stdout)
    policies: dict[str, dict[str, Mean]] = {}
    for row in outcome["experiments"][0]["rows"]:
        low, high = row["ci95"]
        # One seed has no interval.
        half = None if low is None else (high - low) / 2
        policies.setdefault(row["policy"], {})[row["metric"]] = Mean(row["mean"], half, row["unit"], row["seeds"])
    return Comparison(outcome["commit"], outcome["trace_hash"], policies)
