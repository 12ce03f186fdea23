"""What a transaction's closure is given: the tables as they stand, and ways to change them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

import lance

from .errors import TABLE_ALREADY_EXISTS, RequestError
from .staging import Chain, StagedTable
from .wire import TableID

if TYPE_CHECKING:
    from lance.types import ReaderLike
    from typing_extensions import Self

TableName = str | Sequence[str]


class MergeStats(TypedDict):
    """What a merge did, in rows."""

    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int


class Transaction:
    """Changes to any number of tables that are published together or not at all.

    Tables are named as "ns$table" (with the catalog's delimiter) or as a list of names; `branch` is a branch that exists,
    None for main. A table is read at the version that was its latest when the transaction first touched it, and the
    transaction sees its own changes. Nobody else sees any of them before the closure has returned and the catalog has
    published all. The closure may run several times: it must compute everything from what it reads here, and leave no
    trace outside. Not for use by several threads at once. Methods that have nothing to tell return the transaction, so that
    calls can be chained.

    Errors: ValueError for a malformed table name; RequestError with code 4 for a table that does not exist, 22 for a branch
    that does not; LookupError where a table has no version yet and the operation needs one; whatever pylance raises
    for bad data, predicates or expressions.
    """

    def __init__(
        self,
        stage: Callable[[Chain], StagedTable],
        declare: Callable[[TableID], None],
        parse: Callable[[TableName], TableID],
    ) -> None:
        self._stage = stage
        self._declare = declare
        self._parse = parse
        self.staged: dict[Chain, StagedTable] = {}

    def dataset(self, table: TableName, *, branch: str | None = None) -> lance.LanceDataset:
        """Return the table as this transaction sees it, for reading only.

        If another writer changes a table that was read here and is written by this transaction, the closure runs again.
        A table that is only read is not guarded; `expect_unchanged` guards it.
        """
        return self._touch(table, branch).dataset()

    def create(self, table: TableName, data: ReaderLike, *, mode: Literal["create", "overwrite"] = "create") -> Self:
        """Make a new table of the data's schema and rows; with mode "overwrite", replace the table if there is one.

        The name is reserved at once (others see a declared table without versions); its first version is published with
        everything else. RequestError with code 5 if the table has a version already, with code 1 if its namespace is missing;
        ValueError for another mode.
        """
        if mode not in ("create", "overwrite"):
            raise ValueError(f'mode {mode!r} is unknown: it must be "create" or "overwrite" (to add rows, call append)')
        name = self._parse(table)
        try:
            self._declare(name)
        except RequestError as err:
            # Declared before, perhaps by an earlier attempt of this transaction: a table only if it has a version.
            if err.code != TABLE_ALREADY_EXISTS:
                raise
            if mode == "create" and self._touch(table, None).head is not None:
                raise
        self._touch(table, None).overwrite(data)
        return self

    def append(self, table: TableName, data: ReaderLike, *, branch: str | None = None) -> Self:
        """Add rows. If other writers get in between and the table was not read here, the rows move to the newer version
        without being written again.
        """
        self._touch(table, branch).append(data)
        return self

    def overwrite(self, table: TableName, data: ReaderLike, *, branch: str | None = None) -> Self:
        """Replace all rows and the schema; earlier versions stay readable."""
        self._touch(table, branch).overwrite(data)
        return self

    def delete(self, table: TableName, predicate: str, *, branch: str | None = None) -> int:
        """Delete the rows that match the SQL predicate and return their number."""
        return self._touch(table, branch).delete(predicate)

    def update(self, table: TableName, values: Mapping[str, str], where: str | None = None, *, branch: str | None = None) -> int:
        """Set columns to SQL expressions ({"n": "n + 1"}) in the matching rows (None = all) and return their number.

        The changed rows are held in memory. ValueError for an unknown column and for tables with blob columns.
        """
        return self._touch(table, branch).update(values, where)

    def merge_insert(self, table: TableName, on: str | Sequence[str], *, branch: str | None = None) -> MergeInsert:
        """Begin a merge of new rows into the table, matched on the given column or columns."""
        return MergeInsert(self._touch(table, branch), [on] if isinstance(on, str) else list(on))

    def operation(self, table: TableName, operation: lance.LanceOperation.BaseOperation, *, branch: str | None = None) -> Self:
        """Apply any Lance operation, built on the dataset that `dataset(table)` returned last."""
        self._touch(table, branch).apply(operation)
        return self

    def expect_unchanged(self, table: TableName, *, branch: str | None = None) -> Self:
        """Fail (and run the closure again) if another writer changes the table before this transaction is published.

        Unless the transaction writes the table anyway, it publishes a version in which nothing changed: the catalog
        compares versions only of tables that a batch writes.
        """
        self._touch(table, branch).expect_unchanged()
        return self

    def _touch(self, table: TableName, branch: str | None) -> StagedTable:
        chain = Chain(self._parse(table), "" if branch in (None, "main") else str(branch))
        staged = self.staged.get(chain)
        if staged is None:
            staged = self.staged[chain] = self._stage(chain)
        return staged


class MergeInsert:
    """A merge in the making, like `LanceDataset.merge_insert`: say what happens to which rows, then `execute`."""

    def __init__(self, staged: StagedTable, on: list[str]) -> None:
        self._staged = staged
        self._on = on
        self._rules: list[Callable[[lance.MergeInsertBuilder], object]] = []

    def when_matched_update_all(self, condition: str | None = None) -> MergeInsert:
        """Replace rows that match (only where the SQL condition over `source.` and `target.` columns holds)."""
        return self._rule(lambda builder: builder.when_matched_update_all(condition))

    def when_matched_delete(self) -> MergeInsert:
        """Delete rows that match."""
        return self._rule(lambda builder: builder.when_matched_delete())

    def when_not_matched_insert_all(self) -> MergeInsert:
        """Insert new rows that match none."""
        return self._rule(lambda builder: builder.when_not_matched_insert_all())

    def when_not_matched_by_source_delete(self, predicate: str | None = None) -> MergeInsert:
        """Delete rows of the table that no new row matches (only those that satisfy the predicate)."""
        return self._rule(lambda builder: builder.when_not_matched_by_source_delete(predicate))

    def execute(self, data: ReaderLike) -> MergeStats:
        """Merge the rows into the transaction and return how many were inserted, updated and deleted."""
        builder = self._staged.dataset().merge_insert(self._on)
        for rule in self._rules:
            rule(builder)
        transaction, stats = builder.execute_uncommitted(data)
        self._staged.apply_transaction(transaction)
        return MergeStats(
            num_inserted_rows=stats["num_inserted_rows"],
            num_updated_rows=stats["num_updated_rows"],
            num_deleted_rows=stats["num_deleted_rows"],
        )

    def _rule(self, rule: Callable[[lance.MergeInsertBuilder], object]) -> MergeInsert:
        self._rules.append(rule)
        return self
