"""Open tables, kept between requests.

The catalog says with each request which version of which directory is meant, so that an answer is never older than the last
commit that was acknowledged, and what is kept here can only be right or unused.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Any

import lance
from lance_namespace import LanceNamespace, connect

MAIN = "main"
OPERATION_HEADER = "X-Lancerest-Operation"
_TABLES_MOST = 128
_CLIENTS_MOST = 64


@dataclass(frozen=True)
class Caller:
    """Where the catalog is, and as whom to speak to it: the headers are the caller's own and are secret.

    Commits name the operation that they belong to, where it has a name.
    """

    uri: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    operation: str = ""

    @property
    def reader(self) -> Caller:
        """The caller as one who commits nothing: what one operation opened others read."""
        return replace(self, operation="")


@dataclass(frozen=True)
class Table:
    """A version of a table, as the catalog has it: 0 of a table without data, None for the latest. No branch is main."""

    id: tuple[str, ...]
    location: str
    version: int | None
    branch: str
    storage_options: tuple[tuple[str, str], ...] = field(repr=False)

    @property
    def reference(self) -> tuple[str, int | None]:
        return (self.branch or MAIN, self.version)


class Tables:
    """The open tables of a worker."""

    def __init__(self, index_cache: int, metadata_cache: int) -> None:
        """Bound the caches, in bytes."""
        self._session: Any = lance.Session(  # type: ignore[attr-defined]
            index_cache_size_bytes=index_cache, metadata_cache_size_bytes=metadata_cache
        )
        self._lock = threading.Lock()
        self._clients: OrderedDict[Caller, LanceNamespace] = OrderedDict()
        self._open: OrderedDict[Any, lance.LanceDataset] = OrderedDict()

    def client(self, caller: Caller) -> LanceNamespace:
        """Return a client of the catalog that speaks as the caller."""
        with self._lock:
            client = self._clients.get(caller)
            if client is None:
                headers = dict(caller.headers)
                if caller.operation:
                    headers[OPERATION_HEADER] = caller.operation
                client = connect("rest", {"uri": caller.uri, **{f"header.{name}": value for name, value in headers.items()}})
                self._clients[caller] = client
                if len(self._clients) > _CLIENTS_MOST:
                    self._clients.popitem(last=False)
            self._clients.move_to_end(caller)
            return client

    def read(self, caller: Caller, table: Table) -> lance.LanceDataset:
        """Return a version to read. Others read the same object: it must not be changed."""
        key = (caller.reader, table)
        with self._lock:
            found = self._open.get(key)
            if found is not None:
                self._open.move_to_end(key)
                return found
        return self._keep(key, self._opened(caller, table))

    def change(self, caller: Caller, table: Table) -> lance.LanceDataset:
        """Return a version to change, which is the caller's alone."""
        return self._opened(caller, table)

    def latest(self, caller: Caller, table: Table) -> lance.LanceDataset:
        """Return the latest version of a table's main branch, whichever version is named, which is the caller's alone."""
        return self._opened(caller, replace(table, version=None, branch=""))

    def changed(self, caller: Caller, table: Table, dataset: lance.LanceDataset) -> None:
        """Keep what a table became: the next request is likely to ask for it. The dataset is not to be changed any more."""
        self._keep((caller.reader, replace(table, version=dataset.version)), dataset)

    def _opened(self, caller: Caller, table: Table) -> lance.LanceDataset:
        dataset = lance.LanceDataset(
            table.location,
            table.version if not table.branch else None,
            storage_options=dict(table.storage_options) or None,
            session=self._session,
            namespace_client=self.client(caller),
            table_id=list(table.id),
            namespace_client_managed_versioning=True,
        )
        return dataset.checkout_version(table.reference) if table.branch else dataset

    def _keep(self, key: Any, dataset: lance.LanceDataset) -> lance.LanceDataset:
        with self._lock:
            self._open[key] = dataset
            self._open.move_to_end(key)
            while len(self._open) > _TABLES_MOST:
                self._open.popitem(last=False)
        return dataset

    @property
    def session(self) -> Any:
        """The caches that all tables share."""
        return self._session
