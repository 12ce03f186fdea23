"""Computed columns: declared by SQL, in the metadata of their fields as LanceDB writes it, and filled by backfills.

The metadata is LanceDB's own, so that it understands these tables when it opens them past this server, and the other way round.
What LanceDB forbids on a table with computed columns is forbidden here too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import lance
import pyarrow as pa
from lance.fragment import LanceFragment

from ..errors import COLUMN_NOT_FOUND, INVALID, SCHEMA, UNSUPPORTED, RefusedError, clean
from . import conditions, paths, sql

MARK = "computed_column"
_KIND = MARK + ".kind"
_EXPRESSION = MARK + ".expression"
_INPUTS = MARK + ".inputs"
# What LanceDB notes of the rows that it has filled: here, nothing.
_SIGNATURE = "computed_refresh.source_signature"
_SQL = "sql"
_NO_FIELD = re.compile(r"No field named [`'\"]?(?P<name>[^\s,`'\"]+?)[`'\"]?\. ")

# Bytes that are read before they are needed, of each table that is gone through.
READ_AHEAD = 64 << 20
# What Lance says where the values of a row are the reason.
_VALUES = re.compile(
    r"divide by zero|overflow|cast error|cannot cast|parser error|compute error|arithmetic|out of range|execution error", re.I
)


@dataclass(frozen=True)
class Computed:
    """A computed column's declaration. The expression is "" where its kind is not SQL."""

    name: str
    kind: str
    expression: str
    inputs: tuple[str, ...]

    @property
    def roots(self) -> set[str]:
        """The top-level columns that the expression reads."""
        return {paths.split(path)[0] for path in self.inputs}


def declared(schema: pa.Schema) -> list[Computed]:
    """Return the computed columns of a schema, in their order."""
    return [found for field in schema if (found := of(field)) is not None]


def of(field: pa.Field) -> Computed | None:
    """Return the declaration that a field has, None for a field that is not computed."""
    metadata = {k.decode(errors="replace"): v.decode(errors="replace") for k, v in (field.metadata or {}).items()}
    if metadata.get(MARK) != "true" or _KIND not in metadata:
        return None
    try:
        inputs = json.loads(metadata.get(_INPUTS, "[]"))
    except ValueError:
        inputs = []
    return Computed(field.name, metadata[_KIND], metadata.get(_EXPRESSION, ""), tuple(str(i) for i in inputs))


def find(schema: pa.Schema, path: str) -> Computed:
    """Return the declaration of the computed column that a path names.

    COLUMN_NOT_FOUND where there is no such column, INVALID for one that is not computed, UNSUPPORTED for one of a function.
    """
    field = paths.field(schema, path)
    found = of(field) if len(paths.split(path)) == 1 else None
    if found is None:
        raise RefusedError(INVALID, f"column {path!r} is not a computed column: only those have a rule by which they are filled")
    if found.kind != _SQL or not found.expression:
        raise RefusedError(
            UNSUPPORTED,
            f"column {path!r} is computed by {found.kind!r}: this engine computes by SQL and runs no functions of users",
        )
    return found


def typed(dataset: lance.LanceDataset, expression: str, what: str) -> pa.DataType:
    """Return the type that an expression has on a table's rows. COLUMN_NOT_FOUND where it reads what is not there, INVALID for
    whatever else Lance does not understand."""
    sql.expression(expression, what)
    try:
        # Lance wants a column beside expressions that read none. As it is, the text makes the errors that LanceDB's callers know.
        for text in (expression, conditions.whole(expression, what)):
            projected = dataset.scanner(columns={"value": text, "row": "_rowid"}).projected_schema
    except (ValueError, OSError) as err:
        raise judged(err, what, dataset.schema) from err
    return projected.field("value").type


def predicate(dataset: lance.LanceDataset, where: str, what: str) -> None:
    """Refuse what is not a condition on a table's rows, with the codes of typed."""
    sql.expression(where, what)
    try:
        dataset.scanner(columns=["_rowid"], filter=conditions.whole(where, what)).explain_plan()
    except (ValueError, OSError) as err:
        raise judged(err, what, dataset.schema) from err


def judged(err: Exception, what: str, schema: pa.Schema) -> RefusedError:
    """Return what Lance says of an expression as an error of the specification."""
    text = str(err)
    missing = _NO_FIELD.search(text)
    if missing:
        return RefusedError(
            COLUMN_NOT_FOUND, f"{what}: there is no column {missing['name']!r}; the columns are {', '.join(schema.names)}"
        )
    if "AggregateFunction" in text or "WindowFunction" in text:
        return RefusedError(INVALID, f"{what}: a value is computed of one row, without aggregates and windows")
    return RefusedError(INVALID, f"{what}: {clean(text)}")


