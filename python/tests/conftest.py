"""What the tests share."""

import os
import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def program() -> str:
    """The command: the one that ANABRANCH_PROGRAM names, of this checkout, or of the system."""
    target = Path(__file__).resolve().parents[2] / "target"
    named = [
        os.environ.get("ANABRANCH_PROGRAM", ""),
        str(target / "release/anabranch"),
        str(target / "debug/anabranch"),
    ]
    for path in named:
        if path and Path(path).exists():
            return path
    found = shutil.which("anabranch")
    assert found is not None, "the command is not built: cargo build --release, or set ANABRANCH_PROGRAM"
    return found
