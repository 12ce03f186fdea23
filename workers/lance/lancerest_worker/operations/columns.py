"""Operations on columns."""

from __future__ import annotations

import base64
from typing import Any

import lance
import pyarrow as pa

from ..errors import INVALID, SCHEMA, UNSUPPORTED, RefusedError
from ..request import Request
from . import computed, conditions, limits, paths, types


def add(request: Request) -> dict[str, Any]:
    """AlterTableAddColumns: columns whose values are computed by SQL, once and now, or by backfills (spec 9.13)."""
    dataset = request.changeable()
    if request.get("arrow_schema") is not None:
        return _add_empty(request, dataset)
    entries = request.get("new_columns", [])
    if not entries:
        raise RefusedError(INVALID, "new_columns is empty: give at least one column")
    new: dict[str, dict[str, str]] = {"expression": {}, "computed": {}}
    for entry in entries:
        name, how, rule = _rule(entry)
        limits.name(name)
        if name in {**new["expression"], **new["computed"]} or name in dataset.schema.names:
            raise RefusedError(SCHEMA, f"column {name!r} exists already")
        new[how][name] = rule
    if all(new.values()):
        raise RefusedError(INVALID, "new_columns has columns with expression and with computed, which are two commits: ask twice")
    if new["computed"]:
        computed.declare(dataset, new["computed"])
    else:
        dataset.add_columns(new["expression"])
    return {"version": request.changed(dataset)}


def _rule(entry: dict[str, Any]) -> tuple[str, str, str]:
    """Return a new column's name, how its values come, and the SQL for that."""
    name = str(entry["name"])
    if entry.get("virtual_column") is not None:
        raise RefusedError(UNSUPPORTED, f"column {name!r} has a virtual_column: this engine runs no functions of users")
    expression, rule = entry.get("expression"), entry.get("computed")
    if expression and rule is not None:
        raise RefusedError(INVALID, f"column {name!r} has expression and computed: give one of them")
    if rule is not None:
        return name, "computed", str(rule)
    if not expression:
        raise RefusedError(INVALID, f"column {name!r} has no expression and no computed: give one of them")
    return name, "expression", conditions.whole(str(expression), f"the expression of column {name!r}")


def _add_empty(request: Request, dataset: lance.LanceDataset) -> dict[str, Any]:
    """Add columns of nulls, as a stream's schema says."""
    try:
        schema = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(request.get("arrow_schema"))))
    except (pa.ArrowInvalid, OSError) as err:
        raise RefusedError(INVALID, f"the body is not an Arrow IPC stream: {err}") from err
    limits.schema(schema)
    for field in schema:
        if field.name in dataset.schema.names:
            raise RefusedError(SCHEMA, f"column {field.name!r} exists already")
    computed.refuse_declarations(schema)
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
            limits.name(entry["rename"])
            if "." not in path and entry["rename"] in dataset.schema.names:
                raise RefusedError(SCHEMA, f"column {entry['rename']!r} exists already")
            change["name"] = entry["rename"]
        if entry.get("nullable") is not None:
            change["nullable"] = entry["nullable"]
        if entry.get("data_type") is not None:
            change["data_type"] = types.parse(entry["data_type"])
            computed.refuse_cast(dataset.schema, path)
        if entry.get("rename") is not None or entry.get("data_type") is not None:
            computed.refuse_change(dataset.schema, [path])
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
    computed.refuse_change(dataset.schema, columns)
    dataset.drop_columns(columns)
    return {"version": request.changed(dataset)}
