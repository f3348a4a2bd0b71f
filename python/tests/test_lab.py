"""Runs, comparisons, sweeps and series as tables; policies in Python; what is wrong is told."""

import copy
import enum
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import anabranch
from anabranch import Chunk, ConnectionView, SubflowView, _native

SHORT = {"duration": "3 s"}


def hashes(runs: anabranch.Runs) -> list[str]:
    return list(runs.to_pandas()["trace_hash"])


def test_a_comparison_has_a_row_for_each_run() -> None:
    runs = anabranch.compare("two_paths", policies=["plain", "anabranch"], seeds=range(3, 6), set=SHORT)
    frame = runs.to_pandas()
    assert sorted(frame["seed"]) == [3, 3, 4, 4, 5, 5]
    assert set(frame["policy"]) == {"plain", "anabranch"}
    assert (frame["throughput"] > 5).all()
    assert frame["set"].unique().tolist() == ['duration="3 s"']
    assert "[[paths]]" in frame["scenario_text"][0]


def test_pandas_polars_and_pyarrow_read_the_same_table() -> None:
    runs = anabranch.run("two_paths", seeds=2, set=SHORT)
    table = pa.table(runs)
    assert table.num_rows == len(runs) == runs.to_polars().height == len(runs.to_pandas())
    assert table.column("throughput").to_pylist() == runs.to_polars()["throughput"].to_list()


def test_a_copy_of_a_table_is_the_same() -> None:
    runs = anabranch.compare("two_paths", policies=["plain", "tcp"], seeds=2, set=SHORT)
    for table in (runs, anabranch.series("two_paths", policies="plain", set=SHORT)):
        for copied in (pickle.loads(pickle.dumps(table)), copy.deepcopy(table)):
            assert type(copied) is type(table)
            # To the last bit: what is unknown is null in both.
            assert pa.table(copied).equals(pa.table(table))
            assert pa.table(copied).schema == pa.table(table).schema
    runs.known = 3
    assert pickle.loads(pickle.dumps(runs)).known == 3


def test_the_command_and_python_see_the_same_trace(program: str, tmp_path: Path) -> None:
    runs = anabranch.compare("two_paths", policies="plain", seeds=2, set=SHORT)
    line = [program, "compare", "two_paths", "--policy", "plain", "--seeds", "2", "--set", 'duration="3 s"']
    subprocess.run([*line, "--out", str(tmp_path)], check=True, capture_output=True)
    entries = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert sorted(hashes(runs)) == sorted(entry["trace_hash"] for entry in entries if "trace_hash" in entry)


def test_a_scenario_is_a_name_a_file_a_text_or_a_dict(tmp_path: Path) -> None:
    text = anabranch.scenario_text("two_paths")
    file = tmp_path / "mine.toml"
    file.write_text(text)
    paths = [
        {"name": "a", "links": [{"rate": "10 Mbit/s", "delay": "10 ms", "queue": "50 packets"}]},
        {"name": "b", "links": [{"rate": "5 Mbit/s", "delay": "40 ms", "queue": "50 packets"}]},
    ]
    made = anabranch.run({"duration": "3 s", "paths": paths}, policy="plain", seeds=1)
    assert len(made) == 1
    runs = [anabranch.run(source, policy="plain", seeds=1, set=SHORT) for source in ("two_paths", file, text)]
    assert len({hash for one in runs for hash in hashes(one)}) == 1


def test_a_grid_runs_all_combinations() -> None:
    grid = {"duration": ["3 s", "4 s"], "paths.slow.links.0.loss": ["0 %", "1 %"]}
    frame = anabranch.run("two_paths", policy="plain", seeds=1, grid=grid).to_pandas()
    assert len(frame) == 4
    assert set(frame["duration"]) == {"3 s", "4 s"}


