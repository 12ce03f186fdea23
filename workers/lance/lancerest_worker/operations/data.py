"""Operations on rows."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import lance
import pyarrow as pa
from lance.lance import _write_dataset

from ..errors import CONFLICT, INVALID, TABLE_EXISTS, RefusedError, translate
from ..request import Request
from . import computed, conditions, limits, paths

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def mode_of(request: Request, default: str, *allowed: str) -> str:
    """Return the mode, which is written in any case and with or without underscores."""
    given = str(request.get("mode", default))
    mode = given.lower().replace("_", "")
    if mode not in allowed:
        raise RefusedError(INVALID, f"mode {given!r}: it must be one of {', '.join(allowed)}")
    return mode


def write(request: Request, mode: str) -> lance.LanceDataset:
    """Write the rows that are sent. A table without data gets its first version."""
    rows = request.rows()
    if request.table.version:
        dataset = request.changeable()
        if mode == "append":
            computed.refuse_values(dataset.schema, _top(rows.schema))
        else:
            limits.schema(rows.schema)
            computed.refuse_declarations(rows.schema)
        dataset.insert(rows, mode=mode)
        return dataset
    limits.schema(rows.schema)
    computed.refuse_declarations(rows.schema)
    # lance.write_dataset declares a table that it creates, and appends to one that others have created meanwhile. Here the
    # server has declared it, and the first version must be this one.
    options: dict[str, Any] = {
        "mode": "create",
        "storage_options": dict(request.table.storage_options) or None,
        "session": request.tables.session,
        "namespace_client": request.tables.client(request.caller),
        "table_id": list(request.table.id),
        "namespace_client_managed_versioning": True,
    }
    _write_dataset(rows, request.table.location, options)
    written = replace(request.table, version=1)
    return request.tables.change(request.caller, written)


def create(request: Request) -> dict[str, Any]:
    """CreateTable: the server has declared the table, or says with mode Overwrite that what it holds is to be replaced."""
    overwrite = mode_of(request, "create", "create", "existok", "overwrite") == "overwrite"
    dataset = write(request, "overwrite" if overwrite else "create")
    return {"location": request.table.location, "version": request.changed(dataset), "properties": {}}


def insert(request: Request) -> dict[str, Any]:
    """InsertIntoTable."""
    mode = mode_of(request, "append", "append", "overwrite")
    try:
        dataset = write(request, mode)
    except OSError as err:
        if request.table.version == 0 and translate(err)[0] == TABLE_EXISTS:
            raise RefusedError(CONFLICT, "the table got its first rows from another writer at the same time; try again") from err
        raise
    return {"num_inserted_rows": request.rows_read, "version": request.changed(dataset)}


def merge_insert(request: Request) -> dict[str, Any]:
    """MergeInsertIntoTable."""
    on = [str(c) for c in request.get("on", [])]
    if not on or not all(on):
        raise RefusedError(INVALID, "on is missing: name the columns by which rows are matched, one parameter each")
    if len(set(on)) != len(on):
        raise RefusedError(INVALID, "on names a column twice")
    if request.table.version == 0:
        dataset = write(request, "create")
        return _merged({"num_inserted_rows": request.rows_read}, request.changed(dataset))
    dataset = request.changeable()
    for column in on:
        paths.field(dataset.schema, column)
    builder = dataset.merge_insert(on)
    matched = request.get("when_matched_update_all_filt")
    if matched or request.get("when_matched_update_all"):
        builder = builder.when_matched_update_all(conditions.whole(matched, "when_matched_update_all_filt") if matched else None)
    if request.get("when_not_matched_insert_all"):
        builder = builder.when_not_matched_insert_all()
    unmatched = request.get("when_not_matched_by_source_delete_filt")
    if unmatched or request.get("when_not_matched_by_source_delete"):
        where = conditions.whole(unmatched, "when_not_matched_by_source_delete_filt") if unmatched else None
        builder = builder.when_not_matched_by_source_delete(where)
    if request.get("use_index") is not None:
        builder = builder.use_index(bool(request.get("use_index")))
    timeout = request.get("timeout")
    if timeout:
        builder = builder.retry_timeout(_duration(timeout))
    rows = request.rows()
    computed.refuse_values(dataset.schema, _top(rows.schema))
    stats = builder.execute(rows)
    return _merged(stats, request.changed(dataset))


def _top(schema: pa.Schema) -> list[str]:
    """Return the top-level columns as paths."""
    return ["`" + name.replace("`", "``") + "`" for name in schema.names]


def _merged(stats: dict[str, Any], version: int) -> dict[str, Any]:
    answer = {name: int(stats.get(name, 0)) for name in ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")}
    answer["num_attempts"] = int(stats.get("num_attempts", 1))
    answer["num_rows"] = answer["num_inserted_rows"] + answer["num_updated_rows"]
    answer["version"] = version
    return answer


def _duration(text: str) -> timedelta:
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text).strip():
        raise RefusedError(INVALID, f"timeout {text!r}: it must be a duration such as 30s or 5m")
    try:
        return timedelta(seconds=sum(float(n) * _UNITS[unit] for n, unit in parts))
    except OverflowError as err:
        raise RefusedError(INVALID, f"timeout {text!r}: nobody waits for so long") from err


def update(request: Request) -> dict[str, Any]:
    """UpdateTable."""
    dataset = request.changeable()
    updates: dict[str, str] = {}
    for pair in request.get("updates", []):
        if len(pair) != 2 or not pair[0].strip():
            raise RefusedError(INVALID, "updates: each must be a pair of a column and an SQL expression")
        if pair[0] in updates:
            raise RefusedError(INVALID, f"updates names column {pair[0]!r} twice")
        paths.field(dataset.schema, pair[0])
        updates[pair[0]] = conditions.whole(pair[1], f"the value of column {pair[0]!r}")
    computed.refuse_values(dataset.schema, updates)
    if not updates:
        raise RefusedError(INVALID, "updates is empty: name at least one column")
    predicate = str(request.get("predicate", "")).strip()
    done = dataset.update(updates, where=conditions.whole(predicate, "predicate") if predicate else None)
    rows = int(done["num_rows_updated"])
    return {"updated_rows": rows, "rows_updated": rows, "version": request.changed(dataset)}


def delete(request: Request) -> dict[str, Any]:
    """DeleteFromTable."""
    predicate = str(request.get("predicate", "")).strip()
    if not predicate:
        raise RefusedError(INVALID, "predicate is empty, which would delete all rows: say true if that is meant")
    dataset = request.changeable()
    done = dataset.delete(conditions.whole(predicate, "predicate"))
    return {"num_deleted_rows": int(done["num_deleted_rows"]), "version": request.changed(dataset)}


def count(request: Request) -> int:
    """CountTableRows, with a condition: without one the catalog knows."""
    predicate = str(request.get("predicate", "")).strip()
    return int(request.readable().count_rows(filter=conditions.whole(predicate, "predicate") if predicate else None))


def restore(request: Request) -> dict[str, Any]:
    """RestoreTable. The server has said with the table which version is to be restored."""
    dataset = request.changeable()
    dataset.restore()
    request.changed(dataset)
    return {}
