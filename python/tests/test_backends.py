"""Runs on other processes: results equal the local ones to the last bit, whatever is killed."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import anabranch

SHORT = {"duration": "3 s"}
POLICIES = ["plain", "anabranch", "tcp"]


def compare(backend: str | object, out: Path | None = None, seeds: int = 4) -> pa.Table:
    place = None if out is None else str(out)
    runs = anabranch.compare("two_paths", policies=POLICIES, seeds=seeds, set=SHORT, backend=backend, jobs=2, out=place)
    # The program's hash and a row's order of arrival are no results.
    return pa.table(runs)


def test_joblib_has_the_results_of_this_process() -> None:
    assert compare("joblib").equals(compare("local"))


def test_what_was_killed_goes_on_with_the_same_command(tmp_path: Path) -> None:
    code = (
        "import anabranch; anabranch.compare('two_paths', policies=['plain'], seeds=3000, backend='joblib', jobs=2, "
        f"out={str(tmp_path)!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    lines = tmp_path / "runs.jsonl"
    patience = time.monotonic() + 120
    while time.monotonic() < patience and not (lines.exists() and lines.stat().st_size > 10_000):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = lines.read_text().count('"trace_hash"')
    assert 0 < before < 3000
    with lines.open("a") as file:
        file.write('{"key": "torn')
    runs = anabranch.compare(
        "two_paths", policies=["plain"], seeds=before + 4, backend="joblib", jobs=2, out=str(tmp_path)
    )
    assert len(runs) == before + 4
    assert 0 < runs.known <= before
    keys = [line.split('"scenario"')[0] for line in lines.read_text().splitlines() if "trace_hash" in line]
    assert len(keys) == len(set(keys))
    # Any backend goes on with the rows of another one.
    local = anabranch.compare("two_paths", policies=["plain"], seeds=before + 4, out=str(tmp_path))
    assert local.known == len(local) == before + 4
    assert pa.table(local).equals(pa.table(runs))
    assert (tmp_path / "runs.parquet").exists()


@pytest.fixture
def dask_client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


def test_dask_has_the_results_of_this_process(dask_client: Any) -> None:
    assert compare(dask_client).equals(compare("local"))


def test_a_worker_of_dask_that_is_killed_loses_nothing(dask_client: Any, tmp_path: Path) -> None:
    killed: list[int] = []

    def kill_one(*_: object) -> None:
        if not killed:
            pids = dask_client.run(os.getpid)
            killed.append(next(iter(pids.values())))
            os.kill(killed[0], signal.SIGKILL)

    runs = anabranch.compare(
        "two_paths",
        policies=POLICIES,
        seeds=30,
        set=SHORT,
        backend=dask_client,
        jobs=2,
        out=str(tmp_path),
        progress=kill_one,
    )
    assert killed
    assert pa.table(runs).equals(compare("local", seeds=30))


def until_up(address: tuple[str, int]) -> None:
    """Waits until somebody listens there."""
    patience = time.monotonic() + 120
    while time.monotonic() < patience:
        with contextlib.suppress(OSError), socket.create_connection(address, timeout=1):
            return
        time.sleep(0.2)
    raise TimeoutError(f"nobody listens at {address}")


def pids_with(variable: str) -> list[int]:
    """Processes whose environment has this variable with this value."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and variable.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[str]:
    """A cluster of one node with two workers, a process group that is ended by its id.

    Two further nodes on the address of the head raced for its ports: one of them did not always join.
    """
    pytest.importorskip("ray")
    host, port = "127.0.0.1", 26379
    # Short, since sockets are in it; Ray would leave the address of this cluster in its usual place.
    place = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    environment = {**os.environ, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1", "RAY_TMPDIR": place}
    # A token of another cluster, if this user has one, is not this one's; it listens on loopback only.
    environment["RAY_AUTH_MODE"] = "disabled"
    groups: list[subprocess.Popen[bytes]] = []

    def start(*more: str) -> None:
        line = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats"]
        line += ["--object-store-memory=100000000", f"--node-ip-address={host}", *more]
        quiet = subprocess.DEVNULL
        groups.append(subprocess.Popen(line, env=environment, stdout=quiet, stderr=quiet, start_new_session=True))

    try:
        start("--head", f"--port={port}", "--num-cpus=2", "--include-dashboard=false")
        until_up((host, port))
        yield f"{host}:{port}"
    finally:
        # Ray's processes have sessions of their own, but all inherit the environment.
        for pid in pids_with(f"RAY_TMPDIR={place}"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for group in groups:
            group.wait()
        shutil.rmtree(place, ignore_errors=True)


def test_ray_has_the_results_of_this_process_and_survives_a_killed_worker(
    ray_cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray: Any = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    ray.init(address=ray_cluster, log_to_driver=False)
    try:
        patience = time.monotonic() + 60
        while ray.cluster_resources().get("CPU", 0) < 2:
            assert time.monotonic() < patience, "the workers did not come"
            time.sleep(0.2)
        assert compare("ray").equals(compare("local"))
        killed: list[int] = []

        def kill_one(*_: object) -> None:
            if not killed:
                workers = subprocess.run(["pgrep", "-f", "ray::each"], capture_output=True, text=True, check=False)
                killed.extend(int(pid) for pid in workers.stdout.split()[:1])
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)

        runs = anabranch.compare(
            "two_paths", policies=POLICIES, seeds=60, set=SHORT, backend="ray", out=str(tmp_path), progress=kill_one
        )
        assert killed
        assert pa.table(runs).equals(compare("local", seeds=60))
    finally:
        ray.shutdown()


def test_a_sweep_elsewhere_has_the_same_scores() -> None:
    here = pa.table(anabranch.sweep(["plain"], points=2, seed=7))
    assert pa.table(anabranch.sweep(["plain"], points=2, seed=7, backend="joblib", jobs=2)).equals(here)