def test_values_and_seeds_of_numpy_are_taken_as_those_of_python() -> None:
    losses = np.linspace(0, 0.02, 3)
    runs = anabranch.run(
        "two_paths", policy="plain", seeds=np.arange(1, 3), set=SHORT, grid={"paths.slow.links.0.loss": losses}
    )
    own = anabranch.run(
        "two_paths", policy="plain", seeds=2, set=SHORT, grid={"paths.slow.links.0.loss": losses.tolist()}
    )
    assert len(runs) == 6
    assert sorted(hashes(runs)) == sorted(hashes(own))
    for loss in (np.float32(0.5), np.float64(0.5)):
        one = anabranch.run(
            "two_paths", policy="plain", seeds=np.int64(1), set=SHORT | {"paths.slow.links.0.loss": loss}
        )
        assert one.to_pandas()["set"][0].endswith("loss=0.5")


def test_values_are_those_of_any_collection_and_of_enumerations() -> None:
    class Share(float, enum.Enum):
        FEW = 0.01

    class Windows(enum.IntEnum):
        TEN = 10

    set_to = {
        "paths.slow.links.0.loss": Share.FEW,
        "connection.priority": Windows.TEN - 8,
        "paths.slow.links.0.down": (f"{at}..{at + 1} s" for at in (0, 2)),
    }
    changed = anabranch.run("two_paths", policy="plain", seeds=1, set=SHORT | set_to).to_pandas()["set"][0]
    assert changed.split("\n")[-3:] == [
        "paths.slow.links.0.loss=0.01",
        "connection.priority=2",
        'paths.slow.links.0.down=["0..1 s", "2..3 s"]',
    ]
    path = {"links": ({"rate": rate} for rate in ("9 Mbit/s", "5 Mbit/s"))}
    assert len(anabranch.run({"paths": [path], "duration": "3 s"}, seeds=1)) == 1


def test_rows_in_a_directory_are_not_computed_again(tmp_path: Path) -> None:
    def run(seeds: int) -> anabranch.Runs:
        return anabranch.run("two_paths", policy="plain", seeds=seeds, set=SHORT, out=str(tmp_path))

    assert run(2).known == 0
    again = run(3)
    assert (len(again), again.known) == (3, 2)
    assert (tmp_path / "runs.parquet").exists()
    # Rows of other policies, values and grids in the same directory are not among those that were asked for.
    others = anabranch.compare("two_paths", policies=["anabranch", "tcp"], seeds=2, set=SHORT, out=str(tmp_path))
    assert set(others.to_pandas()["policy"]) == {"anabranch", "tcp"}
    grid = anabranch.run("two_paths", policy="plain", seeds=2, set=SHORT, grid={"sample": ["1 s"]}, out=str(tmp_path))
    assert (len(grid), grid.known) == (2, 0)
    assert sorted(hashes(run(3))) == sorted(hashes(again))
    with pytest.raises(ValueError, match="without 'out'"):
        anabranch.run("two_paths", seeds=1, set=SHORT, scheduler=LowestRtt, out=str(tmp_path))


class LowestRtt:
    """The built-in scheduler of this name, in Python."""

    def schedule(self, connection: ConnectionView, chunk: Chunk, subflows: Sequence[SubflowView]) -> int | None:
        del connection
        there = [one for one in subflows if one.usable and one.has_room and one.id != chunk.last_sent_on]
        return min(there, key=lambda one: one.smoothed_rtt).id if there else None


def test_a_scheduler_in_python_is_the_same_as_in_rust() -> None:
    mine = anabranch.run("two_paths", policy="plain", seeds=2, set=SHORT, scheduler=LowestRtt)
    assert hashes(mine) == hashes(anabranch.run("two_paths", policy="plain", seeds=2, set=SHORT))
    assert mine.to_pandas()["policies"][0].endswith("scheduler=LowestRtt")


