"""Materialized views: tables that hold what a query gives of another table, and are refreshed when they are told to.

A view keeps its query and how far it has come in its schema's metadata, as LanceDB does, so that LanceDB can read both. A refresh
either appends what the rows give that have come since, where nothing else has happened to the source, or computes all of it anew.
In each case readers see the state before or the state after, and of two refreshes at a time the second has to begin again.
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import lance
import pyarrow as pa
from lance.fragment import write_fragments
from lance.lance import _write_dataset
from lance_namespace import DescribeTableRequest, LanceNamespace
from lance_namespace.errors import LanceNamespaceError

from ..errors import (
    BAD_STATE,
    CONFLICT,
    INVALID,
    SCHEMA,
    TABLE_EXISTS,
    TABLE_NOT_FOUND,
    UNSUPPORTED,
    VERSION_NOT_FOUND,
    RefusedError,
    translate,
)
from ..request import Request
from ..tables import Table
from . import computed, sql

# LanceDB's keys in a view's schema metadata.
_DEFINITION = "mv.definition"
_SOURCE_VERSION = "mv.source_version"
_SOURCE_TIME = "mv.source_version_ts"  # which pylance does not tell: LanceDB rebuilds where it is missing
_VIEW_VERSION = "mv.view_version"
_REFRESHED = "mv.refreshed_at_ms"
_INCARNATION = "mv.incarnation"
# Which table the query's source was when the view was made, and where it lay when it was last read: a new one lies elsewhere.
_SOURCE = "lancerest.view.source"
_SOURCE_LOCATION = "lancerest.view.source_location"
_FORMAT = 1
# LanceDB's column that names the source's row.
ROW = "__source_row_id"
_RESERVED = {
    ROW,
    "_rowid",
    "_rowaddr",
    "_rowoffset",
    "_distance",
    "_score",
    "_row_created_at_version",
    "_row_last_updated_at_version",
}
_BLOB = b"lance-encoding:blob"
# Metadata of a field that says how its own table is written.
_OWN = ("lance-schema:", "lance:field_id", "computed_column", "computed_refresh.", "lancerest.")
_BATCH_ROWS = 8192
_TRIES = 10
_NOT_FOUND = (1, TABLE_NOT_FOUND)  # of a namespace, of a table


@dataclass(frozen=True)
class _Source:
    """The table that a view is computed of, at the version that is to be read."""

    id: tuple[str, ...]
    location: str
    dataset: lance.LanceDataset

    @property
    def version(self) -> int:
        return int(self.dataset.version)


def create(request: Request) -> dict[str, Any]:
    """CreateMaterializedView (spec 15): a table without rows that knows its query. With check nothing is made.

    Errors: UNSUPPORTED for the kinds that run a user's function and for queries beyond SELECT, FROM, WHERE and LIMIT; INVALID for
    whatever is wrong with the query; TABLE_NOT_FOUND for its source, COLUMN_NOT_FOUND for a column.
    """
    query = _asked(request)
    source = _find(request, query.source)
    query, schema = _plan(source.dataset, query, True)
    schema = _agreed(request, schema)
    if request.get("check"):
        return {"version": 0}
    if request.table.version:
        raise RefusedError(TABLE_EXISTS, f"table {'.'.join(request.table.id)!r} already exists")
    metadata = {
        _DEFINITION: json.dumps({"format": _FORMAT, "kind": "query", "query": query.text()}, separators=(",", ":")),
        _INCARNATION: str(uuid.uuid4()),
        _SOURCE: json.dumps(list(source.id)),
    }
    options: dict[str, Any] = {
        "mode": "create",
        "enable_stable_row_ids": True,
        "storage_options": dict(request.table.storage_options) or None,
        "session": request.tables.session,
        "namespace_client": request.tables.client(request.caller),
        "table_id": list(request.table.id),
        "namespace_client_managed_versioning": True,
    }
    rows = pa.RecordBatchReader.from_batches(schema.with_metadata(metadata), iter(()))
    _write_dataset(rows, request.table.location, options)
    view = request.tables.change(request.caller, replace(request.table, version=1))
    return {"version": request.changed(view)}


def _asked(request: Request) -> sql.Query:
    kind = str(request.get("kind", "query"))
    if kind in ("udtf", "chunker"):
        raise RefusedError(
            UNSUPPORTED, f"kind {kind!r} runs a function of its user, which this engine does not: give kind 'query'"
        )
    if kind != "query":
        raise RefusedError(INVALID, f"kind {kind!r}: it must be query, udtf or chunker")
    if request.get("udtf_spec") is not None:
        raise RefusedError(INVALID, "udtf_spec is for the kinds udtf and chunker: leave it out with kind 'query'")
    text = str(request.get("source_query", request.get("query", ""))).strip()
    if not text:
        raise RefusedError(INVALID, "source_query is missing: give the query that the view holds the result of")
    return _query(text, "source_query")


def _query(text: str, what: str) -> sql.Query:
    """Return a query that is plain SQL or in LanceDB's stored layout."""
    if not text.startswith("{"):
        return sql.query(text)
    try:
        stored = json.loads(text)
        if "format" not in stored and stored.get("kind") in ("select", "namespaced_select"):
            return _earlier(stored)
        form, query = stored.get("format", _FORMAT), stored["query"]
    except (ValueError, KeyError, TypeError) as err:
        raise RefusedError(
            INVALID, f'{what} is neither SQL nor {{"format": {_FORMAT}, "query": "SELECT ..."}}: {text[:200]}'
        ) from err
    if not isinstance(query, str):
        raise RefusedError(INVALID, f"{what}: its query must be a text")
    found = sql.query(query)  # which says best what this engine cannot do
    if form != _FORMAT:
        raise RefusedError(UNSUPPORTED, f"{what} has format {form}: this engine keeps views of format {_FORMAT}")
    return found


