"""A deterministic lab for multipath TCP (RFC 8684).

`run` and `compare` simulate scenarios, `sweep` scores policies on a design of networks, `series` gives time series of
a run, and `gym` has environments for learning. Results are tables that pandas, polars and pyarrow read without a copy.
"""

from anabranch._lab import (
    Chunk,
    CongestionControl,
    ConnectionView,
    Runs,
    RustScheduler,
    Scheduler,
    SubflowView,
    Table,
    compare,
    policies_of,
    run,
    scenario_text,
    scenarios,
    series,
    sweep,
)
from anabranch._native import version as _version

__version__: str = _version()[0]
__commit__: str = _version()[1]

__all__ = [
    "Chunk",
    "CongestionControl",
    "ConnectionView",
    "Runs",
    "RustScheduler",
    "Scheduler",
    "SubflowView",
    "Table",
    "compare",
    "policies_of",
    "run",
    "scenario_text",
    "scenarios",
    "series",
    "sweep",
]
