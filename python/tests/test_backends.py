"""Runs on other processes: results equal the local ones to the last bit, whatever is killed."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import anabranch
from anabranch import _backends

SHORT = {"duration": "3 s"}
HOST = "127.0.0.1"
POLICIES = ["plain", "anabranch", "tcp"]


def compare(backend: str | object, out: Path | None = None, seeds: int = 4, jobs: int | None = 2) -> pa.Table:
    place = None if out is None else str(out)
    runs = anabranch.compare(
        "two_paths", policies=POLICIES, seeds=seeds, set=SHORT, backend=backend, jobs=jobs, out=place
    )
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


def workers_of_joblib() -> list[int]:
    """Processes that joblib has started for this one."""
    pattern = ["pgrep", "-P", str(os.getpid()), "-f", "popen_loky_posix"]
    found = subprocess.run(pattern, capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def test_a_process_of_joblib_that_is_killed_loses_nothing() -> None:
    killed: list[int] = []

    def kill_one(*_: object) -> None:
        if not killed:
            killed.append(workers_of_joblib()[0])
            os.kill(killed[0], signal.SIGKILL)

    runs = anabranch.compare(
        "two_paths", policies=POLICIES, seeds=30, set=SHORT, backend="joblib", jobs=2, progress=kill_one
    )
    assert killed
    assert pa.table(runs).equals(compare("local", seeds=30))


def test_a_batch_that_kills_each_process_of_joblib_ends_the_runs(tmp_path: Path) -> None:
    def dies(_: str) -> list[str]:
        tempfile.mkstemp(dir=tmp_path)
        os.kill(os.getpid(), signal.SIGKILL)
        return []

    with pytest.raises(BrokenExecutor):
        list(_backends.joblib([["a"]], dies, 2))
    assert len(list(tmp_path.iterdir())) == 1 + _backends.RETRIES


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


def test_the_work_is_divided_by_the_workers_of_the_cluster() -> None:
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=25, processes=False, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        submit, begun, ended, most = client.submit, [0], [0], [0]

        def counted(*arguments: Any, **options: Any) -> Any:
            begun[0] += 1
            most[0] = max(most[0], begun[0] - ended[0])
            return submit(*arguments, **options)

        def end(*_: object) -> None:
            ended[0] += 1

        client.submit = counted
        assert compare(client, jobs=None, seeds=100).equals(compare("local", seeds=100))
        # Eight for each of 25 workers.
        assert begun == [200]
        begun[0] = most[0] = 0
        anabranch.run("two_paths", policy="plain", seeds=100, set=SHORT, backend=client, jobs=3, progress=end)
        assert (begun, ended, most) == ([24], [24], [3])


def test_without_a_client_of_dask_it_says_what_is_missing() -> None:
    pytest.importorskip("distributed")
    with pytest.raises(ValueError, match=r"takes the current client, and there is none: make a distributed\.Client"):
        compare("dask")


@pytest.mark.parametrize("address", [None, "ray://far.example:10001"])
def test_jobs_start_no_ray_where_there_is_one(address: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []
    up = False

    def init(**options: object) -> None:
        asked.append(options)
        if options.get("address") == "auto" and not up:
            raise ConnectionError("there is none")

    fake = SimpleNamespace(is_initialized=lambda: False, init=init, cluster_resources=lambda: {"CPU": 64.0})
    monkeypatch.setitem(sys.modules, "ray", fake)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if address is not None:
        monkeypatch.setenv("RAY_ADDRESS", address)
    # A cluster of which only a part is wanted.
    assert _backends.workers_of("ray", 2) == 2
    up = True
    assert _backends.workers_of("ray", None) == 64
    quiet = {"log_to_driver": False}
    own = [{"address": "auto", **quiet}, {"address": "local", "num_cpus": 2, **quiet}, quiet]
    assert asked == (own if address is None else [quiet, quiet])
    _backends.workers_of("ray", 2)
    assert asked[-1] == ({"address": "auto", **quiet} if address is None else quiet)


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


class Processes:
    """Processes of a cluster, which are found by a variable of their environment and ended by their ids."""

    def __init__(self, name: str) -> None:
        # Short, since Ray has sockets in it; it would leave the address of this cluster in its usual place.
        self.place = tempfile.mkdtemp(prefix=f"{name}-", dir="/tmp")
        self.environment = {
            **os.environ,
            "RAY_TMPDIR": self.place,
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1",
            # A token of another cluster, if this user has one, is not this one's; it listens on loopback only.
            "RAY_AUTH_MODE": "disabled",
        }
        self.groups: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str) -> None:
        line = [sys.executable, "-m", *arguments]
        quiet = subprocess.DEVNULL
        self.groups.append(
            subprocess.Popen(line, env=self.environment, stdout=quiet, stderr=quiet, start_new_session=True)
        )

    def kill(self) -> None:
        # They have sessions of their own, but all inherit the environment.
        while pids := pids_with(f"RAY_TMPDIR={self.place}"):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for group in self.groups:
                group.wait()
            self.groups = []

    def start_ray(self, port: int) -> None:
        """One node with two workers; two further nodes on the address of the head raced for its ports."""
        self.start(
            *("ray.scripts.scripts", "start", "--head", "--block", "--disable-usage-stats", "--num-cpus=2"),
            *("--object-store-memory=100000000", f"--node-ip-address={HOST}", f"--port={port}"),
            "--include-dashboard=false",
        )
        until_up((HOST, port))

    def start_dask(self, port: int) -> None:
        """A scheduler and two workers."""
        address = f"tcp://{HOST}:{port}"
        self.start("distributed.cli.dask_scheduler", f"--host={HOST}", f"--port={port}", "--no-dashboard")
        until_up((HOST, port))
        for _ in range(2):
            self.start("distributed.cli.dask_worker", address, "--nthreads=1", "--no-dashboard", f"--host={HOST}")


@pytest.fixture
def processes() -> Iterator[Processes]:
    cluster = Processes("cluster")
    try:
        yield cluster
    finally:
        cluster.kill()
        shutil.rmtree(cluster.place, ignore_errors=True)


@pytest.fixture
def ray_cluster(processes: Processes) -> str:
    pytest.importorskip("ray")
    processes.start_ray(26379)
    return f"{HOST}:26379"


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


#: A run of all policies on a cluster, as its own program: what happens to it when the cluster is lost is its own.
DRIVER = """
import sys
import anabranch
backend, address, out = sys.argv[1:]
if backend == "ray":
    import ray
    ray.init(address=address, log_to_driver=False)
