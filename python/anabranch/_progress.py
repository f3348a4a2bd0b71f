"""Progress of runs, on a terminal and in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable


def bar(width: int = 40) -> Callable[[int, int, str], None]:
    """A bar on standard error that is drawn again at each per cent; notebooks show it as well."""
    shown = -1

    def show(done: int, units: int, name: str) -> None:
        nonlocal shown
        share = done / units if units else 0.0
        if round(share * 100) == shown:
            return
        shown = round(share * 100)
        filled = "=" * round(share * width)
        sys.stderr.write(f"\r{name} [{filled:<{width}}] {shown:3d} %")
        sys.stderr.flush()

    return show