class HalfOnLoss:
    """A window of its own."""

    def __init__(self) -> None:
        self.windows: dict[int, float] = {}
        self.mss: dict[int, float] = {}

    def on_subflow_added(self, subflow: int, event: Mapping[str, float]) -> None:
        self.windows[subflow], self.mss[subflow] = event["initial_window"], event["mss"]

    def on_subflow_removed(self, subflow: int, event: Mapping[str, float]) -> None:
        del event, self.windows[subflow]

    def on_ack(self, subflow: int, event: Mapping[str, float]) -> None:
        if event["cwnd_limited"] and not event["in_recovery"]:
            self.windows[subflow] += self.mss[subflow] * event["acked"] / self.windows[subflow]

    def on_congestion(self, subflow: int, event: Mapping[str, float]) -> None:
        del event
        self.windows[subflow] = max(self.windows[subflow] / 2, 2 * self.mss[subflow])

    def window(self, subflow: int) -> float:
        return self.windows.get(subflow, 1400.0)

    def ssthresh(self, subflow: int) -> float:
        return self.windows.get(subflow, 1400.0)


def test_a_congestion_control_in_python_carries_data() -> None:
    frame = anabranch.run("two_paths", policy="plain", seeds=1, set={"duration": "6 s"}, congestion=HalfOnLoss)
    assert 3 < frame.to_pandas()["throughput"][0] < 15.9


@pytest.mark.parametrize("name", ["lowest_rtt", "blest", "ecf", "round_robin", "anabranch"])
def test_rust_schedulers_decide_on_views(name: str) -> None:
    scheduler = anabranch.RustScheduler(name)
    subflows = [SubflowView(0, smoothed_rtt=0.02), SubflowView(1, smoothed_rtt=0.2)]
    assert scheduler.schedule(ConnectionView(), Chunk(), subflows) in (0, 1)
    full = [SubflowView(0, in_flight=14_000), SubflowView(1, established=False)]
    assert scheduler.schedule(ConnectionView(), Chunk(), full) != 1


def test_lowest_rtt_is_the_same_in_both_languages_on_any_view() -> None:
    rust, python = anabranch.RustScheduler("lowest_rtt"), LowestRtt()
    for number in range(200):
        subflows = [
            SubflowView(at, smoothed_rtt=(1 + number * (at + 3) % 17) / 100, in_flight=1400 * (number * (at + 1) % 11))
            for at in range(3)
        ]
        asked = (ConnectionView(), Chunk(), subflows)
        assert rust.schedule(*asked) == python.schedule(*asked)


class Raises:
    def schedule(self, *_: object) -> int:
        raise RuntimeError("mine")


class Nonsense:
    def schedule(self, *_: object) -> object:
        return "the first"


class Past:
    def schedule(self, *_: object) -> float:
        return 0.0


class Elsewhere:
    def schedule(self, *_: object) -> int:
        return 99


def test_what_a_policy_raises_or_does_wrong_is_told() -> None:
    def run(scheduler: object) -> None:
        anabranch.run("two_paths", seeds=1, set=SHORT, scheduler=scheduler)  # type: ignore[arg-type]

    with pytest.raises(RuntimeError, match="mine"):
        run(Raises)
    with pytest.raises(ValueError, match=r"returned 'the first'.*id of a subflow"):
        run(Nonsense)
    with pytest.raises(ValueError, match="returned 99, which is no usable subflow"):
        run(Elsewhere)
    with pytest.raises(ValueError, match=r"asked to wait until 0 s, and it is 0\.\d+ s: the time is a later one"):
        run(Past)
    # Whole numbers are ids: none of these is a time, the last of which would never come.
    for wrong in (-1, 2**32, 2**70):
        with pytest.raises(ValueError, match=f"returned {wrong}, which is no usable subflow: those are 0"):
            run(type("Wrong", (), {"schedule": lambda *_, wrong=wrong: wrong}))
    for past, written in ((1e-300, "1e-300"), (-1e300, "-1e300"), (1e-4, "0.0001")):
        with pytest.raises(ValueError, match=f"asked to wait until {written} s, and"):
            run(type("Past", (), {"schedule": lambda *_, past=past: past}))


