"""pyarrow, which reads and writes tables; it is an extra, and imported when a table is first used."""

from typing import TYPE_CHECKING

from prodsc.errors import OptionalModule

__all__ = ["pa"]

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = OptionalModule(
        "pyarrow", extra="tables", caller="a table (.csv, .parquet)", submodules=("compute", "csv", "fs", "parquet")
    )
