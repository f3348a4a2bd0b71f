"""Runs of the lab, as tables."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from anabranch import _backends, _native
from anabranch._policies import CongestionControl, InPython, PathManager, Scheduler, check, in_python, is_given
from anabranch._progress import bar
from anabranch._request import Scenario, Seeds, check_jobs, names_of, requests
from anabranch._results import Results, Runs

#: Points of a sweep's design.
POINTS = 1 << 16


def scenarios() -> list[str]:
    """Names of the built-in scenarios."""
    return _native.scenarios()


def scenario_text(name: str) -> str:
    """The TOML text of a built-in scenario.

    Raises ValueError if there is none of this name.
    """
    text = _native.scenario_text(name)
    if text is None:
        raise ValueError(f"'{name}' is none of the built-in scenarios: {', '.join(_native.scenarios())}")
    return text


def policies_of(scenario: Scenario) -> list[str]:
    """Names of a scenario's policies, as `policies` takes them."""
    (request,) = requests(
        scenario,
    )
    return _native.policies_of(json.dumps(request))


def run(
    scenario: Scenario,
    *,
    policy: str | None = None,
    seeds: Seeds = None,
    set: Mapping[str, object] | None = None,
    grid: Mapping[str, Iterable[object]] | None = None,
    scheduler: Callable[[], Scheduler] | None = None,
    congestion: Callable[[], CongestionControl] | None = None,
    path_manager: Callable[[], PathManager] | None = None,
    policy_timeout: float | None = None,
    quick: bool = False,
    jobs: int | None = None,
    backend: str | object = "local",
    out: str | None = None,
    progress: bool | Callable[[int, int, str], object] = False,
) -> Runs:
    """Runs a scenario with its first policy, or the one that is named; otherwise like `compare`."""
    return _runs(
        scenario,
        policies=policy,
        baselines=None,
        seeds=seeds,
        set=set,
        grid=grid,
        in_python=in_python(scheduler, congestion, path_manager, policy_timeout),
        quick=quick,
        jobs=jobs,
        backend=backend,
        out=out,
        progress=progress,
        first_policy_only=True,
    )


def compare(
    scenario: Scenario,
    *,
    policies: str | Sequence[str] | None = None,
    baselines: str | Sequence[str] | None = None,
    seeds: Seeds = None,
    set: Mapping[str, object] | None = None,
    grid: Mapping[str, Iterable[object]] | None = None,
    scheduler: Callable[[], Scheduler] | None = None,
    congestion: Callable[[], CongestionControl] | None = None,
    path_manager: Callable[[], PathManager] | None = None,
    policy_timeout: float | None = None,
    quick: bool = False,
    jobs: int | None = None,
    backend: str | object = "local",
    out: str | None = None,
    progress: bool | Callable[[int, int, str], object] = False,
) -> Runs:
    """Runs a scenario with each of its policies, or those that are named, on the same seeds.

    scenario: a built-in name, a file, a text in TOML, or a dict of what the file would say.
    policies, baselines: as `--policy` and `--baseline` of the command.
    seeds: how many, from 1 on, or which (a range, a list); the scenario's number if None.
    set: values of the scenario to change, by dotted path; grid: lists of values, all combinations of which are run.
    Values are those of Python or NumPy.
    scheduler, congestion, path_manager: a class in Python in place of the policies' own; only with the backend "local",
    without out.
    policy_timeout: how long the calls of one object of such a class may take together, in seconds of wall time: of the
    scheduler or congestion control of one connection, the path manager of one host. No limit if None.
    jobs: how many threads, or workers of the backend, work at once; all processors, or all workers, if None.
    backend: "local", "joblib", "dask" (the current client), "ray", or a client of dask.distributed.
    out: a directory; rows that are in its runs.jsonl are not computed again, and all are in its runs.parquet.
    progress: True for a bar, or a function of units done, all units, and a name.

    Raises ValueError, whose text names the place, if anything is wrong with scenario or options; what a policy in
    Python raises; TimeoutError if one is too slow; KeyboardInterrupt. Rows that were written to `out` stay; without
    it, what is raised while runs execute has those that were done as `runs`.
    """
    return _runs(
        scenario,
        policies=policies,
        baselines=baselines,
        seeds=seeds,
        set=set,
        grid=grid,
        in_python=in_python(scheduler, congestion, path_manager, policy_timeout),
        quick=quick,
        jobs=jobs,
        backend=backend,
        out=out,
        progress=progress,
        first_policy_only=False,
    )


def _runs(
    scenario: Scenario,
    *,
    policies: str | Sequence[str] | None,
    baselines: str | Sequence[str] | None,
    seeds: Seeds,
    set: Mapping[str, object] | None,
    grid: Mapping[str, Iterable[object]] | None,
    in_python: InPython,
    quick: bool,
    jobs: int | None,
    backend: str | object,
    out: str | None,
    progress: bool | Callable[[int, int, str], object],
    first_policy_only: bool,
) -> Runs:
    asked = requests(
        scenario,
        policies=policies,
        baselines=baselines,
        seeds=seeds,
        set=set,
        grid=grid,
        first_policy_only=first_policy_only,
        quick=quick,
    )
    check_jobs(jobs)
    texts = [asked[0]["text"]]
    told = bar() if progress is True else progress or None
    check(in_python, backend, out)
    rows: list[str] = []
    known = 0
    try:
        # Seeds that do not follow each other are several requests, and run beside each other as elsewhere.
        if backend != "local" or (len(asked) > 1 and not is_given(in_python)):
            rows, known = _backends.execute(asked, backend=backend, jobs=jobs, out=out, progress=told)
        else:
            for request in asked:
                more, there = _native.execute(
                    json.dumps(request), jobs=jobs, store=out, policies=in_python, progress=told
                )
                rows += more
                known += there
    except BaseException as error:
        rows += vars(error).pop("rows", [])
        error.runs = Runs(_native.rows_table(rows, texts), known=known)  # type: ignore[attr-defined]
        raise
    if progress is True:
        print(file=sys.stderr)
    return Runs(_native.rows_table(rows, texts), known=known)


