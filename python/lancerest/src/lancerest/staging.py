"""One table's share of a transaction: changes written detached, one upon another, until all are published.

A detached version is a manifest beside the table's chain that nobody finds unless told its number. The catalog attaches
it: it publishes the same manifest under the next number of the chain. So data files are written once, whatever becomes
of the attempt, and an append can move to a newer version by writing one small manifest.

Each change gets a number of its own, though all are published at once: a writer that began earlier looks for conflicts
version by version, and would miss a change that is hidden below another.

Snapshots are opened by location and number, without the catalog: a published version never changes. Nothing here
publishes anything; module `commit` does.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import lance
import numpy as np
import pyarrow as pa
from lance.fragment import FragmentMetadata, RowIdSequence, write_fragments

from .first_version import stage_first_version
from .wire import Head, TableID, TableInfo

if TYPE_CHECKING:
    from lance.types import ReaderLike
    from lance_namespace import LanceNamespace


@dataclass(frozen=True)
class Chain:
    """A table and one of its branches ("" = main)."""

    table: TableID
    branch: str


@dataclass(frozen=True)
class Place:
    """Where a chain lies and how to read it there."""

    chain: Chain
    info: TableInfo
    namespace_client: LanceNamespace

    def open(self, version: int) -> lance.LanceDataset:
        """Open one version, straight from storage; credentials are refreshed through the catalog."""
        uri = self.info.location
        if self.chain.branch:
            uri = f"{uri.rstrip('/')}/tree/{self.chain.branch}"
        return lance.LanceDataset(
            uri,
            version,
            storage_options=self.info.storage_options,
            namespace_client=self.namespace_client,
            table_id=list(self.chain.table),
        )

    def holds(self, head: Head) -> bool:
        """Whether the version lies here: not if the table was dropped and made anew between two questions."""
        directory = self.info.location.rstrip("/").rpartition("/")[2]
        parts = head.manifest_path.split("/")
        return directory in parts or unquote(directory) in parts


@dataclass(frozen=True)
class Entry:
    """One entry of the batch: the manifest to publish as a version of a chain, and the Lance transaction inside it."""

    chain: Chain
    version: int
    manifest_path: str
    uuid: str

    def to_json(self) -> dict[str, Any]:
        """Return the entry as the catalog wants it."""
        entry: dict[str, Any] = {
            "id": list(self.chain.table),
            "version": self.version,
            "manifest_path": self.manifest_path,
        }
        if self.chain.branch:
            entry["branch"] = self.chain.branch
        return entry


class StagedTable:
    """The changes of one transaction to one chain. Used by one thread."""

    def __init__(self, place: Place, head: Head | None) -> None:
        self.place = place
        self.head = head
        self._current = place.open(head.version) if head else None
        self._base = self._current
        self._unflushed: list[FragmentMetadata] = []
        self._appended: list[FragmentMetadata] = []
        self._movable = True
        self._guarded = False
        # What was written so far, in order: the numbers of detached versions and the Lance transactions in them.
        self._detached: list[tuple[int, str]] = []
        self._first: Entry | None = None

    @property
    def next_version(self) -> int:
        """The version that the first change is to become."""
        return self.head.version + 1 if self.head else 1

    @property
    def written(self) -> bool:
        """Whether there is anything to publish."""
        return bool(self._first or self._unflushed or self._detached or self._guarded)

    def dataset(self) -> lance.LanceDataset:
        """Return the table as the transaction sees it. What was read here may decide later writes, so the table is no
        longer moved to a newer version behind the closure's back. LookupError if the table has no version yet.
        """
        self._movable = False
        return self._flush()

    def append(self, data: ReaderLike) -> None:
        """Write rows of the table's schema into new data files."""
        if self._current is None:
            self._create(data)
            return
        fragments = list(write_fragments(data, self._current, mode="append", **self._storage()))
        self._unflushed += fragments
        self._appended += fragments

    def overwrite(self, data: ReaderLike) -> None:
        """Replace all rows, and the schema by that of the data."""
        if self._current is None:
            self._create(data)
            return
        transaction = write_fragments(data, self._flush(), mode="overwrite", return_transaction=True, **self._storage())
        self.apply_transaction(transaction)

    def delete(self, predicate: str) -> int:
        """Delete the rows that match and return their number; no match writes nothing."""
        dataset = self.dataset()
        addresses = dataset.scanner(columns=[], filter=predicate, with_row_address=True).to_table()["_rowaddr"]
        if addresses:
            removed = remove_rows(dataset, addresses)
            self.apply(lance.LanceOperation.Delete(removed.updated, removed.emptied, predicate))
        return len(addresses)

    def update(self, values: Mapping[str, str], where: str | None) -> int:
        """Set columns to SQL expressions in the rows that match and return their number; no match writes nothing.

        Like Lance's own update: the rows are rewritten in new fragments and deleted from the old ones.
        """
        dataset = self.dataset()
        found = scan_changed(dataset, values, where)
        if not found.num_rows:
            return 0
        rows = found.select(dataset.schema.names).cast(dataset.schema)
        fragments = list(write_fragments(rows, dataset, mode="append", **self._storage()))
        if dataset.has_stable_row_ids:
            keep_row_ids(fragments, found["_rowid"])
        removed = remove_rows(dataset, found["_rowaddr"])
        self.apply(
            lance.LanceOperation.Update(
                removed_fragment_ids=removed.emptied,
                updated_fragments=removed.updated,
                new_fragments=fragments,
                update_mode="rewrite_rows",
            )
        )
        return len(rows)

    def apply(self, operation: lance.LanceOperation.BaseOperation) -> None:
        """Put one Lance operation, built on `dataset()`, upon what is staged."""
        dataset = self.dataset()
        self.apply_transaction(lance.Transaction(dataset.version, operation))

    def apply_transaction(self, transaction: lance.Transaction) -> None:
        """Like apply, for a transaction that Lance made itself (an uncommitted merge)."""
        self._movable = False
        self._commit(transaction)

    def expect_unchanged(self) -> None:
        """Publish a version of the table even if nothing changes in it, so that any other writer of it is a conflict."""
        self.dataset()
        self._guarded = True

    def move_to(self, head: Head | None) -> bool:
        """Put the appended data files upon a newer version, without writing them again.

        False, with nothing changed, where only running the closure again can tell what to write: the table was read or
        changed otherwise, or its schema is another one now.
        """
        if not self._movable or head is None or self._base is None or not self.place.holds(head):
            return False
        base = self.place.open(head.version)
        if base.lance_schema != self._base.lance_schema:
            return False
        self.head, self._base, self._current = head, base, base
        self._detached = []
        self._unflushed = list(self._appended)
        return True

    def entries(self) -> list[Entry]:
        """Return what to publish, in order; the table must be `written`."""
        if self._first is not None:
            return [self._first]
        self._flush()
        if not self._detached:
            self.apply(lance.LanceOperation.Append([]))
        assert self.head is not None, "a table with a dataset has a head"
        directory = posixpath.dirname(self.head.manifest_path)
        return [
            Entry(self.place.chain, version, f"{directory}/d{detached}.manifest", uuid)
            for version, (detached, uuid) in enumerate(self._detached, self.next_version)
        ]

    def _create(self, data: ReaderLike) -> None:
        if self._first is not None:
            raise LookupError(
                f"table {'/'.join(self.place.chain.table)} gets its first version in this transaction: give all its rows at once"
            )
        self._movable = False
        staged = stage_first_version(self.place.chain.table, self.place.info, data)
        self._first = Entry(self.place.chain, 1, staged.manifest_path, staged.uuid)

    def _flush(self) -> lance.LanceDataset:
        if self._current is None:
            raise LookupError(f"table {'/'.join(self.place.chain.table)} has no version yet: create it before reading it")
        if self._unflushed:
            fragments, self._unflushed = self._unflushed, []
            self._commit(lance.Transaction(self._current.version, lance.LanceOperation.Append(fragments)))
        return self._current

    def _commit(self, transaction: lance.Transaction) -> None:
        assert self._current is not None, "only a table with a version is changed"
        self._current = lance.LanceDataset.commit(self._current, transaction, detached=True, **self._storage())
        self._detached.append((self._current.version, transaction.uuid))

    def _storage(self) -> dict[str, Any]:
        return {
            "storage_options": self.place.info.storage_options,
            "namespace_client": self.place.namespace_client,
            "table_id": list(self.place.chain.table),
        }


