"""A deterministic lab for multipath TCP (RFC 8684).

`run` and `compare` simulate scenarios, `sweep` scores policies on a design of networks, `reproduce` runs the papers'
experiments, `series` gives time series of a run and `capture` its packets, `gym` has environments for learning, and
`learned` exports what was learned. Results are tables for pandas, polars and pyarrow.
"""

from anabranch._lab import capture, compare, policies_of, reproduce, run, scenario_text, scenarios, series, sweep
from anabranch._native import (
    Chunk,
    ConnectionView,
    PathAction,
    PathEvent,
    RustCongestionControl,
    RustPathManager,
    RustScheduler,
    SubflowView,
)
from anabranch._native import version as _version
from anabranch._policies import CongestionControl, PathManager, Scheduler
from anabranch._results import Results, Runs

__version__: str = _version()[0]
__commit__: str = _version()[1]

__all__ = [
    "Chunk",
    "CongestionControl",
    "ConnectionView",
    "PathAction",
    "PathEvent",
    "PathManager",
    "Results",
    "Runs",
    "RustCongestionControl",
    "RustPathManager",
    "RustScheduler",
    "Scheduler",
    "SubflowView",
    "capture",
    "compare",
    "policies_of",
    "reproduce",
    "run",
    "scenario_text",
    "scenarios",
    "series",
    "sweep",
]
