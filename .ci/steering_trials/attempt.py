"""One run of a mode: the command, and what is read from the files that it writes."""

import json
import pathlib
import subprocess
import tempfile

from cases import Case, Daemon, Mode
from runs import Outcome

END = pathlib.Path(__file__).with_name("end.py").resolve()
# Seconds between two marks of end.py.
STEP = 0.5
# The daemon begins before the connection, and ends with the namespace.
DAEMON = (
    "{program} steer --json --journal {place}/journal --policy {policy} > {place}/decisions 2> {place}/said & "
    "until grep -q policy {place}/said; do sleep 0.05; done; "
)


def runs_at(daemon: Daemon, direction: str) -> str:
    """The end at which a daemon runs: the client sends what is uploaded."""
    return "client" if (daemon.at == "sender") == (direction == "upload") else "server"


def end(program: str, case: Case, mode: Mode, role: str, place: pathlib.Path) -> str:
    """What an end's shell runs: its daemon, if it has one, and the program that sends or receives."""
    seconds = case.warm_up + case.measured
    words = f"exec python3 {END} {role} {case.direction} {case.buffer} {seconds} 10.0.1.1 {place}/received"
    if mode.daemon is None or runs_at(mode.daemon, case.direction) != role:
        return words
    return DAEMON.format(program=program, place=place, policy=mode.daemon.policy) + words


def command(program: str, case: Case, mode: Mode, number: int, place: pathlib.Path) -> list[str]:
    """The command of a run, with the number of its round as seed."""
    words = [program, "emulate", case.scenario, "--quiet", "--seed", str(number), "--json", f"{place}/emulated"]
    words += ["--kernel-congestion", case.congestion]
    words += [word for setting in case.settings for word in ("--set", setting)]
    words += [] if mode.multipath else ["--no-mptcp-setup"]
    words += ["--server", end(program, case, mode, "server", place), "--port", "7"]
    return [*words, "--", "sh", "-c", end(program, case, mode, "client", place)]


def demoted_share(file: pathlib.Path, begin: float, until: float) -> float:
    """The share of a time (s of the clock) in which at least one subflow was demoted or closed by a decision."""
    out: set[tuple[int, str]] = set()
    share, last = 0.0, begin
    for line in file.read_text().splitlines() if file.exists() else []:
        decision = json.loads(line)
        if decision.get("kind") not in ("demote", "promote", "close", "open") or not decision["done"]:
            continue
        at = min(max(decision["at_ms"] / 1e3, begin), until)
        share += (at - last) * bool(out)
        last = at
        path = (decision["token"], decision["local"].split(":")[0])
        if decision["kind"] in ("demote", "close"):
            out.add(path)
        else:
            out.discard(path)
    return (share + (until - last) * bool(out)) / (until - begin)


def outcome(case: Case, mode: Mode, place: pathlib.Path) -> Outcome | None:
    """What the files of a run tell; None if it did not come to an end."""
    try:
        received = json.loads((place / "received").read_text())
        emulated = json.loads((place / "emulated").read_text())
    except (OSError, ValueError):
        return None
    seconds = case.warm_up + case.measured
    total = int(seconds / STEP)
    marks = [0, *received["marks"]]
    # A receiver that gets nothing any more has no marks: it has what it had.
    marks += [marks[-1]] * (total + 1 - len(marks))
    begin, until = received["begun"] + case.warm_up, received["begun"] + seconds
    lateness = emulated["lateness"]
    return {
        "goodput": (marks[total] - marks[int(case.warm_up / STEP)]) * 8 / case.measured / 1e6,
        "whole": marks[total] * 8 / (total * STEP) / 1e6,
        "demoted": demoted_share(place / "decisions", begin, until) if mode.daemon else 0.0,
        "late": lateness["over_1_ms"] / max(1, lateness["packets"]),
        "lost_outside": emulated["lost_outside_links"],
    }


def attempt(program: str, case: Case, mode: Mode, number: int) -> tuple[Outcome | None, str]:
    """Runs a mode once: what it measured, and what the program said."""
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        made = subprocess.run(command(program, case, mode, number, place), capture_output=True, text=True, check=False)
        return outcome(case, mode, place), made.stderr