def test_what_is_wrong_with_a_scenario_is_told_with_its_place() -> None:
    with pytest.raises(ValueError, match="duration"):
        anabranch.run("two_paths", set={"duration": "soon"})
    # Arguments have their names here, and not those of the command's options.
    with pytest.raises(ValueError, match=r"^set durations=1"):
        anabranch.run("two_paths", set={"durations": 1})
    with pytest.raises(ValueError, match=r"^policy no_policy"):
        anabranch.run("two_paths", policy="no_policy")
    with pytest.raises(FileNotFoundError, match="two_paths"):
        anabranch.run("no_such_scenario")
    with pytest.raises(ValueError, match="no_policy"):
        anabranch.run("two_paths", policy="no_policy")
    with pytest.raises(ValueError, match="at least one seed"):
        anabranch.run("two_paths", seeds=0)
    with pytest.raises(ValueError, match="backend"):
        anabranch.compare("two_paths", seeds=1, set=SHORT, backend="nowhere")
    with pytest.raises(FileNotFoundError, match="did you mean 'two_paths'"):
        anabranch.run("two_path")
    with pytest.raises(ValueError, match="float values are not JSON"):
        anabranch.run({"duration": float("nan")})
    for none in ([], [None]):
        with pytest.raises(ValueError, match="policies are names"):
            anabranch.compare("two_paths", policies=none)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="policies are names"):
        anabranch.sweep([])
    for points, first in ((-1, 0), (0, 0), (1, 10**12), (1, 2**16), (1, -1)):
        with pytest.raises(ValueError, match="a design has points 0 to 65535: there are no"):
            anabranch.sweep("plain", points=points, first=first)
    for seed in (-1, 2**32):
        with pytest.raises(ValueError, match="the seed of a design is a whole number from 0"):
            anabranch.sweep("plain", points=1, seed=seed)
    for jobs in (0, 10**30):
        with pytest.raises(ValueError, match="at least one thread"):
            anabranch.run("two_paths", jobs=jobs)
    with pytest.raises(ValueError, match=r"'paths.1.name' is None, and TOML has no such value"):
        anabranch.run({"paths": [{"name": "a"}, {"name": None}]})
    with pytest.raises(ValueError, match='the value "1 %" is named twice'):
        anabranch.run("two_paths", grid={"paths.slow.links.0.loss": ["1 %", "2 %", "1 %"]})
    with pytest.raises(TypeError, match="'duration' has '3 s'"):
        anabranch.run("two_paths", grid={"duration": "3 s"})
    for seeds in ("1..3", 2.0, [1.5]):
        with pytest.raises(TypeError):
            anabranch.run("two_paths", seeds=seeds)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one seed"):
        anabranch.run("two_paths", seeds=[2**63])


def test_a_series_has_times_paths_and_units() -> None:
    table = pa.table(anabranch.series("two_paths", policies="plain", set=SHORT))
    assert set(table.column_names) == {"policy", "seed", "time", "path", "metric", "unit", "value"}
    assert "throughput" in table.column("metric").to_pylist()
    assert table.num_rows > 50


def test_a_capture_has_the_packets_of_a_run(tmp_path: Path) -> None:
    out = tmp_path / "captures"
    (plain, cubic) = anabranch.capture("two_paths", out, policies=["plain", "cubic"], set=SHORT)
    assert plain == out / "two_paths-plain.pcapng"
    # The section header of pcapng, and more than half of 3 s of 15 Mbit/s.
    assert plain.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    assert plain.stat().st_size > 2_500_000
    assert cubic.stat().st_size > 2_500_000
    before = plain.read_bytes()
    anabranch.capture("two_paths", out, policies="plain", set=SHORT)
    assert plain.read_bytes() == before
    cubic.unlink()
    cubic.mkdir()
    with pytest.raises(ValueError, match="cannot write the capture"):
        anabranch.capture("two_paths", out, policies="cubic", set=SHORT)


