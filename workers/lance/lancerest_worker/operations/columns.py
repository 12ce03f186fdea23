"""Operations on columns."""

from __future__ import annotations

import base64
from typing import Any

import lance
import pyarrow as pa

from ..errors import INVALID, SCHEMA, UNSUPPORTED, RefusedError
from ..request import Request
from . import paths, types


def add(request: Request) -> dict[str, Any]:
    """AlterTableAddColumns: columns that are computed from the others by SQL, once."""
    dataset = request.changeable()
    if request.get("arrow_schema") is not None:
        return _add_empty(request, dataset)
    new: dict[str, str] = {}
    for entry in request.get("new_columns", []):
        name = entry["name"]
        if entry.get("virtual_column") is not None:
            raise RefusedError(UNSUPPORTED, f"column {name!r} has a virtual_column: this engine runs no functions of users")
        if entry.get("computed") is not None:
            raise RefusedError(
                UNSUPPORTED, f"column {name!r} has a computed expression, which needs backfills: this engine has none yet"
            )
        if not entry.get("expression"):
            raise RefusedError(INVALID, f"column {name!r} has no expression")
        if name in new or name in dataset.schema.names:
            raise RefusedError(SCHEMA, f"column {name!r} exists already")
        new[name] = entry["expression"]
    if not new:
        raise RefusedError(INVALID, "new_columns is empty: give at least one column")
    dataset.add_columns(new)
    return {"version": request.changed(dataset)}


def _add_empty(request: Request, dataset: lance.LanceDataset) -> dict[str, Any]:
    """Add columns of nulls, as a stream's schema says."""
    try:
        schema = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(request.get("arrow_schema"))))
    except (pa.ArrowInvalid, OSError) as err:
        raise RefusedError(INVALID, f"the body is not an Arrow IPC stream: {err}") from err
    for field in schema:
        if field.name in dataset.schema.names:
            raise RefusedError(SCHEMA, f"column {field.name!r} exists already")
    dataset.add_columns(schema)
    return {"version": request.changed(dataset)}


def alter(request: Request) -> dict[str, Any]:
    """AlterTableAlterColumns: rename, allow or forbid nulls, cast."""
    dataset = request.changeable()
    alterations: list[Any] = []
    for entry in request.get("alterations", []):
        path = entry["path"]
        paths.field(dataset.schema, path)
        if entry.get("virtual_column") is not None:
            raise RefusedError(UNSUPPORTED, f"column {path!r}: this engine runs no functions of users")
        change: dict[str, Any] = {"path": path}
        if entry.get("rename") is not None:
            change["name"] = entry["rename"]
        if entry.get("nullable") is not None:
            change["nullable"] = entry["nullable"]
        if entry.get("data_type") is not None:
            change["data_type"] = types.parse(entry["data_type"])
        if len(change) == 1:
            raise RefusedError(INVALID, f"alteration of column {path!r} changes nothing: give rename, nullable or data_type")
        alterations.append(change)
    if not alterations:
        raise RefusedError(INVALID, "alterations is empty: give at least one")
    dataset.alter_columns(*alterations)
    return {"version": request.changed(dataset)}


def drop(request: Request) -> dict[str, Any]:
    """AlterTableDropColumns."""
    dataset = request.changeable()
    columns = [str(c) for c in request.get("columns", [])]
    if not columns:
        raise RefusedError(INVALID, "columns is empty: name at least one")
    for column in columns:
        paths.field(dataset.schema, column)
    dataset.drop_columns(columns)
    return {"version": request.changed(dataset)}
