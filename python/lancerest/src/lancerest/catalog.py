"""The catalog as seen from Python: open and create tables, read several as of one moment, change several at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

import lance
import pyarrow as pa
from lance.namespace import RestNamespace

from .commit import Committed, Committer, Deadline
from .errors import ConflictError, Contended
from .first_version import OvertakenError
from .staging import Chain, Place, StagedTable
from .transaction import TableName, Transaction
from .wire import Head, TableID, Wire, split_id

if TYPE_CHECKING:
    from lance.types import ReaderLike

T = TypeVar("T")

DEFAULT_URI: Final = "http://127.0.0.1:2333"
REQUEST_TIMEOUT: Final = 30.0


def connect(
    uri: str = DEFAULT_URI,
    *,
    api_key: str | None = None,
    headers: Mapping[str, str] | None = None,
    delimiter: str = "$",
) -> Catalog:
    """Return a catalog at the given URL. Nothing is sent yet.

    `api_key` goes out as the header x-api-key, `headers` as they are, with every request; `delimiter` joins the parts of
    table names given as one string.
    """
    all_headers = dict(headers or {})
    if api_key is not None:
        all_headers["x-api-key"] = api_key
    return Catalog(uri, all_headers, delimiter)


class Catalog:
    """One catalog, at `uri`. Safe for use by many threads.

    `namespace_client` is pylance's own client of it, for everything that is not here: it goes into
    `lance.write_dataset(..., namespace_client=..., table_id=[...])`, lists tables, creates namespaces and so on.
    """

    def __init__(self, uri: str, headers: Mapping[str, str], delimiter: str) -> None:
        self._wire = Wire(uri, headers, delimiter)
        self._delimiter = delimiter
        self.uri = uri
        properties = {f"header.{name}": value for name, value in headers.items()}
        self.namespace_client = RestNamespace(uri=uri, delimiter=delimiter, **properties)

    def open(self, table: TableName, version: int | str | None = None, branch: str | None = None) -> lance.LanceDataset:
        """Open a table: its latest version, a version's number or a tag; on a branch, or on main if that is None.

        Writes to the dataset go through the catalog. Errors are pylance's own (ValueError or OSError) for a table, version, tag
        or branch that does not exist.
        """
        table_id = list(self._parse(table))
        if branch in (None, "main"):
            return lance.dataset(version=version, namespace_client=self.namespace_client, table_id=table_id)
        if isinstance(version, str):
            raise ValueError(f"tag {version!r} names its branch itself: open it without branch {branch!r}")
        dataset = lance.dataset(namespace_client=self.namespace_client, table_id=table_id)
        return dataset.checkout_version((branch, version))

    def create(self, table: TableName, data: ReaderLike | pa.Schema, **options: Any) -> lance.LanceDataset:
        """Make a table from data, or an empty one from a schema, and return it. `options` go to `lance.write_dataset`.

        pylance raises OSError if the table exists or its namespace does not.
        """
        rows = data.empty_table() if isinstance(data, pa.Schema) else data
        return lance.write_dataset(
            rows, mode="create", namespace_client=self.namespace_client, table_id=list(self._parse(table)), **options
        )

    def latest(self, table: TableName, branch: str | None = None) -> int | None:
        """Return the number of the table's latest version, None if it was declared and never written.

        RequestError with code 4 if there is no such table, with code 22 if there is no such branch.
        """
        head = self._head(self._chain(table, branch), REQUEST_TIMEOUT)
        return head.version if head else None

    def snapshot(self, tables: Iterable[TableName], *, timeout: float = 30.0) -> list[lance.LanceDataset]:
        """Open the main branches of several tables as they stood together at one moment, in the order given.

        The latest versions are asked for until two rounds in a row agree: versions only grow, so all tables stood at
        those versions between the two rounds. ConflictError if writers leave no such moment within `timeout` seconds;
        LookupError for a table without a version; RequestError with code 4 if one is missing; TypeError for a single name.
        """
        if isinstance(tables, str):
            raise TypeError(f"give a list of tables, such as [{tables!r}], and not one name")
        chains = [self._chain(table, None) for table in tables]
        deadline = Deadline(timeout)
        before = [self._head(chain, deadline.left()) for chain in chains]
        for attempt in itertools.count(1):
            after = [self._head(chain, deadline.left()) for chain in chains]
            if after == before:
                break
            if deadline.over():
                raise ConflictError(moving(chains, before, after), attempts=attempt, last="tables kept changing while read")
            before = after
        return [self._open_at(chain, head) for chain, head in zip(chains, before, strict=True)]

    def transaction(
        self,
        fn: Callable[[Transaction], T],
        *,
        retries: int = 20,
        timeout: float = 60.0,
        context: Mapping[str, str] | None = None,
    ) -> Committed[T]:
        """Run `fn` with a Transaction and publish everything it wrote in one atomic commit.

        When another writer was first, tables that were only appended to (and not read) move to the newer version as they
        are; anything else runs `fn` again from fresh snapshots, after a random pause that grows. If `fn` raises, nothing
        is published. `context` is recorded with the transaction and shown by DescribeTransaction.

        Isolation: all tables written are checked, so the result is as if transactions that write a table in common ran
        one after the other. Tables only read may change meanwhile (write skew) unless `expect_unchanged` names them.

        Errors: ConflictError after 1 + `retries` attempts or `timeout` seconds, nothing applied; CommitUnknownError if it was
        sent and its fate could not be learned; RequestError if the catalog refused it for another reason, nothing applied.
        """
        committer = Committer(self._wire, self._begin, context or {})
        return committer.run(fn, retries, Deadline(timeout))

    def _open_at(self, chain: Chain, head: Head | None) -> lance.LanceDataset:
        if head is None:
            raise LookupError(f"table {'/'.join(chain.table)} has no version yet: create it before reading it")
        return self.open(chain.table, version=head.version)

    def _begin(self, deadline: Deadline) -> Transaction:
        return Transaction(
            stage=lambda chain: self._stage(chain, deadline),
            declare=lambda table: self._wire.declare(table, deadline.left()),
            parse=self._parse,
        )

    def _stage(self, chain: Chain, deadline: Deadline) -> StagedTable:
        head = self._head(chain, deadline.left())
        place = Place(chain, self._wire.describe(chain.table, deadline.left()), self.namespace_client)
        if head is not None and not place.holds(head):
            raise OvertakenError(f"table {'/'.join(chain.table)} was dropped and made anew")
        return StagedTable(place, head)

    def _head(self, chain: Chain, timeout: float) -> Head | None:
        return self._wire.head(chain.table, chain.branch, timeout)

    def _chain(self, table: TableName, branch: str | None) -> Chain:
        return Chain(self._parse(table), "" if branch in (None, "main") else str(branch))

    def _parse(self, table: TableName) -> TableID:
        return split_id(table, self._delimiter)


def moving(chains: list[Chain], before: list[Head | None], after: list[Head | None]) -> list[Contended]:
    """Return the tables that got a version between two looks."""
    return [
        Contended(chain.table, chain.branch, new.version)
        for chain, old, new in zip(chains, before, after, strict=True)
        if new is not None and new != old
    ]
