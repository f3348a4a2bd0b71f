"""What the tests share."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def program() -> str:
    """The command, of the same build as the package where there is one."""
    for profile in ("release", "debug"):
        path = ROOT / "target" / profile / "anabranch"
        if path.exists():
            return str(path)
    found = shutil.which("anabranch")
    if found is None:
        pytest.skip("the command is not built: cargo build")
    return found
