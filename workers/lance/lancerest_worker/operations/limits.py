"""What requests may say: numbers that the library can take, and names that columns may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from ..errors import INVALID, SCHEMA, RefusedError

_MOST = 2**32 - 1
# Columns that the library adds to what it answers.
_SYSTEM = ("_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version", "_distance", "_score")


def numbers(asked: Mapping[str, Any], names: Iterable[str], least: int = 0) -> None:
    """Refuse with INVALID a number among those arguments that is below the least or needs more than 32 bits.

    Absent ones are right.
    """
    for name in names:
        value = asked.get(name)
        if value is not None and not least <= value <= _MOST:
            raise RefusedError(INVALID, f"{name} is {value}: it must be {least} to {_MOST}")


def name(given: str) -> None:
    """Refuse with SCHEMA the name of a new column that nobody could use: SQL has no way to write an empty one."""
    if not given.strip():
        raise RefusedError(SCHEMA, f"column {given!r}: a column's name must not be empty")
    if given in _SYSTEM:
        raise RefusedError(SCHEMA, f"column {given!r}: this is the name of a column that the Lance library adds to answers")


def schema(given: pa.Schema) -> None:
    """Refuse with SCHEMA the columns of a new table where one has a name that it may not have, or two have the same."""
    for one in given.names:
        name(one)
        if given.names.count(one) > 1:
            raise RefusedError(SCHEMA, f"column {one!r} is there twice")
