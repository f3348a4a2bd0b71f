"""Tables as pages of the documentation have them."""

from collections.abc import Iterable


def print_table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Prints a table."""
    heads = list(heads)
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |")
