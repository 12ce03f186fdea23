"""AlterTableBackfillColumns: a computed column's values, for the rows that have none or whose inputs have changed.

A fragment is read and, where a value differs from what the expression gives, gets a new file for this one column, which a
DataReplacement puts in the place of the old values. Other columns and their files and indices stay as they are; an index on the
column loses the fragment, so that queries read it instead. Lance refuses the commit where another writer has rewritten the
fragment since it was read, and allows it beside appends and deletes, so that values are those of their rows.

What is done is seen from the data: whoever runs a backfill again goes on where the last one stopped. The column's metadata names
the version at which every fragment was found right, so that what is still as it was then is not read again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.fragment import DataFile, LanceFragment

from ..errors import CONFLICT, INVALID, VERSION_NOT_FOUND, RefusedError, translate
from ..request import Request
from ..tables import MAIN
from . import computed, paths, sql

# Field metadata: branch/version at which all fragments held what the expression gives.
_COMPLETE = "lancerest.backfill.complete_at"
_BATCH_ROWS = 8192
# A commit is made once one of these is reached.
_COMMIT_FRAGMENTS = 64
_COMMIT_ROWS = 4_000_000
_COMMIT_SECONDS = 60.0
# Conflicts in a row, without any progress, after which the table is too busy.
_CONFLICTS = 20
# Whoever appends all the time is not run after for ever: rows that come later are for the next backfill.
_PASSES = 5

# What says which values the rows of a fragment have: the fragment, the expression, files and overlays.
_Signature = tuple[int, str, computed.Files, tuple[str, ...]]


@dataclass
class _Limits:
    """How much goes into a commit, and into all of the backfill."""

    fragments: int
    rows: int
    seconds: float
    most: int | None  # fragments to write in all


@dataclass
class _Staged:
    """Files that wait for their commit."""

    signatures: list[_Signature] = field(default_factory=list)
    groups: list[Any] = field(default_factory=list)
    deletions: list[int] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)  # rows
    rows: int = 0
    since: float = field(default_factory=time.monotonic)


def backfill(request: Request) -> dict[str, Any]:
    """AlterTableBackfillColumns (spec 15). With check nothing but the arguments is looked at.

    Answers the table's version and how many rows have got another value. Errors: COLUMN_NOT_FOUND; INVALID for a column that is
    not computed, a wrong where, and an expression that fails for a row; UNSUPPORTED for a column that a function computes;
    VERSION_NOT_FOUND for a read_version that is not there; CONFLICT where the table is rewritten faster than values are computed.
    """
    path = str(request.get("column", ""))
    if not path:
        raise RefusedError(INVALID, "column is missing: name the computed column to fill")
    limits = _limits(request)
    work = _Backfill(request, request.changeable(), path, str(request.get("where", "")).strip())
    if request.get("check"):
        return {"version": int(work.dataset.version), "rows": 0}
    work.run(limits)
    return {"version": request.changed(work.dataset), "rows": work.rows}


def _limits(request: Request) -> _Limits:
    given: dict[str, int | None] = {}
    for name in ("commit_granularity", "num_frags", "checkpoint_size", "max_checkpoint_size", "read_version"):
        value = request.get(name)
        if value is not None and (not isinstance(value, int) or value < 1):
            raise RefusedError(INVALID, f"{name} is {value!r}: it must be a whole number of 1 or more")
        given[name] = value
    seconds = request.get("batch_checkpoint_flush_interval_seconds")
    if seconds is not None and (not isinstance(seconds, (int, float)) or not seconds > 0):
        raise RefusedError(INVALID, f"batch_checkpoint_flush_interval_seconds is {seconds!r}: it must be more than 0")
    sizes = [size for size in (given["checkpoint_size"], given["max_checkpoint_size"]) if size]
    return _Limits(
        given["commit_granularity"] or _COMMIT_FRAGMENTS,
        min(sizes, default=_COMMIT_ROWS),
        seconds or _COMMIT_SECONDS,
        given["num_frags"],
    )


class _Backfill:
    """One backfill of one column."""

    def __init__(self, request: Request, dataset: lance.LanceDataset, path: str, where: str) -> None:
        self.request, self.dataset, self.where = request, dataset, where
        self.declared = computed.find(dataset.schema, path)
        self.name = self.declared.name
        self.path = paths.canonical(sql.quote(self.name))
        self.rows = 0
        self._branch = request.table.branch or MAIN
        self._bound()
        if where:
            computed.predicate(dataset, where, "where")
        version = request.get("read_version")
        if version is not None:
            self._at(int(version))
        self._right: dict[_Signature, int] = {}
        self._written = 0

    def _bound(self) -> None:
        """Look anew at the column, which others may have dropped and declared again, and at what it is computed of."""
        self.declared = computed.find(self.dataset.schema, self.path)
        self.field = self.dataset.schema.field(self.name)
        computed.typed(self.dataset, self.declared.expression, f"column {self.name!r}")
        fields = {f.name(): f for f in self.dataset.lance_schema.fields()}
        self._ids = computed.ids(fields[self.name])
        self._concerned = {i for name in {self.name, *self.declared.roots} if name in fields for i in computed.ids(fields[name])}

    def _at(self, version: int) -> lance.LanceDataset:
        try:
            return self.dataset.checkout_version((self._branch, version))
        except (ValueError, OSError) as err:
            raise RefusedError(VERSION_NOT_FOUND, f"read_version {version}: there is no such version of the table") from err

    def run(self, limits: _Limits) -> None:
        """Fill the column, in commits of bounded size, until all rows are right that the table has then."""
        self._know()
        looked, passes, conflicts = False, 0, 0
        while passes < _PASSES and self._room(limits) and (todo := self._todo()):
            looked, before = True, self.rows
            if self._pass(todo, limits):
                passes, conflicts = passes + 1, 0
            else:
                conflicts = conflicts + 1 if self.rows == before else 0
                self._pause(conflicts)
            self.dataset.checkout_latest()
            self._bound()
        if looked and not self.where and not self._todo():
            self._record()

    def _room(self, limits: _Limits) -> bool:
        return limits.most is None or self._written < limits.most

    def _pause(self, conflicts: int) -> None:
        if conflicts >= _CONFLICTS:
            raise RefusedError(CONFLICT, "other writers rewrite the table faster than values can be computed; try again later")
        self.request.check_abandoned()
        time.sleep(random.uniform(0, 0.05) * conflicts)  # so that two backfills do not meet again

    def _know(self) -> None:
        """Take over what an earlier backfill found right, which it noted with the version, if that is still there."""
        noted = (self.field.metadata or {}).get(_COMPLETE.encode(), b"").decode(errors="replace")
        branch, _, version = noted.rpartition("/")
        if branch != self._branch or not version.isdecimal() or self.where:
            return
        try:
            then = self._at(int(version))
        except RefusedError:
            return  # it was cleaned up
        for fragment in then.get_fragments():
            self._right[self._signature(fragment)] = fragment.num_deletions

    def _signature(self, fragment: LanceFragment) -> _Signature:
        overlays = [repr(o) for o in fragment.metadata.overlays]
        return fragment.fragment_id, self.declared.expression, computed.files(fragment, self._concerned), tuple(overlays)

    def _todo(self) -> list[LanceFragment]:
        """Return the fragments that are not known to be right."""
        return [f for f in self.dataset.get_fragments() if not self._known(f)]

    def _known(self, fragment: LanceFragment) -> bool:
        deletions = self._right.get(self._signature(fragment))
        return deletions is not None and deletions <= fragment.num_deletions  # with fewer, rows have come back

    def _pass(self, todo: list[LanceFragment], limits: _Limits) -> bool:
        """Go through fragments. Returns whether all commits could be made; what conflicts is left for the next pass."""
        staged = _Staged()
        for fragment in todo:
            self.request.check_abandoned()
            if not self._room(limits):
                break
            signature = self._signature(fragment)
            if not any(changed.any() for _, changed, _ in self._values(fragment)):
                self._right[signature] = fragment.num_deletions
                continue
            self._stage(fragment, signature, staged)
            enough = len(staged.groups) >= limits.fragments or staged.rows >= limits.rows
            if enough or time.monotonic() - staged.since >= limits.seconds:
                if not self._commit(staged):
                    return False
                staged = _Staged()
        return self._commit(staged)

    def _stage(self, fragment: LanceFragment, signature: _Signature, staged: _Staged) -> None:
        """Write a fragment's values into a file of their own."""
        counted = [0]
        schema = pa.schema([self.field])
        rows = pa.RecordBatchReader.from_batches(schema, self._column(fragment, schema, counted))
        where = self.dataset.uri if self._branch == MAIN else f"{self.dataset.uri}/tree/{self._branch}"
        written = LanceFragment.create(
            where,
            rows,
            mode="create",
            data_storage_version=self.dataset.data_storage_version,
            storage_options=dict(self.request.table.storage_options) or None,
            session=self.request.tables.session,
        )
        file = written.files[0]
        new = DataFile(
            file.path,
            [self._ids[i] for i in file.fields],  # Lance numbers the fields of the file's schema in the same order
            file.column_indices,
            file.file_major_version,
            file.file_minor_version,
            file.file_size_bytes,
        )
        staged.groups.append(lance.LanceOperation.DataReplacementGroup(fragment.fragment_id, new))
        staged.signatures.append(signature)
        staged.deletions.append(fragment.num_deletions)
        staged.changed.append(counted[0])
        staged.rows += fragment.physical_rows
        self._written += 1

    def _column(self, fragment: LanceFragment, schema: pa.Schema, counted: list[int]) -> Iterator[pa.RecordBatch]:
        """Yield all of a fragment's values by position: deleted rows have null."""
        at = 0
        for offsets, changed, values in self._values(fragment):
            self.request.check_abandoned()
            counted[0] += int(np.count_nonzero(changed))
            until = int(offsets[-1]) + 1
            indices = np.full(until - at, -1, np.int64)
            indices[offsets - at] = np.arange(len(offsets))
            placed = values.take(pa.array(indices, mask=indices < 0)) if len(offsets) < until - at else values
            yield pa.RecordBatch.from_arrays([placed], schema=schema)
            at = until
        while at < fragment.physical_rows:
            n = min(_BATCH_ROWS, fragment.physical_rows - at)
            yield pa.RecordBatch.from_arrays([pa.nulls(n, self.field.type)], schema=schema)
            at += n

    def _values(self, fragment: LanceFragment) -> Iterator[tuple[Any, Any, pa.Array]]:
        """Yield a fragment's live rows in their order: offsets, which of them get another value, and the values then."""
        old = {"old": sql.quote(self.name), "at": "_rowaddr"}
        new = {"new": self.declared.expression, "at": "_rowaddr"}
        if not self.where:
            for batch in self._scan(fragment, {**old, **new}):
                values = self._cast(batch.column("new"))
                yield _offsets(batch), _differ(batch.column("old"), values), values
            return
        # The expression is to see no other rows, whose values it may be unable to take.
        matching = _Cursor(self._scan(fragment, new, self.where))
        for batch in self._scan(fragment, old):
            offsets, values = _offsets(batch), batch.column("old")
            at, found = matching.until(int(offsets[-1]))
            if len(at):
                indices = np.arange(len(offsets))
                indices[np.searchsorted(offsets, at)] = len(offsets) + np.arange(len(at))
                values = pa.concat_arrays([values, self._cast(found)]).take(pa.array(indices))
            yield offsets, _differ(batch.column("old"), values), values

    def _cast(self, values: pa.Array) -> pa.Array:
        return values if values.type == self.field.type else values.cast(self.field.type)

    def _scan(self, fragment: LanceFragment, columns: dict[str, str], where: str | None = None) -> Iterator[pa.RecordBatch]:
        """Yield a fragment's rows in their order. INVALID where a row's values are beyond the expression."""
        scanner = self.dataset.scanner(
            columns=columns,
            filter=where,
            fragments=[fragment],
            batch_size=_BATCH_ROWS,
            io_buffer_size=computed.READ_AHEAD,
            scan_in_order=True,
        )
        try:
            for batch in scanner.to_batches():
                self.request.check_abandoned()
                if batch.num_rows:
                    yield batch
        except (ValueError, OSError, RuntimeError) as err:
            raise computed.failed(err, f"column {self.name!r}: {self.declared.expression}") from err

    def _commit(self, staged: _Staged) -> bool:
        """Commit what is staged. Returns false where some of it must be done again; that part is not committed."""
        complete = True
        for attempt in range(1, _CONFLICTS + 1):
            if not staged.groups:
                return complete
            self.request.check_abandoned()
            try:
                self.dataset = lance.LanceDataset.commit(
                    self.dataset,
                    lance.LanceOperation.DataReplacement(staged.groups),
                    read_version=self.dataset.version,
                    storage_options=dict(self.request.table.storage_options) or None,
                    namespace_client=self.request.tables.client(self.request.caller),
                    table_id=list(self.request.table.id),
                    namespace_client_managed_versioning=True,
                )
            except (ValueError, OSError) as err:
                if translate(err)[0] != CONFLICT:
                    raise
                complete = False
                self.dataset.checkout_latest()
                self._bound()
                self._keep_valid(staged)
                time.sleep(random.uniform(0, 0.02) * attempt)
                continue
            self._committed(staged)
            return complete
        return False

    def _keep_valid(self, staged: _Staged) -> None:
        """Leave out what was computed of fragments that others have rewritten."""
        there = {self._signature(f): f.num_deletions for f in self.dataset.get_fragments()}
        keep = [i for i, signature in enumerate(staged.signatures) if there.get(signature, -1) >= staged.deletions[i]]
        for name in ("signatures", "groups", "deletions", "changed"):
            values = getattr(staged, name)
            setattr(staged, name, [values[i] for i in keep])

    def _committed(self, staged: _Staged) -> None:
        """Note what is right now: fragments with the new file, and inputs as they were read."""
        self.rows += sum(staged.changed)
        fragments = {f.fragment_id: f for f in self.dataset.get_fragments()}
        mine = set(self._ids)
        for signature, group, deletions in zip(staged.signatures, staged.groups, staged.deletions, strict=True):
            fragment = fragments.get(group.fragment_id)
            if fragment is None:
                continue
            now = computed.files(fragment, self._concerned)
            inputs = {path for path, fields in now if not mine & set(fields)}
            # A file that held the column beside inputs is still there, without the column.
            if inputs <= {path for path, _ in signature[2]} and not fragment.metadata.overlays:
                self._right[self._signature(fragment)] = deletions

    def _record(self) -> None:
        """Note at which version all was right, unless another backfill has just done so."""
        mine, self._right = self._right, {}
        self._know()
        todo, self._right = self._todo(), mine
        if not todo:
            return
        noted = f"{self._branch}/{self.dataset.version}"
        self.dataset.update_field_metadata({self.path: {_COMPLETE: noted}})