def ids(field: Any) -> list[int]:
    """Return the ids of a Lance field and of all that is in it, in the order in which Lance numbers them."""
    return [field.id(), *(i for child in field.children() for i in ids(child))]


# Paths of data files, and which fields each has the values of.
Files = tuple[tuple[str, tuple[int, ...]], ...]


def files(fragment: LanceFragment, fields: set[int]) -> Files:
    """Return the files in which a fragment has the values of some fields."""
    found = [(str(f.path), tuple(i for i in f.fields if i in fields)) for f in fragment.metadata.files]
    return tuple(sorted(at for at in found if at[1]))


def failed(err: Exception, what: str) -> Exception:
    """Return why a scan that computes failed: INVALID where the values of a row are the reason, and else the error itself."""
    if isinstance(err, RefusedError) or not _VALUES.search(str(err)):
        return err
    return RefusedError(INVALID, f"{what} fails for a row: {clean(str(err))}")


def declare(dataset: lance.LanceDataset, columns: dict[str, str]) -> None:
    """Add computed columns without values, in a commit that writes no data. SCHEMA where a column exists already."""
    fields: list[pa.Field] = []
    for name, expression in columns.items():
        if name in dataset.schema.names:
            raise RefusedError(SCHEMA, f"column {name!r} exists already")
        if not name or name.startswith("_row") or "." in name:
            raise RefusedError(
                INVALID, f"column {name!r}: a computed column has a name without dots that does not begin with _row"
            )
        kind = typed(dataset, expression, f"column {name!r}")
        if pa.types.is_null(kind):
            raise RefusedError(INVALID, f"column {name!r}: its expression is null, which has no type; cast it to one")
        inputs = sql.inputs(sql.expression(expression, name), dataset.schema)
        # In any order, LanceDB reads the same.
        metadata = {MARK: "true", _KIND: _SQL, _EXPRESSION: expression, _INPUTS: json.dumps(inputs), _SIGNATURE: "{}"}
        fields.append(pa.field(name, kind, True, metadata))
    dataset.add_columns(pa.schema(fields))


def refuse_values(schema: pa.Schema, written: Iterable[str]) -> None:
    """Refuse a write that brings values of a computed column."""
    names = {found.name for found in declared(schema)}
    for path in written:
        root = paths.split(path)[0]
        if root in names:
            raise RefusedError(
                INVALID, f"column {root!r} is computed: its values come from backfills and cannot be written; leave it out"
            )


def refuse_declarations(schema: pa.Schema) -> None:
    """Refuse rows whose schema declares a computed column: a declaration is checked against the table that it is for."""
    for field in schema:
        if any(is_declaration(k.decode(errors="replace")) for k in field.metadata or {}):
            raise RefusedError(
                INVALID,
                f"column {field.name!r} has a computed column's metadata: declare those by adding columns, with computed",
            )


def refuse_change(schema: pa.Schema, changed: Iterable[str]) -> None:
    """Refuse to drop, rename or cast what a computed column is computed of."""
    for found in declared(schema):
        for path in changed:
            segments = paths.split(path)
            if segments == [found.name]:
                continue
            if segments[0] == found.name:
                raise RefusedError(INVALID, f"{path!r} is part of computed column {found.name!r}: drop that and declare it again")
            if segments[0] in found.roots:
                raise RefusedError(INVALID, f"column {path!r} is read by computed column {found.name!r}: drop that column first")


def refuse_cast(schema: pa.Schema, path: str) -> None:
    """Refuse to change the type of a computed column, which its expression says."""
    root = paths.split(path)[0]
    if any(found.name == root for found in declared(schema)):
        raise RefusedError(INVALID, f"column {root!r} is computed: drop it and declare it again to change its type")


def is_declaration(key: str) -> bool:
    """Tell whether a key of a field's metadata belongs to a declaration, which is not edited."""
    return key == MARK or key.startswith(MARK + ".")


def refuse_metadata(field: pa.Field, path: str, change: dict[str, str | None]) -> None:
    """Refuse to edit a declaration."""
    if any(is_declaration(key) and (value is None or _value(field, key) != value) for key, value in change.items()):
        raise RefusedError(
            INVALID, f"column {path!r}: what {MARK} says of a computed column is not edited; drop the column and declare it again"
        )


def _value(field: pa.Field, key: str) -> str | None:
    had = (field.metadata or {}).get(key.encode())
    return None if had is None else had.decode(errors="replace")
