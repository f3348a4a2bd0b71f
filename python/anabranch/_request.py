"""Scenarios and options of users, as the compiled part takes them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from anabranch import _native

#: A built-in scenario's name, a file, a text in TOML (with a line break), or a dict of what the file would say.
Scenario: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"
#: How many seeds, from 1 on, or which: a range of consecutive seeds or one list of them.
Seeds: TypeAlias = "int | range | Sequence[int] | None"

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
        return "scenario", _native.toml_of(json.dumps({**DEFAULTS, **scenario})), ""
    if isinstance(scenario, str):
        if "\n" in scenario:
            return "scenario", scenario, ""
        known = _native.scenario_text(scenario)
        if known is not None and not Path(scenario).exists():
            return f"scenarios/{scenario}.toml", known, ""
    path = Path(scenario)
    if not path.exists():
        names = ", ".join(_native.scenarios())
        raise FileNotFoundError(f"{path}: there is no such file, and no built-in scenario of this name: {names}")
    return str(path), path.read_text(encoding="utf-8"), str(path.parent)


def value_of(value: object) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return value if value[:1] in ('"', "'", "[", "{") else json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(key)} = {value_of(item)}" for key, item in value.items()) + " }"
    if isinstance(value, Iterable):
        return "[" + ", ".join(value_of(item) for item in value) + "]"
    raise TypeError(f"{value!r} is no value of a scenario: those are numbers, texts, booleans, lists and dicts")


def seeds_of(seeds: Seeds) -> list[tuple[int, int]]:
    """Runs of consecutive seeds: the first, and how many."""
    if seeds is None:
        return []
    if isinstance(seeds, int):
        if seeds < 1:
            raise ValueError("there is at least one seed")
        return [(1, seeds)]
    wanted = sorted(set(seeds))
    if not wanted or wanted[0] < 1:
        raise ValueError("seeds are whole numbers from 1 on")
    runs: list[tuple[int, int]] = []
    for seed in wanted:
        if runs and runs[-1][0] + runs[-1][1] == seed:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((seed, 1))
    return runs


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
    one = [policies] if isinstance(policies, str) else list(policies or [])
    base: Request = {
        "file": name,
        "text": text,
        "directory": directory,
        "set": [f"{key}={value_of(value)}" for key, value in (set or {}).items()],
        "grid": [f"{key}={','.join(value_of(value) for value in values)}" for key, values in (grid or {}).items()],
        "policies": one,
        "baselines": [baselines] if isinstance(baselines, str) else list(baselines or []),
        "first_policy_only": first_policy_only,
        "quick": quick,
    }
    return [base | {"seeds": part} for part in seeds_of(seeds)] or [base]