class _Cursor:
    """The computed values of some rows of a fragment, by offset."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._rest: pa.RecordBatch | None = None

    def until(self, last: int) -> tuple[Any, pa.Array]:
        """Return the offsets and values of the rows that come next, up to an offset."""
        offsets: list[Any] = []
        values: list[pa.Array] = []
        while (batch := self._rest or next(self._batches, None)) is not None:
            at = _offsets(batch)
            n = int(np.searchsorted(at, last, side="right"))
            offsets.append(at[:n])
            values.append(batch.column("new").slice(0, n))
            self._rest = batch.slice(n) if n < len(at) else None
            if self._rest is not None:
                break
        if not offsets:
            return np.empty(0, np.int64), pa.nulls(0)
        return np.concatenate(offsets), pa.concat_arrays(values)


def _offsets(batch: pa.RecordBatch) -> Any:
    """Return the rows' positions in their fragment."""
    return (np.asarray(batch.column("at")) & 0xFFFFFFFF).astype(np.int64)


def _differ(old: pa.Array, new: pa.Array) -> Any:
    """Return which values differ: nulls are alike, and floats are where they have the same bits."""
    if new.equals(old):
        return np.zeros(len(new), bool)
    if old.null_count == len(old):
        return np.asarray(new.is_valid())
    kind = old.type
    if pa.types.is_floating(kind):
        bits = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[kind.bit_width]
        old, new = old.view(bits), new.view(bits)
    if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
        return np.fromiter((not _alike(old[i : i + 1], new[i : i + 1]) for i in range(len(old))), bool, len(old))
    same = pc.fill_null(pc.equal(old, new), False)
    both = pc.and_(old.is_null(), new.is_null())
    return ~np.asarray(pc.or_(same, both))


def _alike(old: pa.Array, new: pa.Array) -> bool:
    # NaN is not equal to itself, and is alike all the same.
    return bool(new.equals(old)) or repr(new.to_pylist()) == repr(old.to_pylist())
