"""The first version of a table, written but not published.

Lance cannot write a detached version of a table that has none. But a writer on a catalog that manages versions stages
its manifest and asks the catalog to publish it: so the first version is written against a stand-in for the catalog that
keeps the request. The real catalog publishes the staged manifest with the rest of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import lance
import lance_namespace as ln
from lance.fragment import write_fragments
from lance_namespace import LanceNamespace

from .wire import TableID, TableInfo

if TYPE_CHECKING:
    from lance.types import ReaderLike


@dataclass(frozen=True)
class StagedFirstVersion:
    """A staged manifest of version 1 and the Lance transaction inside it."""

    manifest_path: str
    uuid: str


class OvertakenError(Exception):
    """The table became another one while it was looked at: it got its first version, or was dropped and made anew.

    The closure has to run again. Never leaves the package.
    """


def stage_first_version(table: TableID, info: TableInfo, data: ReaderLike) -> StagedFirstVersion:
    """Write the data and a staged manifest of version 1 at the table's location. Nobody sees it until it is published.

    OvertakenError if the table turns out to have a version in storage.
    """
    try:
        transaction = write_fragments(
            data, info.location, mode="create", return_transaction=True, storage_options=info.storage_options
        )
    except OSError as err:
        if has_version(info):
            raise OvertakenError(f"table {'/'.join(table)} got its first version from another writer") from err
        raise
    stand_in = _StandIn(info)
    lance.LanceDataset.commit(
        info.location,
        transaction,
        storage_options=info.storage_options,
        namespace_client=stand_in,
        table_id=list(table),
        namespace_client_managed_versioning=True,
    )
    request = stand_in.request
    if request["version"] != 1:
        raise OvertakenError(f"table {'/'.join(table)} got its first version from another writer")
    return StagedFirstVersion(manifest_path=request["manifest_path"], uuid=transaction.uuid)


def has_version(info: TableInfo) -> bool:
    """Report whether storage holds a version of the table."""
    try:
        lance.LanceDataset(info.location, storage_options=info.storage_options)
    except (OSError, ValueError):
        return False
    return True


class _StandIn(LanceNamespace):
    """A catalog of one table without versions that accepts the first one and keeps the request."""

    def __init__(self, info: TableInfo) -> None:
        self._info = info
        self.request: dict[str, Any] = {}

    def namespace_id(self) -> str:
        return f"first version of {self._info.location}"

    def describe_table(self, request: ln.DescribeTableRequest) -> ln.DescribeTableResponse:
        return ln.DescribeTableResponse(
            location=self._info.location, storage_options=self._info.storage_options, managed_versioning=True
        )

    # Lance hands the requests of these two over as plain mappings.
    def list_table_versions(self, request: Any) -> ln.ListTableVersionsResponse:
        return ln.ListTableVersionsResponse(versions=[])

    def create_table_version(self, request: Any) -> ln.CreateTableVersionResponse:
        self.request = dict(request)
        return ln.CreateTableVersionResponse(
            version=ln.TableVersion(version=request["version"], manifest_path=request["manifest_path"])
        )
