"""Runs the cases, one round after the other."""

import argparse
import concurrent.futures
import functools
import os
import pathlib
import subprocess
import sys

import tables
from attempt import attempt
from cases import Case, pairs, papers
from runs import Outcome, Run, Runs, is_valid

PLACE = pathlib.Path("results/steering-kernel")
# A run that is not valid is repeated, so many times at most.
ATTEMPTS = 3


class Asked(argparse.Namespace):
    """The options."""

    papers: bool
    rounds: int
    jobs: int
    case: list[str] | None
    mode: list[str] | None
    table: bool
    write: bool
    commit: str | None
    program: str


def options() -> Asked:
    """The options of this run."""
    parser = argparse.ArgumentParser(prog=".ci/steering-kernel")
    parser.add_argument("--papers", action="store_true")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--case", action="append")
    parser.add_argument("--mode", action="append")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--commit", help="of PROGRAM, if it is not the one that is checked out")
    parser.add_argument("program", nargs="?", default="target/release/anabranch")
    return parser.parse_args(namespace=Asked())


def checked_out() -> str:
    """The commit that is checked out."""
    head = ["git", "rev-parse", "--short=7", "HEAD"]
    return subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()


def make(asked: Asked, runs: Runs, commit: str, number: int, case: Case) -> None:
    """Runs the modes of a case one after the other, so that they meet the same machine."""
    for mode in case.modes:
        if runs.has(case.name, mode.name, number) or (asked.mode and mode.name not in asked.mode):
            continue
        told = f"{case.name}, {mode.name}, round {number}"
        attempts, said = 0, ""
        outcome: Outcome | None = None
        while attempts < ATTEMPTS and not (outcome and is_valid(outcome)):
            outcome, said = attempt(os.path.realpath(asked.program), case, mode, number)
            attempts += 1
        if outcome is None:
            print(f"{told}: no result: {said.strip()[-300:]}", file=sys.stderr, flush=True)
            continue
        run: Run = {
            **outcome,
            "case": case.name,
            "mode": mode.name,
            "round": number,
            "attempts": attempts,
            "commit": commit,
            "kernel": os.uname().release,
        }
        runs.add(run)
        print(f"{told}: {outcome['goodput']:.2f} Mbit/s, late {outcome['late']:.5f}", flush=True)


def main() -> None:
    """Runs what is asked for, or shows the tables of what was run."""
    asked = options()
    if asked.table or asked.write:
        tables.show(PLACE, asked.write)
        return
    commit = asked.commit or checked_out()
    cases = list(papers() if asked.papers else pairs())
    unknown = set(asked.case or []) - {case.name for case in cases}
    if unknown:
        sys.exit(f"no such case: {', '.join(unknown)}; there are: " + "; ".join(case.name for case in cases))
    cases = [case for case in cases if not asked.case or case.name in asked.case]
    runs = Runs(PLACE / ("papers.jsonl" if asked.papers else "pairs.jsonl"))
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        for number in range(1, asked.rounds + 1):
            list(pool.map(functools.partial(make, asked, runs, commit, number), cases))


if __name__ == "__main__":
    main()
