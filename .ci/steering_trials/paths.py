"""Pairs of paths, as settings of scenarios/steering.toml."""

from typing import NamedTuple


class Path(NamedTuple):
    """Rate in Mbit/s, one-way delay in ms, queue in packets, loss in per cent."""

    rate: float
    delay: float
    queue: int
    loss: float


PAIRS = {
    "alike": (Path(10, 20, 100, 0), Path(10, 20, 100, 0)),
    "alike, 0.1 % loss": (Path(20, 25, 100, 0.1), Path(20, 25, 100, 0.1)),
    "Wi-Fi, LTE": (Path(20, 10, 100, 0.1), Path(10, 30, 200, 0)),
    "slow second": (Path(20, 10, 100, 0), Path(4, 100, 100, 0)),
    "slow first": (Path(4, 100, 100, 0), Path(20, 10, 100, 0)),
    "satellite": (Path(20, 15, 100, 0), Path(10, 300, 500, 0)),
    "narrow second": (Path(50, 10, 200, 0), Path(1, 20, 50, 0)),
    "lossy second": (Path(20, 10, 100, 0), Path(10, 30, 100, 2)),
    "long queue": (Path(20, 10, 100, 0.05), Path(3, 20, 500, 0)),
}


def path_settings(paths: tuple[Path, Path]) -> list[str]:
    """The settings of the scenario for a pair of paths."""
    found = []
    for name, path in zip(("first", "second"), paths, strict=True):
        link = f"paths.{name}.links.link"
        found += [f"{link}.rate={path.rate} Mbit/s", f"{link}.delay={path.delay} ms"]
        found += [f"{link}.queue={path.queue} packets"]
        found += [f"{link}.loss={path.loss} %"] if path.loss else []
    return found
