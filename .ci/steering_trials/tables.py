"""The tables of what was run."""

import pathlib
import statistics

from cases import Case, pairs, papers
from runs import Run, is_valid, read

PAGE = pathlib.Path("docs/measurements/steering.md")
BEGIN, END = "<!-- .ci/steering-kernel -->\n", "<!-- end of .ci/steering-kernel -->"
NONE = "\N{EN DASH}"
STEERED = ("steered", "steered at the receiver")

Modes = dict[str, list[Run]]
Found = dict[str, Modes]


def by_case(runs: list[Run]) -> Found:
    """Runs by case and mode."""
    found: Found = {}
    for run in runs:
        found.setdefault(run["case"], {}).setdefault(run["mode"], []).append(run)
    return found


def median(runs: list[Run]) -> float:
    """The median goodput, in Mbit/s."""
    return statistics.median(run["goodput"] for run in runs)


def cell(runs: list[Run]) -> str:
    """Median, least and largest goodput."""
    values = sorted(run["goodput"] for run in runs)
    return f"{statistics.median(values):.2f} ({values[0]:.2f} to {values[-1]:.2f})" if runs else NONE


def head(names: list[str]) -> list[str]:
    """The first two lines of a table."""
    return ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]


class Score:
    """How a way to steer does over all cases, by medians; and in which runs it demoted a path, rightly or wrongly."""

    def __init__(self) -> None:
        """Of no case yet."""
        self.shares: list[tuple[float, str]] = []
        self.gaps: list[float] = []
        self.demoted_where_right: list[bool] = []
        self.demoted_where_wrong: list[bool] = []

    def add(self, case: str, modes: Modes, runs: list[Run]) -> None:
        """Adds a case with the runs that were steered."""
        unsteered, alone, steered = median(modes["all"]), median(modes["alone"]), median(runs)
        self.shares.append((steered / max(unsteered, alone), case))
        demoted = [run["demoted"] > 0.5 for run in runs]
        if alone > 1.05 * unsteered:
            self.gaps.append((steered - unsteered) / (alone - unsteered))
            self.demoted_where_right += demoted
        elif alone < 0.95 * unsteered:
            self.demoted_where_wrong += demoted

    def row(self, name: str) -> str:
        """The row of the table."""
        least, where = min(self.shares)
        gaps = f"{statistics.median(self.gaps):.2f} ({len(self.gaps)})" if self.gaps else NONE
        below = sum(share < 0.95 for share, _ in self.shares)
        cells = [name, str(len(self.shares)), f"{100 * least:.0f} ({where})", str(below), gaps]
        cells += [f"{sum(these)} of {len(these)}" for these in (self.demoted_where_right, self.demoted_where_wrong)]
        return "| " + " | ".join(cells) + " |"


def is_complete(case: Case, modes: Modes) -> bool:
    """Whether there are runs of each mode."""
    return all(modes.get(mode.name) for mode in case.modes)


def of_pairs(found: Found) -> list[str]:
    """The scores, and all cases."""
    heads = ["paths, receive buffer, direction, congestion control", "runs", "all", "better alone"]
    lines = head([*heads, "steered", "%", "steered at the receiver", "%"])
    scores = {name: Score() for name in STEERED}
    for case in pairs():
        modes = found.get(case.name, {})
        if not is_complete(case, modes):
            continue
        best = max(median(modes["all"]), median(modes["alone"]))
        cells = [cell(modes["all"]), cell(modes["alone"])]
        for name, score in scores.items():
            runs = modes.get(name, [])
            cells += [cell(runs), f"{100 * median(runs) / best:.0f}" if runs else NONE]
            if runs:
                score.add(case.name, modes, runs)
        least = min(len(modes[mode.name]) for mode in case.modes)
        lines.append(f"| {case.name} | {least} | " + " | ".join(cells) + " |")
    heads = ["daemon", "cases", "least share of the better, %", "cases below 95 %", "median share of the gap (cases)"]
    summary = head([*heads, "true positives", "false positives"])
    summary += [score.row(name) for name, score in scores.items() if score.shares]
    return ["\n".join(summary), "\n".join(lines)]


def of_papers(found: Found) -> list[str]:
    """The papers' networks; nothing if none was run."""
    lines = []
    for case in papers():
        modes = found.get(case.name, {})
        for name in (mode.name for mode in case.modes):
            runs = modes.get(name)
            if runs and modes.get("all"):
                change = 100 * (median(runs) / median(modes["all"]) - 1)
                lines.append(f"| {case.name} | {name} | {len(runs)} | {cell(runs)} | {change:+.1f} |")
    heads = ["network", "unsteered or steered by", "runs", "Mbit/s", "over all paths unsteered, %"]
    return ["\n".join([*head(heads), *lines])] if lines else []


def origin(runs: list[Run], invalid: int) -> str:
    """The line above the tables: what they are of."""
    commits = ", ".join(sorted({run["commit"] for run in runs}))
    kernels = ", ".join(sorted({run["kernel"].split("-")[0] for run in runs}))
    left = f"; {invalid} more were left out, since the machine was late" if invalid else ""
    return f"Commit {commits}, kernel {kernels}, {len(runs)} runs{left}:"


def show(place: pathlib.Path, write: bool) -> None:
    """Prints the tables, or writes them into the page."""
    parts = []
    for file, make in (("pairs.jsonl", of_pairs), ("papers.jsonl", of_papers)):
        runs = read(place / file)
        valid = [run for run in runs if is_valid(run)]
        if valid:
            parts += [origin(valid, len(runs) - len(valid)), *make(by_case(valid))]
    text = "\n\n".join(parts)
    if not write:
        print(text)
        return
    before, rest = PAGE.read_text().split(BEGIN, 1)
    PAGE.write_text(before + BEGIN + "\n" + text + "\n\n" + END + rest.split(END, 1)[1])
