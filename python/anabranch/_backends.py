"""Runs on other processes and machines.

A run is a pure function of (scenario, policy, seed), so that any library that calls functions elsewhere can execute
it: a batch of requests goes there as JSON, and rows come back. What is written, and what is there already, is decided
here; a worker that is killed costs its batch, which its library gives to another one.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, TypeAlias

from anabranch import _native
from anabranch._request import Request

#: Batches per process: enough that the last one is short.
BATCHES = 8

#: How often a batch begins again whose worker was killed.
RETRIES = 3

#: What is said when a cluster is lost.
KEPT = "with 'out' the rows until then are kept, and the same call goes on where this one ended"

#: Executes one item, and gives its results.
Work: TypeAlias = Callable[[str], list[str]]


def execute_one(request: str) -> list[str]:
    """Executes a request on one thread; gives its rows."""
    return _native.execute(request, jobs=1)[0]


def run_unit(unit: str) -> list[str]:
    """Executes a run of a sweep; gives its result."""
    return [_native.sweep_run(unit)]


def batches(items: list[str], count: int) -> list[list[str]]:
    """Divides items into about so many batches, neighbours apart, so that each costs about the same."""
    count = max(1, min(count, len(items)))
    return [items[start::count] for start in range(count)]


class Rows:
    """Rows of single requests, in runs.jsonl of a directory if there is one."""

    def __init__(self, out: str | None, keys: dict[str, list[str]]) -> None:
        """Finds the requests whose rows are there."""
        self.store = None if out is None else _native.KeptRows(out)
        self.known: dict[str, list[str]] = {}
        if self.store is not None:
            rows = self.store.rows({key for some in keys.values() for key in some})
            self.known = {
                item: [rows[key] for key in some] for item, some in keys.items() if all(map(rows.__contains__, some))
            }

    def keep(self, item: str, results: list[str]) -> None:
        """A request was executed."""
        self.known[item] = results
        if self.store is not None:
            self.store.keep(item, results)

    def write(self) -> None:
        """Writes all rows of the directory as a table."""
        if self.store is not None:
            self.store.write()

    def close(self) -> None:
        """Lets others write the file, also while an exception holds this object."""
        self.store = None


class Units:
    """Results of runs of a sweep, in sweep.jsonl of a directory if there is one."""

    def __init__(self, out: str | None, units: list[str]) -> None:
        """Finds the runs whose results are there."""
        self.journal = None if out is None else _native.KeptUnits(out)
        found = {} if self.journal is None else {unit: self.journal.find(unit) for unit in units}
        self.known = {unit: [result] for unit, result in found.items() if result is not None}

    def keep(self, item: str, results: list[str]) -> None:
        """A run was executed."""
        self.known[item] = results
        if self.journal is not None:
            self.journal.keep(*results)

    def close(self) -> None:
        """Lets others write the file, also while an exception holds this object."""
        self.journal = None


def execute(
    asked: list[Request],
    *,
    backend: str | object,
    jobs: int | None,
    out: str | None,
    progress: Callable[[int, int, str], object] | None,
) -> tuple[list[str], int]:
    """Rows of all requests, and how many were there already. What ends them has those that were done as `rows`."""
    keys = {item: some for request in asked for item, some in _native.single_requests(json.dumps(request))}
    with contextlib.closing(Rows(out, keys)) as rows:
        try:
            filled = fill(list(keys), rows, execute_one, backend, jobs, progress)
        except BaseException as error:
            # What ended the runs is raised, and not what may have the same cause.
            with contextlib.suppress(ValueError):
                rows.write()
            error.rows = [row for item in keys for row in rows.known.get(item, [])]  # type: ignore[attr-defined]
            raise
        rows.write()
        return filled


def map_units(units: list[str], *, backend: str | object, jobs: int | None, out: str | None) -> list[str]:
    """Results of all runs of a sweep."""
    with contextlib.closing(Units(out, units)) as kept:
        return fill(units, kept, run_unit, backend, jobs, None)[0]


def fill(
    items: list[str],
    kept: Rows | Units,
    work: Work,
    backend: str | object,
    jobs: int | None,
    progress: Callable[[int, int, str], object] | None,
) -> tuple[list[str], int]:
    """Results of all items in their order, and how many were there; the others are computed by the backend."""
    missing = [item for item in items if item not in kept.known]
    there = sum(len(kept.known[item]) for item in items if item in kept.known)
    parts: list[list[str]] = []
    if missing:
        # Threads cost nothing to call: what is done is kept at once, and nobody waits for the rest of a batch.
        most = len(missing) if backend == "local" else BATCHES * workers_of(backend, jobs)
        parts = batches(missing, max(most, len(missing) // 256))
    done = 0
    for part, results in zip_results(parts, work, backend, jobs):
        for item, own in split(part, results):
            kept.keep(item, own)
        done += len(part)
        if progress is not None:
            progress(done, len(missing), f"{len(missing)} runs")
    return [result for item in items for result in kept.known[item]], there


def split(part: list[str], results: list[list[str]]) -> Iterator[tuple[str, list[str]]]:
    """Each item with its results."""
    if len(part) != len(results):
        raise RuntimeError(f"a worker gave {len(results)} results for {len(part)} runs")
    yield from zip(part, results, strict=True)


def each(work: Work, part: list[str]) -> list[list[str]]:
    """Results of each item of a batch; it is what runs elsewhere."""
    return [work(item) for item in part]


def zip_results(
    parts: list[list[str]], work: Work, backend: str | object, jobs: int | None
) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Batches with their results, as they end."""
    if not parts:
        return iter(())
    if backend == "local":
        return local(parts, work, jobs)
    if backend == "joblib":
        return joblib(parts, work, jobs)
    if backend == "dask" or hasattr(backend, "submit"):
        return dask(parts, work, backend, jobs)
    if backend == "ray":
        return ray(parts, work, jobs)
    raise ValueError(f"the backend is local, joblib, dask, ray or a client of dask.distributed, and not {backend!r}")