else:
    import distributed
    backend = distributed.Client(address)
anabranch.compare("two_paths", policies=["plain", "anabranch", "tcp"], seeds=100, set={"duration": "3 s"},
                  backend=backend, jobs=2, out=out)
"""


@pytest.mark.parametrize("backend", ["ray", "dask"])
def test_a_head_that_is_killed_and_started_again_loses_nothing(
    backend: str, processes: Processes, tmp_path: Path
) -> None:
    pytest.importorskip("ray" if backend == "ray" else "distributed")
    port = {"ray": 26380, "dask": 26381}[backend]
    address = f"{HOST}:{port}" if backend == "ray" else f"tcp://{HOST}:{port}"
    start = processes.start_ray if backend == "ray" else processes.start_dask
    lines = tmp_path / "runs.jsonl"
    # Ray's driver gives up a head that does not answer after this time.
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_gcs_rpc_server_reconnect_timeout_s": "3"}

    def driver() -> subprocess.Popen[str]:
        line = [sys.executable, "-c", DRIVER, backend, address, str(tmp_path)]
        return subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True)

    start(port)
    first = driver()
    patience = time.monotonic() + 120
    while time.monotonic() < patience and not (lines.exists() and lines.read_text().count('"trace_hash"') > 20):
        time.sleep(0.02)
    processes.kill()
    errors = first.communicate(timeout=120)[1]
    # Ray ends the program itself.
    sentence = "Failed to connect to GCS" if backend == "ray" else "ConnectionError: the scheduler of Dask is lost"
    assert sentence in errors, errors
    before = lines.read_text().count('"trace_hash"')
    assert first.returncode != 0
    assert 20 < before < 400
    start(port)
    again = driver()
    again.communicate(timeout=240)
    assert again.returncode == 0
    keys = [json.loads(line)["key"] for line in lines.read_text().splitlines() if '"trace_hash"' in line]
    assert len(keys) == len(set(keys)) == 400
    local = anabranch.compare("two_paths", policies=POLICIES, seeds=100, set=SHORT, out=str(tmp_path))
    assert local.known == len(local) == 400
    assert pa.table(local).equals(compare("local", seeds=100))


def test_a_sweep_elsewhere_has_the_same_scores() -> None:
    here = pa.table(anabranch.sweep(["plain"], points=2, seed=7))
    assert pa.table(anabranch.sweep(["plain"], points=2, seed=7, backend="joblib", jobs=2)).equals(here)
