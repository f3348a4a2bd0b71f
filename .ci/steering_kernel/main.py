"""Runs the cases, one round after the other."""

import argparse, concurrent.futures, json, os, pathlib, subprocess, sys, tempfile, threading
import tables
from cases import pairs, papers

PLACE = pathlib.Path("results/steering-kernel")
END = pathlib.Path(__file__).with_name("end.py").resolve()
# A run is repeated if a larger share of its packets was over 1 ms late, so many times at most.
LATE, ATTEMPTS = 0.001, 3

# The daemon begins before the connection, and ends with the namespace.
DAEMON = "{program} steer --json --journal {place}/journal --policy {policy} > {place}/decisions 2> {place}/said & until grep -q policy {place}/said; do sleep 0.05; done; "


def command(asked, case, mode, number, place):
    name, at, policy = mode
    daemon = DAEMON.format(program=asked.program, place=place, policy=policy) if at else ""
    daemon_at = {"sender": "client", "receiver": "server"}.get(at)
    if at and case.direction == "download":
        daemon_at = {"client": "server", "server": "client"}[daemon_at]
    end = f"exec python3 {END} {{}} {case.direction} {case.buffer} {case.warm_up + case.measured} 10.0.1.1 {place}/received"
    client = (daemon if daemon_at == "client" else "") + end.format("client")
    server = (daemon if daemon_at == "server" else "") + end.format("server")
    words = [asked.program, "emulate", case.scenario, "--quiet", "--seed", str(number), "--json", f"{place}/emulated"]
    words += ["--kernel-congestion", case.congestion]
    words += [word for setting in case.settings for word in ("--set", setting)]
    words += ["--no-mptcp-setup"] if name == "alone" else []
    return words + ["--server", server, "--port", "7", "--", "sh", "-c", client]


def demoted_share(file, begin, end):
    """The share of a time (s of the clock) in which at least one subflow was demoted or closed by a decision."""
    out, share, last = set(), 0.0, begin
    for line in file.read_text().splitlines() if file.exists() else []:
        decision = json.loads(line)
        if decision.get("kind") not in ("demote", "promote", "close", "open") or not decision["done"]:
            continue
        at = min(max(decision["at_ms"] / 1e3, begin), end)
        share += (at - last) * bool(out)
        last = at
        path = (decision["token"], decision["local"].split(":")[0])
        out.add(path) if decision["kind"] in ("demote", "close") else out.discard(path)
    return (share + (end - last) * bool(out)) / (end - begin)


def attempt(asked, case, mode, number):
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        made = subprocess.run(command(asked, case, mode, number, place), capture_output=True, text=True)
        try:
            received = json.loads((place / "received").read_text())
            emulated = json.loads((place / "emulated").read_text())
        except (OSError, ValueError):
            return None, made.stderr
        marks, first = received["marks"], int(case.warm_up / 0.5)
        total = int((case.warm_up + case.measured) / 0.5)
        # A receiver that gets nothing any more has no marks: it has what it had.
        marks = [0] + marks + [marks[-1] if marks else 0] * (total - len(marks))
        lateness = emulated["lateness"]
        begin, end = received["begun"] + case.warm_up, received["begun"] + case.warm_up + case.measured
        return {
            "goodput": (marks[total] - marks[first]) * 8 / case.measured / 1e6,
            "whole": marks[total] * 8 / (total * 0.5) / 1e6,
            "demoted": demoted_share(place / "decisions", begin, end) if mode[1] else 0.0,
            "late": lateness["over_1_ms"] / max(1, lateness["packets"]),
            "lost_outside": emulated["lost_outside_links"],
        }, made.stderr


class Runs:
    """The file of runs, to which each is added as soon as it is made."""

    def __init__(self, file):
        self.file, self.lock = file, threading.Lock()
        file.parent.mkdir(parents=True, exist_ok=True)
        self.there = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def has(self, case, mode, number):
        return any((run["case"], run["mode"], run["round"]) == (case.name, mode[0], number) for run in self.there)

    def add(self, run):
        with self.lock, self.file.open("a") as out:
            out.write(json.dumps(run) + "\n")
            self.there.append(run)


def make(asked, runs, case, number):
    """The modes of a case one after the other, so that they meet the same machine."""
    for mode in case.modes:
        if runs.has(case, mode, number) or (asked.mode and mode[0] not in asked.mode):
            continue
        for again in range(ATTEMPTS):
            outcome, said = attempt(asked, case, mode, number)
            if outcome and outcome["late"] <= LATE and not outcome["lost_outside"]:
                break
        if not outcome:
            print(f"{case.name}, {mode[0]}, round {number}: no result: {said.strip()[-300:]}", file=sys.stderr, flush=True)
            continue
        outcome |= {"case": case.name, "mode": mode[0], "round": number, "attempts": again + 1}
        runs.add(outcome | {"commit": asked.commit, "kernel": os.uname().release})
        print(f"{case.name}, {mode[0]}, round {number}: {outcome['goodput']:.2f} Mbit/s, late {outcome['late']:.5f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--papers", action="store_true")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--case", action="append")
    parser.add_argument("--mode", action="append")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--commit", help="of PROGRAM, if it is not the one that is checked out")
    parser.add_argument("program", nargs="?", default="target/release/anabranch")
    asked = parser.parse_args()
    asked.program = os.path.realpath(asked.program)
    if asked.table or asked.write:
        return tables.show(PLACE, asked.write)
    head = ["git", "rev-parse", "--short=7", "HEAD"]
    asked.commit = asked.commit or subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()
    cases = list(papers() if asked.papers else pairs())
    unknown = set(asked.case or []) - {case.name for case in cases}
    if unknown:
        sys.exit(f"no such case: {', '.join(unknown)}; there are: " + "; ".join(case.name for case in cases))
    cases = [case for case in cases if not asked.case or case.name in asked.case]
    runs = Runs(PLACE / ("papers.jsonl" if asked.papers else "pairs.jsonl"))
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        for number in range(1, asked.rounds + 1):
            list(pool.map(lambda case: make(asked, runs, case, number), cases))


main()