def _earlier(stored: dict[str, Any]) -> sql.Query:
    """Return a query as LanceDB stored it before there was a format number."""
    where, limit = stored.get("filter"), stored.get("limit")
    columns = tuple((str(p["output"]), str(p["expression"])) for p in stored.get("projections", []))
    for name, expression in columns:
        sql.expression(expression, f"column {name!r}")
    if where is not None:
        sql.expression(where, "the view's WHERE")
    return sql.Query((*stored.get("source_namespace", []), str(stored["source_table"])), columns, where, limit)


def _find(request: Request, name: tuple[str, ...]) -> _Source:
    """Return the table that a query names: of the view's own namespace first, and of those around it then."""
    namespace = request.table.id[:-1]
    for depth in range(len(namespace), -1, -1):
        found = _open(request, (*namespace[:depth], *name))
        if found is not None:
            return found
    raise RefusedError(TABLE_NOT_FOUND, f"the query's source, table {'.'.join(name)!r}, does not exist")


def _open(request: Request, id: tuple[str, ...]) -> _Source | None:
    """Return a table's latest version, None where there is no such table."""
    if id == request.table.id:
        raise RefusedError(INVALID, "the view's source is the view itself: name another table")
    client: LanceNamespace = request.tables.client(request.caller)
    try:
        location = client.describe_table(DescribeTableRequest(id=list(id))).location
    except LanceNamespaceError as err:
        if int(err.code) in _NOT_FOUND:
            return None
        raise
    # The server's keys reach its tables wherever they lie.
    table = Table(id, str(location), None, "", request.table.storage_options)
    try:
        return _Source(id, str(location), request.tables.latest(request.caller, table))
    except (ValueError, OSError) as err:
        if "not found" not in str(err).lower():
            raise
        text = (
            f"the view's source, table {'.'.join(id)!r}, has no data yet: it is only declared; create it or insert into it first"
        )
        raise RefusedError(BAD_STATE, text) from err


def _plan(source: lance.LanceDataset, query: sql.Query, row: bool) -> tuple[sql.Query, pa.Schema]:
    """Return a query with its columns written out, and the schema of what it gives, with the source's row ids or without."""
    schema = source.schema
    columns = query.columns or tuple((name, sql.quote(name)) for name in schema.names if name != ROW)
    if not columns:
        raise RefusedError(INVALID, "the query selects no column")
    fields: list[pa.Field] = []
    for name, expression in columns:
        if name in _RESERVED or not name:
            raise RefusedError(INVALID, f"column {name!r}: the name is the library's own; give another by AS")
        if any(name == f.name for f in fields):
            raise RefusedError(INVALID, f"the query gives two columns the name {name!r}")
        fields.append(_field(source, name, expression))
    if query.where is not None:
        computed.predicate(source, query.where, "the view's WHERE")
    if row:
        fields.append(pa.field(ROW, pa.uint64(), False))
    return replace(query, columns=columns), pa.schema(fields)


