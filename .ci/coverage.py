"""What .ci/coverage prints of the file that `llvm-cov export` wrote.

python3 .ci/coverage.py FILE ROOT SOURCES   ROOT is the checkout, SOURCES the folder of the crate's sources
"""

import json
import pathlib
import sys
from typing import Any, NamedTuple


class Function(NamedTuple):
    """Where a function begins."""

    file: str
    line: int


def is_ours(file: str) -> bool:
    """Whether a file is of the crate itself: test modules are left out."""
    return "tests.rs" not in file and "/tests/" not in file and "harness" not in file


def print_share(files: list[dict[str, Any]]) -> None:
    """Prints the share of the lines that ran."""
    lines = [file["summary"]["lines"] for file in files if is_ours(file["filename"])]
    covered, count = (sum(of[name] for of in lines) for name in ("covered", "count"))
    print(f"{100 * covered / count:.1f} % of {count} lines")


def never_ran(functions: list[dict[str, Any]], sources: str) -> list[Function]:
    """The functions that never ran.

    A generic function is there once for each type, and once for each test program: it ran if one of them did.
    """
    ran: dict[Function, int] = {}
    for function in functions:
        place = Function(function["filenames"][0], function["regions"][0][0])
        if place.file.startswith(sources) and is_ours(place.file):
            ran[place] = ran.get(place, 0) + function["count"]
    return sorted(place for place, count in ran.items() if count == 0)


def main() -> None:
    """Prints the share of the lines, and the first line of each function that never ran."""
    file, root, sources = sys.argv[1:]
    data = json.loads(pathlib.Path(file).read_text())["data"][0]
    print_share(data["files"])
    for place in never_ran(data["functions"], f"{sources}/"):
        text = pathlib.Path(place.file).read_text().splitlines()[place.line - 1].strip()
        print(f"{place.file.removeprefix(f'{root}/')}:{place.line}: {text}")


if __name__ == "__main__":
    main()
