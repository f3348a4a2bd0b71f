"""The tables of what was run."""

import json, pathlib, statistics
from cases import papers, pairs

PAGE = pathlib.Path("docs/measurements/steering.md")
BEGIN, END = "<!-- .ci/steering-kernel -->\n", "<!-- end of .ci/steering-kernel -->"


def read(file):
    """Valid runs by case and mode, and how many were not valid."""
    found, late = {}, 0
    for line in file.read_text().splitlines() if file.exists() else []:
        run = json.loads(line)
        if run["late"] > 0.001 or run["lost_outside"]:
            late += 1
            continue
        found.setdefault(run["case"], {}).setdefault(run["mode"], []).append(run)
    return found, late


def median(runs, key="goodput"):
    return statistics.median(run[key] for run in runs)


def cell(runs):
    values = sorted(run["goodput"] for run in runs)
    return f"{statistics.median(values):.2f} ({values[0]:.2f} to {values[-1]:.2f})" if runs else "–"


class Score:
    """How a way to steer does over all cases, by medians."""

    def __init__(self):
        self.shares, self.gaps, self.decisions = [], [], [[0, 0], [0, 0]]

    def add(self, case, unsteered, alone, steered, runs):
        best = max(unsteered, alone)
        self.shares.append((steered / best, case))
        gap = alone > 1.05 * unsteered
        if gap:
            self.gaps.append((steered - unsteered) / (alone - unsteered))
        if gap or alone < 0.95 * unsteered:
            for run in runs:
                self.decisions[gap][run["demoted"] > 0.5] += 1

    def row(self, name):
        least, where = min(self.shares)
        gaps = f"{statistics.median(self.gaps):.2f} ({len(self.gaps)})" if self.gaps else "–"
        (false_no, false_yes), (missed, seen) = self.decisions
        below = sum(share < 0.95 for share, _ in self.shares)
        worst = f"{100 * least:.0f} ({where})"
        return f"| {name} | {len(self.shares)} | {worst} | {below} | {gaps} | {seen} of {seen + missed} | {false_yes} of {false_yes + false_no} |"


def of_pairs(found):
    lines = ["| paths, receive buffer, direction, congestion control | runs | all | better alone | steered | % | steered at the receiver | % |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    scores = {"steered": Score(), "steered at the receiver": Score()}
    for case in pairs():
        modes = found.get(case.name, {})
        if not all(modes.get(name) for name, *_ in case.modes):
            continue
        unsteered, alone = median(modes["all"]), median(modes["alone"])
        cells = [cell(modes["all"]), cell(modes["alone"])]
        for name, score in scores.items():
            runs = modes.get(name, [])
            cells += [cell(runs), f"{100 * median(runs) / max(unsteered, alone):.0f}" if runs else "–"]
            if runs:
                score.add(case.name, unsteered, alone, median(runs), runs)
        least = min(len(modes[name]) for name, *_ in case.modes)
        lines.append(f"| {case.name} | {least} | " + " | ".join(cells) + " |")
    summary = ["| daemon | cases | least share of the better, % | cases below 95 % | median share of the gap (cases) | true positives | false positives |"]
    summary.append("|---|---|---|---|---|---|---|")
    summary += [score.row(name) for name, score in scores.items() if score.shares]
    return ["\n".join(summary), "\n".join(lines)]


def of_papers(found):
    lines = ["| network | unsteered or steered by | runs | Mbit/s | over all paths unsteered, % |", "|---|---|---|---|---|"]
    for case in papers():
        modes = found.get(case.name, {})
        for name, *_ in case.modes:
            runs = modes.get(name)
            if runs and modes.get("all"):
                change = 100 * (median(runs) / median(modes["all"]) - 1)
                lines.append(f"| {case.name} | {name} | {len(runs)} | {cell(runs)} | {change:+.1f} |")
    return ["\n".join(lines)] if len(lines) > 2 else []


def origin(found):
    runs = [run for modes in found.values() for runs in modes.values() for run in runs]
    commits = ", ".join(sorted({run["commit"] for run in runs}))
    kernels = ", ".join(sorted({run["kernel"].split("-")[0] for run in runs}))
    return f"Commit {commits}, kernel {kernels}, {len(runs)} runs"


def show(place, write):
    parts = []
    for file, make in (("pairs.jsonl", of_pairs), ("papers.jsonl", of_papers)):
        found, late = read(place / file)
        if found:
            left = f"; {late} more were left out, since the machine was late" if late else ""
            parts += [origin(found) + left + ":"] + make(found)
    text = "\n\n".join(parts)
    if not write:
        print(text)
        return
    before, rest = PAGE.read_text().split(BEGIN, 1)
    PAGE.write_text(before + BEGIN + "\n" + text + "\n\n" + END + rest.split(END, 1)[1])
