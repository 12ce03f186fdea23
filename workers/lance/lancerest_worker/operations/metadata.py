"""Operations on metadata of schemas and fields."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..errors import INVALID, RefusedError
from ..request import Request
from . import computed, paths


def update_schema(request: Request) -> dict[str, Any]:
    """UpdateTableSchemaMetadata: entries are set, and those that are not named stay, as with the reference server."""
    dataset = request.changeable()
    given = request.get("metadata", {})
    if given:
        dataset.update_schema_metadata(given)
        request.changed(dataset)
    return _text(dataset.schema.metadata)


def update_fields(request: Request) -> dict[str, Any]:
    """UpdateFieldMetadata, all of it in one version."""
    dataset = request.changeable()
    updates: dict[str, dict[str, str | None]] = {}
    for entry in request.get("updates", []):
        path = paths.canonical(entry["path"])
        if path in updates:
            raise RefusedError(INVALID, f"updates names column {path!r} twice")
        change: dict[str, str | None] = dict(entry.get("metadata") or {})
        had = _text(paths.field(dataset.schema, path).metadata)
        if entry.get("replace"):
            change = {**dict.fromkeys(had), **{k: v for k, v in change.items() if v is not None}}
        computed.refuse_metadata(paths.field(dataset.schema, path), path, change)
        updates[path] = change
    if not updates:
        raise RefusedError(INVALID, "updates is empty: name at least one column")
    dataset.update_field_metadata(updates)
    version = request.changed(dataset)
    return {"version": version, "fields": {path: _of(dataset.schema, path) for path in updates}}


def _of(schema: pa.Schema, path: str) -> dict[str, str]:
    return _text(paths.field(schema, path).metadata)


def _text(metadata: dict[bytes, bytes] | None) -> dict[str, str]:
    return {k.decode(errors="replace"): v.decode(errors="replace") for k, v in (metadata or {}).items()}
