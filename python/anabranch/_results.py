"""Tables, as users have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from anabranch._native import Table


class Results:
    """A table that polars and pyarrow read through `__arrow_c_stream__` without a copy, and pandas with one."""

    def __init__(self, table: Table) -> None:
        """Wraps a table."""
        self.table = table

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.table)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as an Arrow stream."""
        return self.table.__arrow_c_stream__(requested_schema)

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self.table.column_names

    def to_pandas(self) -> pd.DataFrame:
        """The table as a pandas data frame."""
        import pandas as pd

        if hasattr(pd.DataFrame, "from_arrow"):
            return pd.DataFrame.from_arrow(self)
        return _through_pyarrow(self)

    def to_polars(self) -> pl.DataFrame:
        """The table as a polars data frame."""
        import polars as pl

        return pl.DataFrame(self)

    def __repr__(self) -> str:
        """How many rows and columns."""
        return f"<anabranch.{type(self).__name__}: {len(self)} rows, {len(self.columns)} columns>"


class Runs(Results):
    """A row per run: what it was a function of, its trace hash, and every metric."""

    def __init__(self, table: Table, *, known: int = 0) -> None:
        """Wraps a table; `known` of its runs were executed earlier."""
        super().__init__(table)
        self.known = known


def _through_pyarrow(results: Results) -> Any:
    import pyarrow as pa

    return pa.table(results).to_pandas()