def _field(source: lance.LanceDataset, name: str, expression: str) -> pa.Field:
    """Return the field that an expression gives. A column that is just taken over keeps what is said of it."""
    found = sql.expression(expression, f"column {name!r}")
    at = source.schema.get_field_index(found[0].name) if len(found) == 1 and found[0].kind in (sql.WORD, sql.QUOTED) else -1
    if at < 0:
        kind = computed.typed(source, expression, f"column {name!r}")
        if pa.types.is_null(kind):
            raise RefusedError(INVALID, f"column {name!r}: its expression is null, which has no type; cast it to one")
        return pa.field(name, kind, True)
    column = source.schema.field(at)
    if _BLOB in (column.metadata or {}):
        raise RefusedError(
            UNSUPPORTED, f"column {name!r} holds blobs, which are not copied into views: select the others by name"
        )
    metadata = {k: v for k, v in (column.metadata or {}).items() if not k.decode(errors="replace").startswith(_OWN)}
    return pa.field(name, column.type, True, metadata or None)


def _agreed(request: Request, schema: pa.Schema) -> pa.Schema:
    """Return the view's schema: the one that is given, if it is that of the query, with LanceDB's row column or without."""
    given = request.get("output_schema")
    if given is None or given == "":
        return schema
    try:
        said = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(given, validate=True)))
    except (ValueError, pa.ArrowInvalid, OSError) as err:
        raise RefusedError(INVALID, f"output_schema is not an Arrow IPC schema in base64: {err}") from err
    plain = schema.remove(schema.get_field_index(ROW))
    for wanted in (plain, schema):
        if _shape(wanted) == _shape(said):
            return wanted
    raise RefusedError(INVALID, f"output_schema is ({_told(said)}), and the query gives ({_told(plain)}): they must be the same")


