"""Field paths: segments joined by dots, a segment with a dot in back-quotes, a back-quote in those doubled."""

from __future__ import annotations

import pyarrow as pa

from ..errors import COLUMN_NOT_FOUND, INVALID, RefusedError


def split(path: str) -> list[str]:
    """Return a path's segments."""
    segments: list[str] = []
    rest = path
    while True:
        if rest.startswith("`"):
            segment, rest = _quoted(rest, path)
        else:
            segment, dot, after = rest.partition(".")
            rest = dot + after
        if not segment:
            raise RefusedError(INVALID, f"column {path!r}: it is no field path; names are joined by single dots")
        segments.append(segment)
        if not rest:
            return segments
        rest = rest[1:]


def _quoted(rest: str, path: str) -> tuple[str, str]:
    segment, at = "", 1
    while at < len(rest):
        if rest[at] != "`":
            segment += rest[at]
            at += 1
        elif rest[at : at + 2] == "``":
            segment += "`"
            at += 2
        else:
            break
    after = rest[at + 1 :]
    if at >= len(rest) or (after and not after.startswith(".")):
        raise RefusedError(INVALID, f"column {path!r}: a back-quote is not closed where its name ends")
    return segment, after


def field(schema: pa.Schema, path: str) -> pa.Field:
    """Return the field of a path."""
    found: pa.Field | None = None
    members: pa.Schema | pa.DataType = schema
    for segment in split(path):
        found = _member(members, segment)
        if found is None:
            raise RefusedError(COLUMN_NOT_FOUND, f"there is no column {path!r}; the columns are {', '.join(schema.names)}")
        members = found.type
    assert found is not None
    return found


def _member(of: pa.Schema | pa.DataType, name: str) -> pa.Field | None:
    if isinstance(of, pa.Schema) or pa.types.is_struct(of):
        at = of.get_field_index(name)
        return of.field(at) if at >= 0 else None
    if pa.types.is_list(of) or pa.types.is_large_list(of) or pa.types.is_fixed_size_list(of):
        return of.value_field if name in (of.value_field.name, "item") else None
    return None


def canonical(path: str) -> str:
    """Write a path with back-quotes just where they are needed."""
    return ".".join("`" + s.replace("`", "``") + "`" if "." in s or "`" in s else s for s in split(path))