def test_a_sweep_has_a_row_for_each_point_and_policy_and_is_kept(tmp_path: Path) -> None:
    table = pa.table(anabranch.sweep(["plain", "anabranch"], points=3, seed=5, out=str(tmp_path)))
    assert table.num_rows == 6
    before = (tmp_path / "sweep.jsonl").read_text()
    again = pa.table(anabranch.sweep(["plain", "anabranch"], points=3, seed=5, out=str(tmp_path)))
    assert again.equals(table)
    assert (tmp_path / "sweep.jsonl").read_text() == before


def test_a_sweep_takes_combinations_that_have_no_name_of_their_own() -> None:
    table = pa.table(anabranch.sweep(["anabranch,congestion=bounded_cubic", "plain"], points=2, seed=5))
    assert table.num_rows == 4
    assert len(set(table.column("policy").to_pylist())) == 2


def test_interruption_ends_the_runs_and_keeps_what_was_done(tmp_path: Path) -> None:
    code = f"import anabranch; anabranch.run('two_paths', seeds=100000, out={str(tmp_path)!r}, jobs=1)"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    lines = tmp_path / "runs.jsonl"
    patience = time.monotonic() + 60
    while time.monotonic() < patience and not (lines.exists() and lines.stat().st_size > 20_000):
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    assert len(lines.read_text().splitlines()) > 3
    assert (tmp_path / "runs.parquet").exists()