def _shape(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    return [(f.name, f.type) for f in schema]


def _told(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {f.type}" for f in schema)


def refresh(request: Request) -> dict[str, Any]:
    """RefreshMaterializedView (spec 15): the view becomes what its query gives of the source's latest version, or of src_version.

    Answers the view's version, how many rows were written, the source's version that the view holds, and the mode, in LanceDB's
    words: rebuild, incremental or no_op. With check nothing is done, and stale says whether there is anything to do. Errors:
    INVALID for a table that is no view, UNSUPPORTED for a query beyond this engine, BAD_STATE where the source is gone,
    VERSION_NOT_FOUND for a src_version that is not there, SCHEMA where the query does not give the view's columns any more.
    """
    if request.get("output_limit") is not None:
        raise RefusedError(INVALID, "output_limit is for views of kind chunker: leave it out")
    work = _Refresh(request, request.changeable())
    if request.get("check"):
        return {"version": int(work.view.version), "rows": 0, "stale": work.stale()}
    return work.run()


class _Refresh:
    """One refresh of one view."""

    def __init__(self, request: Request, view: lance.LanceDataset) -> None:
        self.request, self.view = request, view
        self.full = bool(request.get("full", False))
        self.pinned = _whole(request, "src_version")
        self.fragment_rows = _whole(request, "max_rows_per_fragment")
        self.rows = 0
        self._look()

    def _look(self) -> None:
        """Look at the view and at its source as they are now."""
        self.metadata = {k.decode(): v.decode(errors="replace") for k, v in (self.view.schema.metadata or {}).items()}
        name = ".".join(self.request.table.id)
        if _DEFINITION not in self.metadata:
            raise RefusedError(INVALID, f"table {name!r} is not a materialized view")
        query = _query(self.metadata[_DEFINITION], f"the definition of view {name!r}")
        self.source = self._source(query)
        try:
            self.query, schema = _plan(self.source.dataset, query, ROW in self.view.schema.names)
        except RefusedError as err:
            raise RefusedError(err.code, f"the view's query does not fit its source any more: {err.text}") from err
        if _shape(schema) != _shape(self.view.schema):
            now = f"the view has ({_told(self.view.schema)}), and its query gives ({_told(schema)}) now"
            raise RefusedError(SCHEMA, f"{now}: drop the view and make it again")

    def _source(self, query: sql.Query) -> _Source:
        try:
            id = tuple(str(part) for part in json.loads(self.metadata[_SOURCE]))
            found = _open(self.request, id)
        except (KeyError, ValueError):
            id = query.source
            found = _find(self.request, id)
        if found is None:
            text = f"the view's source, table {'.'.join(id)!r}, does not exist any more: it was dropped or renamed"
            raise RefusedError(BAD_STATE, text)
        if self.pinned is None:
            return found
        try:
            return replace(found, dataset=found.dataset.checkout_version(self.pinned))
        except (ValueError, OSError) as err:
            raise RefusedError(VERSION_NOT_FOUND, f"src_version {self.pinned}: the view's source has no such version") from err

    def stale(self) -> bool:
        """Tell whether the view does not hold what it would after a refresh."""
        recorded = self.metadata.get(_SOURCE_VERSION), self.metadata.get(_SOURCE_LOCATION)
        return recorded != (str(self.source.version), self.source.location) or not self._intact()

    def _intact(self) -> bool:
        """Tell whether the view holds just what the refresh left that its metadata tells of. Indices may have come."""
        recorded = self.metadata.get(_VIEW_VERSION, "")
        if recorded == str(self.view.version):
            return True
        if not recorded.isdecimal():
            return False
        try:
            then = self.view.checkout_version(int(recorded))
        except (ValueError, OSError):
            return False
        return _fragments(then) == _fragments(self.view)

    def run(self) -> dict[str, Any]:
        """Bring the view up to date, again where others were faster."""
        for attempt in range(1, _TRIES + 1):
            self.request.check_abandoned()
            if not self.full and not self.stale():
                self.rows = 0
                return self._answer("no_op")
            try:
                mode = self._once()
            except (ValueError, OSError) as err:
                self.request.check_abandoned()
                if translate(err)[0] != CONFLICT:
                    raise
                mode = ""
                time.sleep(0.05 * attempt)
            if mode:
                return self._answer(mode)
            self.view.checkout_latest()
            self._look()
        raise RefusedError(CONFLICT, "the view is written by others all the time: try again later")

    def _answer(self, mode: str) -> dict[str, Any]:
        version = self.request.changed(self.view)
        return {"version": version, "rows": self.rows, "source_version": self.source.version, "mode": mode}

    def _once(self) -> str:
        """Refresh once. Returns how, "" where another commit came in between and all must be looked at again."""
        self.rows = 0
        fragments = self.view.get_fragments()
        appended = self._appended() if fragments else None
        if appended is not None:
            # The view's first fragment is named as changed, which it is not: of two commits that name it one conflicts.
            return self._swap("incremental", self._write(appended), [], [fragments[0].metadata])
        if fragments and self.view.describe_indices():
            return self._swap("rebuild", self._write(None), [f.fragment_id for f in fragments], [])
        return self._replace()

    def _appended(self) -> list[Any] | None:
        """Return the source's fragments that have come since the view was refreshed, None where more has happened than that."""
        recorded = self.metadata.get(_SOURCE_VERSION, "")
        same = self.metadata.get(_SOURCE_LOCATION) == self.source.location
        if self.full or self.query.limit is not None or not same or not recorded.isdecimal() or not self._intact():
            return None
        try:
            then = self.source.dataset.checkout_version(int(recorded))
        except (ValueError, OSError):
            return None  # it was cleaned up
        fields = self._inputs(then)
        if then.version > self.source.version or fields != self._inputs(self.source.dataset):
            return None
        before, now = _fragments(then, fields), _fragments(self.source.dataset, fields)
        if any(now.get(id) != had for id, had in before.items()):
            return None
        return [f for f in self.source.dataset.get_fragments() if f.fragment_id not in before]

    def _inputs(self, source: lance.LanceDataset) -> set[int]:
        """Return the ids of the fields that the query reads."""
        expressions = [expression for _, expression in self.query.columns] + ([self.query.where] if self.query.where else [])
        names = {p.split(".")[0] for e in expressions for p in sql.inputs(sql.tokens(e, "the query"), source.schema)}
        return {i for field in source.lance_schema.fields() if field.name() in names for i in computed.ids(field)}

    def _stream(self, fragments: list[Any] | None, schema: pa.Schema) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(schema, self._batches(fragments, schema))

    def _batches(self, fragments: list[Any] | None, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield what the query gives of the source, or of some of its fragments."""
        if self.query.limit == 0 or (fragments is not None and not fragments):
            return
        scanner = self.source.dataset.scanner(
            columns={**dict(self.query.columns), ROW: "_rowid"},
            filter=self.query.where,
            limit=self.query.limit,
            fragments=fragments,
            batch_size=_BATCH_ROWS,
            io_buffer_size=computed.READ_AHEAD,
            scan_in_order=True,
        )
        for batch in scanner.to_batches():
            self.request.check_abandoned()
            self.rows += batch.num_rows
            columns = [_fitting(batch.column(f.name), f.type) for f in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def _write(self, fragments: list[Any] | None) -> list[Any]:
        """Write rows into new fragments, which nobody sees yet."""
        options: dict[str, Any] = {"max_rows_per_file": self.fragment_rows} if self.fragment_rows else {}
        schema = self.view.schema
        with _Computing(self.request):
            written: list[Any] = write_fragments(self._stream(fragments, schema), self.view, mode="append", **options)
        return written

    def _replace(self) -> str:
        """Put what the query gives in the place of all rows, and say so, in one commit."""
        options: dict[str, Any] = {"max_rows_per_file": self.fragment_rows} if self.fragment_rows else {}
        predicted = int(self.view.version) + 1
        kept = {key: value for key, value in self.metadata.items() if key != _SOURCE_TIME}
        schema = self.view.schema.with_metadata({**kept, **self._progress(predicted)})
        with _Computing(self.request):
            self.view.insert(self._stream(None, schema), mode="overwrite", **options)
        return "rebuild" if self.view.version == predicted else ""

    def _swap(self, mode: str, new: list[Any], removed: list[int], same: list[Any]) -> str:
        """Put new fragments into the view, beside those that it has or in their place, so that its indices stay; then say so."""
        self.request.check_abandoned()
        predicted = int(self.view.version)
        if new or removed:
            predicted += 1
            self.view = lance.LanceDataset.commit(
                self.view,
                lance.LanceOperation.Update(removed_fragment_ids=removed, updated_fragments=same, new_fragments=new),
                read_version=self.view.version,
                storage_options=dict(self.request.table.storage_options) or None,
                namespace_client=self.request.tables.client(self.request.caller),
                table_id=list(self.request.table.id),
                namespace_client_managed_versioning=True,
            )
        if self.view.version != predicted:
            return ""
        progress: dict[str, str | None] = {**self._progress(predicted + 1), _SOURCE_TIME: None}
        self.view.update_schema_metadata(progress)
        return mode if self.view.version == predicted + 1 else ""

    def _progress(self, version: int) -> dict[str, str]:
        return {
            _SOURCE_VERSION: str(self.source.version),
            _SOURCE_LOCATION: self.source.location,
            _REFRESHED: str(time.time_ns() // 1_000_000),
            _VIEW_VERSION: str(version),
        }


class _Computing:
    """Says why rows could not be computed: the library makes a text of what happens while it reads them."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, err: BaseException | None, trace: Any) -> None:
        if err is None:
            return
        self._request.check_abandoned()
        if isinstance(err, (ValueError, OSError, RuntimeError)):
            raise computed.failed(err, "the view's query") from err


def _whole(request: Request, name: str) -> int | None:
    value = request.get(name)
    if value is not None and (not isinstance(value, int) or value < 1):
        raise RefusedError(INVALID, f"{name} is {value!r}: it must be a whole number of 1 or more")
    return value


def _fitting(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return values if values.type == kind else values.cast(kind)


def _fragments(dataset: lance.LanceDataset, fields: set[int] | None = None) -> dict[int, tuple[Any, ...]]:
    """Return what says which rows the fragments of a table have, and which values, in some fields or in all."""
    found = {}
    for fragment in dataset.get_fragments():
        told = fragment.metadata
        files = tuple(repr(f) for f in told.files) if fields is None else computed.files(fragment, fields)
        deleted = told.deletion_file.asdict() if told.deletion_file else None
        found[fragment.fragment_id] = (told.physical_rows, repr(deleted), repr(told.overlays), files)
    return found
