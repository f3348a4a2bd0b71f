"""Scenarios and options of users, as the compiled part takes them."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, SupportsIndex, TypeAlias

from anabranch import _native

#: A built-in scenario's name, a file, a text in TOML (with a line break), or a dict of what the file would say.
Scenario: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"
#: How many seeds, from 1 on, or which: a range of consecutive seeds or one list of them.
Seeds: TypeAlias = "SupportsIndex | Iterable[SupportsIndex] | None"

Request: TypeAlias = dict[str, Any]

#: What a dict need not say; the same as in the built-in scenario two_paths.
DEFAULTS: dict[str, Any] = {
    "name": "scenario",
    "title": "A scenario",
    "description": "Made in Python.",
    "duration": "30 s",
    "warm_up": "2 s",
    "seeds": 5,
    "sample": "500 ms",
    "transfer": {"kind": "endless"},
    "connection": {"receive_buffer": {"initial": "128 KiB", "max": "4 MiB"}},
}


def text_of(scenario: Scenario) -> tuple[str, str, str]:
    """Name, text and directory of a scenario."""
    if isinstance(scenario, Mapping):
        return "scenario", _native.toml_of(json.dumps({**DEFAULTS, **scenario}, default=plain, allow_nan=False)), ""
    if isinstance(scenario, str):
        if "\n" in scenario:
            return "scenario", scenario, ""
        known = _native.scenario_text(scenario)
        if known is not None and not Path(scenario).exists():
            return f"scenarios/{scenario}.toml", known, ""
    path = Path(scenario)
    if not path.exists():
        names = _native.scenarios()
        near = get_close_matches(str(path), names, 1)
        hint = f"; did you mean {near[0]!r}?" if near else f": {', '.join(names)}"
        raise FileNotFoundError(f"{path}: there is no such file, and no built-in scenario of this name{hint}")
    return str(path), path.read_text(encoding="utf-8"), str(path.parent)


def plain(value: object) -> object:
    """What NumPy and pandas have in place of numbers and lists, other collections, and paths, as Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return list(value)
    raise TypeError(f"{value!r} is no value of a scenario: those are numbers, texts, booleans, lists and dicts")


def value_of(value: object) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    # Subclasses, as of NumPy and of enumerations, have a repr of their own.
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, str):
        return value if value[:1] in ('"', "'", "[", "{") else json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(key)} = {value_of(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(value_of(item) for item in value) + "]"
    return value_of(plain(value))


def values_of(key: str, values: Iterable[object]) -> str:
    """The values of a key of a grid."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"a grid has a list of values for each key, and {key!r} has {values!r}")
    return ",".join(value_of(value) for value in values)


def seeds_of(seeds: Seeds) -> list[tuple[int, int]]:
    """Runs of consecutive seeds: the first, and how many."""
    if seeds is None:
        return []
    if isinstance(seeds, range) and seeds.step == 1:
        return _checked([(seeds.start, len(seeds))])
    if isinstance(seeds, str):
        raise TypeError(f"seeds are a number, a range or a list, and not {seeds!r}")
    if not isinstance(seeds, Iterable):
        return _checked([(1, operator.index(seeds))])
    wanted = sorted({operator.index(seed) for seed in seeds})
    runs: list[tuple[int, int]] = []
    for seed in wanted:
        if runs and runs[-1][0] + runs[-1][1] == seed:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((seed, 1))
    return _checked(runs)


def _checked(runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Runs of seeds that the compiled part can count."""
    if not runs or any(first < 0 or count < 1 or first + count > 2**63 or count >= 2**32 for first, count in runs):
        raise ValueError("there is at least one seed and less than 2**32, each a whole number from 0 to 2**63 - 1")
    return runs


def check_jobs(jobs: int | None) -> None:
    """Raises ValueError if there are less threads than one, or more than any machine has."""
    if jobs is not None and not 1 <= jobs < 2**16:
        raise ValueError(f"there is at least one thread and less than 65536, and not {jobs}")


def names_of(policies: str | Sequence[str] | None) -> list[str]:
    """The policies that are named; none if those of the scenario are meant."""
    if policies is None:
        return []
    names = [policies] if isinstance(policies, str) else list(policies)
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"policies are names, at least one, and not {policies!r}")
    return names


def requests(
    scenario: Scenario,
    *,
    policies: str | Sequence[str] | None = None,
    baselines: str | Sequence[str] | None = None,
    seeds: Seeds = None,
    set: Mapping[str, object] | None = None,
    grid: Mapping[str, Iterable[object]] | None = None,
    first_policy_only: bool = False,
    quick: bool = False,
) -> list[Request]:
    """A request for each run of consecutive seeds."""
    name, text, directory = text_of(scenario)
    one = names_of(policies)
    base: Request = {
        "file": name,
        "text": text,
        "directory": directory,
        "set": [f"{key}={value_of(value)}" for key, value in (set or {}).items()],
        "grid": [f"{key}={values_of(key, values)}" for key, values in (grid or {}).items()],
        "policies": one,
        "baselines": [baselines] if isinstance(baselines, str) else list(baselines or []),
        "first_policy_only": first_policy_only,
        "quick": quick,
    }
    return [base | {"seeds": part} for part in seeds_of(seeds)] or [base]
