"""One request to a worker."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import lance
import pyarrow as pa

from .errors import BAD_STATE, BrokenStreamError, RefusedError
from .tables import OPERATION_HEADER, Caller, Table, Tables
from .wire import Aligned, Body

# Lance wants decimals at multiples of 16 bytes, and Arrow streams promise 8.
_ALIGNED = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.At64Byte)


class AbandonedError(Exception):
    """Whoever asked has hung up."""


# How many bytes of batches may be read before the library asks for them, while it writes files; one batch may be larger.
_AHEAD_BYTES = 32 << 20


class Ahead:
    """A stream's batches, which another thread reads before they are asked for."""

    def __init__(self, stream: pa.RecordBatchReader) -> None:
        self._stream = stream
        self._read: deque[tuple[pa.RecordBatch | BaseException | None, int]] = deque()
        self._bytes = 0
        self._left = False
        self._changed = threading.Condition()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches and raise what reading them meets. Once nobody asks, at most one more is read."""
        threading.Thread(target=self._fill, name="ahead", daemon=True).start()
        try:
            while (one := self._next()) is not None:
                if isinstance(one, BaseException):
                    raise one
                yield one
        finally:
            with self._changed:
                self._left = True
                self._read.clear()
                self._changed.notify()

    def _next(self) -> pa.RecordBatch | BaseException | None:
        with self._changed:
            self._changed.wait_for(lambda: self._read)
            one, size = self._read.popleft()
            self._bytes -= size
            self._changed.notify()
            return one

    def _fill(self) -> None:
        last: BaseException | None = None
        try:
            for batch in self._stream:
                if not self._put(batch, batch.nbytes):
                    return
        except BaseException as err:
            last = err
        self._put(last, 0)

    def _put(self, one: pa.RecordBatch | BaseException | None, size: int) -> bool:
        """Leave something to be asked for, and return once there is room for more; False where nobody will ask."""
        with self._changed:
            self._read.append((one, size))
            self._bytes += size
            self._changed.notify()
            self._changed.wait_for(lambda: self._left or self._bytes < _AHEAD_BYTES)
            return not self._left


class Request:
    """What is asked, of which table, for whom."""

    def __init__(self, tables: Tables, head: dict[str, Any], body: Body) -> None:
        """Read a request's head: operation, catalog, table, request (see `docs/engine.md` of the server)."""
        self.tables = tables
        self.operation = str(head["operation"])
        self.args: dict[str, Any] = head.get("request") or {}
        catalog = head["catalog"]
        headers = dict(catalog.get("headers") or {})
        committer = headers.pop(OPERATION_HEADER, "")
        self.caller = Caller(catalog["uri"], tuple(sorted(headers.items())), committer)
        at = head["table"]
        self.table = Table(
            tuple(at["id"]),
            at["location"],
            int(at.get("version") or 0),
            at.get("branch") or "",
            tuple(sorted((at.get("storage_options") or {}).items())),
        )
        self.began = time.monotonic()
        self.abandoned_at: float | None = None
        self.rows_read = 0
        self._body = body
        self._failure: BaseException | None = None

    def get(self, name: str, default: Any = None) -> Any:
        """Return an argument, the default where it is absent or null."""
        value = self.args.get(name)
        return default if value is None else value

    def readable(self) -> lance.LanceDataset:
        """Return the table's version to read."""
        self._check_data()
        return self.tables.read(self.caller, self.table)

    def changeable(self) -> lance.LanceDataset:
        """Return the table's version to change."""
        self._check_data()
        return self.tables.change(self.caller, self.table)

    def _check_data(self) -> None:
        if self.table.version == 0:
            raise RefusedError(
                BAD_STATE,
                f"table {'.'.join(self.table.id)!r} has no data yet: it is only declared; create it or insert into it first",
            )

    def changed(self, dataset: lance.LanceDataset) -> int:
        """Keep what the table became, and return its version."""
        self.tables.changed(self.caller, self.table, dataset)
        return int(dataset.version)

    @property
    def abandoned(self) -> bool:
        """Whether whoever asked has hung up."""
        return self.abandoned_at is not None

    def check_abandoned(self) -> None:
        """Stop where nobody waits for the answer."""
        if self.abandoned:
            raise AbandonedError

    def rows(self) -> pa.RecordBatchReader:
        """Return the rows that the caller sends, which are read as they come."""
        try:
            stream = pa.ipc.open_stream(pa.PythonFile(Aligned(self._body), mode="r"), options=_ALIGNED)
        except BrokenStreamError:
            raise
        except (pa.ArrowInvalid, OSError) as err:
            if self._body.broken:
                raise BrokenStreamError("the stream of rows broke off before its end") from err
            raise BrokenStreamError(f"the body is not an Arrow IPC stream: {err}") from err
        return pa.RecordBatchReader.from_batches(stream.schema, self._batches(stream))

    def _batches(self, stream: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """Pass rows on. What goes wrong here is remembered: the library makes a text of it."""
        try:
            for batch in Ahead(stream):
                if self.abandoned:
                    raise BrokenStreamError("the caller hung up before all rows were sent")
                self.rows_read += batch.num_rows
                yield batch
            self._body.discard()  # the end of the rows is not yet the end of the body: it can still break
        except BaseException as err:
            self._failure = (
                err
                if isinstance(err, BrokenStreamError) or self._body.broken
                else BrokenStreamError(f"the stream of rows is damaged: {err}")
            )
            raise

    def failure(self, err: BaseException) -> BaseException:
        """Return why an operation failed: the stream's own failure, where there was one."""
        if self._failure is None:
            return err
        if self._body.broken:
            return BrokenStreamError("the stream of rows broke off before its end; nothing was changed")
        return self._failure