@dataclass(frozen=True)
class RemovedRows:
    """What deleting rows leaves of a table's fragments."""

    updated: list[FragmentMetadata]
    emptied: list[int]


def remove_rows(dataset: lance.LanceDataset, addresses: pa.ChunkedArray) -> RemovedRows:
    """Write deletion files for the rows at these addresses; the table itself is untouched."""
    # An address is the fragment's number in the upper 32 bits and the row's offset in the lower.
    sorted_addresses = np.sort(addresses.to_numpy())
    updated: list[FragmentMetadata] = []
    emptied: list[int] = []
    for number in np.unique(sorted_addresses >> 32).tolist():
        offsets = sorted_addresses[(sorted_addresses >> 32) == number] & 0xFFFFFFFF
        fragment = dataset.get_fragment(number)
        assert fragment is not None, "the address came from a scan of this dataset"
        left = fragment.delete_rows(offsets.tolist())
        if left is None:
            emptied.append(number)
        else:
            updated.append(left)
    return RemovedRows(updated, emptied)


def scan_changed(dataset: lance.LanceDataset, values: Mapping[str, str], where: str | None) -> pa.Table:
    """Return the matching rows with the new values, their addresses and their ids, in the order they lie in."""
    schema = dataset.schema
    unknown = sorted(set(values) - set(schema.names))
    if unknown:
        raise ValueError(f"cannot update {unknown}: the table's columns are {schema.names}")
    blobs = [f.name for f in schema if (f.metadata or {}).get(b"lance-encoding:blob")]
    if blobs:
        raise ValueError(f"cannot update a table with blob columns {blobs}: rewrite its rows with merge_insert")
    columns = {name: values.get(name, f"`{name}`") for name in schema.names}
    return dataset.scanner(columns=columns, filter=where, with_row_id=True, with_row_address=True).to_table()


def keep_row_ids(fragments: Iterable[FragmentMetadata], row_ids: pa.ChunkedArray) -> None:
    """Give rewritten rows the ids they had, on a table whose row ids are stable."""
    offset = 0
    for fragment in fragments:
        ids = row_ids.slice(offset, fragment.physical_rows)
        fragment.row_id_meta = RowIdSequence(ids).to_inline_metadata()
        offset += fragment.physical_rows