@pytest.mark.parametrize("backend", ["local", "joblib"])
def test_what_ended_runs_does_not_hold_their_files(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(*_: object) -> None:
        raise LookupError("ended")

    def runs(**options: Any) -> anabranch.Runs:
        seeds = [1, 3, 5]
        return anabranch.run("two_paths", policy="plain", seeds=seeds, set=SHORT, jobs=2, out=str(tmp_path), **options)

    with pytest.raises(LookupError, match="ended") as held:
        runs(backend=backend, progress=ends)
    assert len(runs()) == 3
    monkeypatch.setattr(_native, "sweep_run", ends)
    with pytest.raises(LookupError, match="ended") as held_too:
        anabranch.sweep(["plain"], points=1, out=str(tmp_path))
    monkeypatch.undo()
    assert len(anabranch.sweep(["plain"], points=1, out=str(tmp_path))) == 1
    # Until here, as long as `sys.last_value` or a debugger would have them.
    assert held.tb is not None
    assert held_too.tb is not None


def test_what_a_sweep_has_done_is_kept_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, calls = _native.sweep_run, iter(range(100))

    def interrupted(unit: str) -> str:
        if next(calls) == 3:
            raise KeyboardInterrupt
        return run(unit)

    monkeypatch.setattr(_native, "sweep_run", interrupted)
    assert len(_native.sweep_tasks(["plain", "anabranch"], 1, 0, 20, False)) > 60
    with pytest.raises(KeyboardInterrupt):
        anabranch.sweep(["plain", "anabranch"], points=20, jobs=1, out=str(tmp_path))
    assert len((tmp_path / "sweep.jsonl").read_text().splitlines()) == 3


def test_seeds_that_do_not_follow_each_other_run_like_others(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    seeds = [9, 1, 2, 5]
    runs = anabranch.run(
        "two_paths", policy="plain", seeds=seeds, set=SHORT, progress=lambda done, units, _: told.append((done, units))
    )
    assert runs.to_pandas()["seed"].tolist() == [1, 2, 5, 9]
    assert hashes(runs) == [
        hashes(anabranch.run("two_paths", policy="plain", seeds=[one], set=SHORT))[0] for one in sorted(seeds)
    ]
    # As one: it is not done until all are.
    assert {units for _, units in told} == {4}
    assert [done for done, _ in told] == [1, 2, 3, 4]
    anabranch.run("two_paths", policy="plain", seeds=[2, 9], set=SHORT, out=str(tmp_path))
    kept = anabranch.run("two_paths", policy="plain", seeds=seeds, set=SHORT, out=str(tmp_path))
    assert (len(kept), kept.known) == (4, 2)
    assert hashes(kept) == hashes(runs)


@pytest.mark.parametrize("backend", ["local", "joblib"])
def test_what_ends_runs_has_those_that_were_done(backend: str) -> None:
    def ends(done: int, *_: object) -> None:
        if done:
            raise RuntimeError("that is enough")

    with pytest.raises(RuntimeError) as raised:
        anabranch.run("two_paths", policy="plain", seeds=200, set=SHORT, backend=backend, jobs=1, progress=ends)
    runs = raised.value.runs  # type: ignore[attr-defined]
    assert 0 < len(runs) < 200
    assert hashes(runs)[0] == hashes(anabranch.run("two_paths", policy="plain", seeds=1, set=SHORT))[0]


def test_a_directory_that_cannot_be_is_one_sentence() -> None:
    for backend in ("local", "joblib"):
        with pytest.raises(NotADirectoryError, match="Not a directory: '/dev/null/x'"):
            anabranch.run("two_paths", seeds=1, out="/dev/null/x", backend=backend)


RUN = "anabranch.run('two_paths', policy='plain', seeds=100, set={'duration': '3 s'}, jobs=2, out='disk', backend=%r)"
SWEEP = "anabranch.sweep(['plain', 'anabranch'], points=60, jobs=2, out='disk')"
SWEPT = len(_native.sweep_tasks(["plain", "anabranch"], 1, 0, 60, False))


@pytest.mark.parametrize(
    ("call", "file", "count"),
    [(RUN % "local", "runs.jsonl", 100), (RUN % "joblib", "runs.jsonl", 100), (SWEEP, "sweep.jsonl", SWEPT)],
)
def test_a_full_disk_is_one_sentence_and_what_was_done_is_kept(
    call: str, file: str, count: int, tmp_path: Path
) -> None:
    """The disk is a small one in memory, in a mount namespace of its own, with which it ends."""
    code = f"""
import subprocess
import anabranch
try:
    {call}
except ValueError as error:
    print(error)
subprocess.run(["cp", "-r", "disk", "before"], check=True)
subprocess.run(["mount", "-o", "remount,size=16m", "disk"], check=True)
{call}
subprocess.run(["cp", "-r", "disk", "after"], check=True)
"""
    (tmp_path / "disk").mkdir()
    mount = f"mount -t tmpfs -o size=40k tmpfs disk && exec {sys.executable} -c '{code.replace(chr(39), chr(34))}'"
    line = ["unshare", "--mount", "--propagation=private", "sh", "-c", mount]
    ended = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    if "unshare failed" in ended.stderr or "permission denied" in ended.stderr:
        pytest.skip("a disk of the test's own needs the right to mount")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == f"cannot write the results disk/{file}: No space left on device (os error 28)\n"

    def keys(place: str) -> list[str]:
        lines = (tmp_path / place / file).read_text().splitlines()
        entries = [json.loads(line) for line in lines]
        return [entry["key"] for entry in entries if "key" in entry]

    before, after = keys("before"), keys("after")
    assert 0 < len(before) < len(after) == count
    assert after[: len(before)] == before
    assert len(set(after)) == count
    assert [one.name for one in (tmp_path / "before").iterdir()] == [file]


def test_progress_is_told_and_may_end_it() -> None:
    seen: list[tuple[int, int, str]] = []
    anabranch.run("two_paths", seeds=3, set=SHORT, progress=lambda *told: seen.append(told))
    done, units, name = seen[-1]
    assert 0 < done <= units
    assert "two_paths" in name

    def stop(*_: object) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        anabranch.run("two_paths", seeds=1000, progress=stop)


def test_import_is_quick() -> None:
    code = "import time; start = time.process_time(); import anabranch; print(time.process_time() - start)"
    times = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(3)]
    assert min(times) < 0.3