def local(parts: list[list[str]], work: Work, jobs: int | None) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Threads of this process; the lab runs without Python's lock."""
    from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

    threads = jobs or os.cpu_count() or 1
    queue = iter(parts)
    with ThreadPoolExecutor(threads) as pool:
        running = {pool.submit(each, work, part): part for part in islice(queue, 2 * threads)}
        try:
            while running:
                done = wait(running, return_when=FIRST_COMPLETED).done
                # What was raised is raised again after what was done beside it is kept.
                for future in sorted(done, key=lambda future: future.exception() is not None):
                    yield running.pop(future), future.result()
                    for following in islice(queue, 1):
                        running[pool.submit(each, work, following)] = following
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def joblib(parts: list[list[str]], work: Work, jobs: int | None) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Processes of this machine, or what a `joblib.parallel_config` around the call says."""
    from concurrent.futures import BrokenExecutor

    from joblib import Parallel, delayed

    def numbered(place: int, part: list[str]) -> tuple[int, list[list[str]]]:
        return place, each(work, part)

    left, broken = dict(enumerate(parts)), 0
    while left:
        calls = [delayed(numbered)(place, part) for place, part in left.items()]
        try:
            for place, results in Parallel(n_jobs=jobs or -1, return_as="generator_unordered")(calls):
                broken = 0
                yield left.pop(place), results
        except BrokenExecutor:
            # A process was killed, and joblib ended the others: what they had is done by new ones. Who dies of its
            # batch each time would be killed for ever.
            broken += 1
            if broken > RETRIES:
                raise


def workers_of(backend: str | object, jobs: int | None) -> int:
    """How many batches are executed at once."""
    if backend == "joblib":
        from joblib import effective_n_jobs

        return int(effective_n_jobs(jobs or -1))
    if backend == "ray":
        there = round(open_ray(jobs).cluster_resources().get("CPU", 1))
    elif backend == "dask" or hasattr(backend, "submit"):
        client = client_of_dask(backend)
        # What is no client of Dask cannot say it; and workers may come later.
        there = sum(client.nthreads().values()) if hasattr(client, "nthreads") else 0
    else:
        there = 0
    there = there or os.cpu_count() or 1
    return there if jobs is None else min(jobs, there)


def client_of_dask(backend: str | object) -> Any:
    """The given client, or the current one."""
    import distributed

    if backend != "dask":
        return backend
    try:
        return distributed.get_client()
    except ValueError:
        raise ValueError(
            "backend='dask' takes the current client, and there is none: make a distributed.Client first"
        ) from None


def dask(
    parts: list[list[str]], work: Work, backend: str | object, jobs: int | None
) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Workers of dask.distributed: the given client's, or the current one's."""
    import distributed

    library: Any = distributed
    client, queue = client_of_dask(backend), iter(parts)

    def submit(part: list[str]) -> Any:
        return client.submit(each, work, part, pure=False, retries=RETRIES)

    futures = {submit(part): part for part in islice(queue, jobs)}
    # An error comes in place of results; those of a scheduler that is gone would not be raised.
    done = library.as_completed(list(futures), with_results=True, raise_errors=False)
    for future, results in done:
        if future.status == "cancelled":
            raise ConnectionError(f"the scheduler of Dask is lost: {KEPT}")
        if future.status == "error":
            future.result()
        yield futures.pop(future), results
        future.release()
        for part in islice(queue, 1):
            following = submit(part)
            futures[following] = part
            done.add(following)


def open_ray(jobs: int | None) -> Any:
    """Ray with the cluster that `ray.init` connected to, that RAY_ADDRESS names, or that runs here; else a new one."""
    import ray

    library: Any = ray
    if library.is_initialized():
        return library
    if jobs is None or "RAY_ADDRESS" in os.environ:
        library.init(log_to_driver=False)
        return library
    try:
        library.init(address="auto", log_to_driver=False)
    except ConnectionError:
        library.init(address="local", num_cpus=jobs, log_to_driver=False)
    return library


def ray(parts: list[list[str]], work: Work, jobs: int | None) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Workers of Ray."""
    library = open_ray(jobs)
    remote = library.remote(max_retries=RETRIES)(each)
    queue = iter(parts)
    most = jobs or max(2, round(4 * library.cluster_resources().get("CPU", 1)))
    running = {remote.remote(work, part): part for part in islice(queue, most)}
    while running:
        (done, *_), _ = library.wait(list(running), num_returns=1)
        part = running.pop(done)
        yield part, library.get(done)
        for following in islice(queue, 1):
            running[remote.remote(work, following)] = following