def series(
    scenario: Scenario,
    *,
    policies: str | Sequence[str] | None = None,
    seed: int = 1,
    set: Mapping[str, object] | None = None,
) -> Results:
    """Time series of one run of each policy, a row per value.

    Columns: policy, seed, time (s, the middle of the sampling interval), path (null for the connection), metric, unit,
    value. `scenario`, `policies` and `set` are those of `compare`.
    """
    (request,) = requests(
        scenario,
        policies=policies,
        seeds=[seed],
        set=set,
    )
    return Results(_native.series(json.dumps(request)))


def capture(
    scenario: Scenario,
    out: str | os.PathLike[str],
    *,
    policies: str | Sequence[str] | None = None,
    seed: int = 1,
    set: Mapping[str, object] | None = None,
) -> list[Path]:
    """Captures of one run of each policy: all packets to and from the server (pcapng, for Wireshark).

    out: the directory of the files, whose names are those of scenario and policy; it is made if it is not there.
    `scenario`, `policies` and `set` are those of `compare`.

    Raises ValueError if anything is wrong with scenario or options, or a file cannot be written.
    """
    (request,) = requests(
        scenario,
        policies=policies,
        seeds=[seed],
        set=set,
    )
    return _native.capture(json.dumps(request), os.fspath(out))


def sweep(
    policies: str | Sequence[str] | None,
    *,
    points: int = 32,
    first: int = 0,
    seed: int = 1,
    competition: bool = False,
    scheduler: Callable[[], Scheduler] | None = None,
    congestion: Callable[[], CongestionControl] | None = None,
    path_manager: Callable[[], PathManager] | None = None,
    policy_timeout: float | None = None,
    jobs: int | None = None,
    backend: str | object = "local",
    out: str | None = None,
) -> Results:
    """Scores policies on points of a space-filling design of networks: a row per policy and point.

    policies: as `--policy` of the command `sweep`; all that it has if None.
    points, first: how many of the 65536 points of the design, from which on.
    seed: of the design, 0 to 2**32 - 1.

    Columns are those of the command's sweep.parquet: `benefit` is 1 for the sum of the paths and 0 for TCP on the best
    of them. Seed 1 was used to develop the default combination, others are unseen. `backend` and `out` are those of
    `compare`. Policies in Python replace those of all policies named, and their results are not kept.
    """
    check_jobs(jobs)
    named = names_of(policies)
    if first < 0 or points < 1 or first + points > POINTS:
        raise ValueError(f"a design has points 0 to {POINTS - 1}: there are no {points} from {first} on")
    if not 0 <= seed < 2**32:
        raise ValueError(f"the seed of a design is a whole number from 0 to 2**32 - 1, and not {seed}")
    units = _native.sweep_tasks(named, seed, first, points, competition)
    own = in_python(scheduler, congestion, path_manager, policy_timeout)
    check(own, backend, out)
    if is_given(own):
        results = [_native.sweep_run(unit, policies=own) for unit in units]
    else:
        results = _backends.map_units(units, backend=backend, jobs=jobs, out=out)
    return Results(_native.sweep_table(named, seed, first, points, competition, results))


def reproduce(
    experiment: str | None = None,
    *,
    seeds: Seeds = None,
    set: Mapping[str, object] | None = None,
    quick: bool = False,
    jobs: int | None = None,
    out: str | None = None,
    progress: bool | Callable[[int, int, str], object] = False,
) -> Results:
    """Runs the papers' experiments and compares what they measure with what was published.

    experiment: the beginning of a name; all of them if None, which takes minutes.
    seeds: how many, from 1 on, or a range; each experiment's own number if None.
    quick: shorter runs and fewer seeds, whose results say little.
    out: a directory for the rows of all runs (runs.jsonl, runs.parquet).
    set, jobs, progress: those of `compare`.

    A row per claim and baseline: experiment, paper, figure, subject, published, baseline, measured, mean and half_width
    (of the 95 % interval, a share for a change, else in the metric's unit), agreement ("reproduced", "in part",
    "undecided", "not reproduced", "not measured"), sentence, trace_hash, commit.

    Raises ValueError if there is no such experiment or an option is wrong; KeyboardInterrupt.
    """
    check_jobs(jobs)
    told = bar() if progress is True else progress or None
    measured = []
    for name in _native.experiments(experiment):
        asked = requests(
            name,
            seeds=seeds,
            set=set,
            quick=quick,
        )
        if len(asked) > 1:
            raise ValueError("seeds of an experiment follow each other")
        measured.append(_native.reproduce(json.dumps(asked[0]), jobs=jobs, store=out, progress=told))
    if progress is True:
        print(file=sys.stderr)
    return Results(_native.claims_table(measured))
