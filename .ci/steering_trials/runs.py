"""What a run measured, and the file of runs."""

import json
import pathlib
import threading
from typing import TypedDict

# A larger share of its packets over 1 ms late makes a run invalid.
LATE = 0.001


class Outcome(TypedDict):
    """Mbit/s of the measured time and of the whole, and shares: of the time demoted, of the packets late."""

    goodput: float
    whole: float
    demoted: float
    late: float
    lost_outside: int


class Run(Outcome):
    """An outcome, what it is of, and how many attempts it took."""

    case: str
    mode: str
    round: int
    attempts: int
    commit: str
    kernel: str


def is_valid(outcome: Outcome) -> bool:
    """Whether the machine kept up with the emulation."""
    return outcome["late"] <= LATE and not outcome["lost_outside"]


def read(file: pathlib.Path) -> list[Run]:
    """The runs of a file; none if there is no file."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


class Runs:
    """The file of runs, to which each is added as soon as it is made."""

    def __init__(self, file: pathlib.Path) -> None:
        """Reads the file, if it is there."""
        self.file, self.lock = file, threading.Lock()
        file.parent.mkdir(parents=True, exist_ok=True)
        self.there = read(file)

    def has(self, case: str, mode: str, number: int) -> bool:
        """Whether this run of a round was made."""
        return any((run["case"], run["mode"], run["round"]) == (case, mode, number) for run in self.there)

    def add(self, run: Run) -> None:
        """Adds a run."""
        with self.lock, self.file.open("a") as out:
            out.write(json.dumps(run) + "\n")
            self.there.append(run)
