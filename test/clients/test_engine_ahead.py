"""Rows that a worker reads before the library asks for them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

sys.path.append(str(Path(__file__).parents[2] / "workers" / "lance"))
from lancerest_worker import request

SCHEMA = pa.schema([("n", pa.int64())])


class Source:
    """Batches of the given sizes in bytes, and how much of them was read but not taken yet, at most."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes
        self.waiting = 0
        self.most = 0
        self.much = threading.Event()

    def reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(SCHEMA, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for size in self.sizes:
            self.waiting += size
            self.most = max(self.most, self.waiting)
            if self.waiting > 100 << 20:
                self.much.set()
            yield pa.record_batch([pa.array(np.zeros(size // 8, np.int64))], schema=SCHEMA)


def test_large_batches_after_a_small_one() -> None:
    """How much is read ahead depends on the bytes that wait, not on how large the first batch was."""
    large = 16 << 20
    source = Source(8, *[large] * 12)
    rows = 0
    for batch in request.Ahead(source.reader()):
        source.much.wait(0.05)  # time to read too much
        rows += batch.num_rows
        source.waiting -= batch.nbytes
    assert rows == sum(source.sizes) // 8
    # What may wait, the batch that goes beyond it, and the one that is being handed over.
    assert source.most <= (32 << 20) + 2 * large


def test_nobody_asks_any_more() -> None:
    """The thread that reads ends."""
    source = Source(*[40 << 20] * 5)
    batches = iter(request.Ahead(source.reader()))
    next(batches)
    threads = [t for t in threading.enumerate() if t.name == "ahead"]
    assert threads
    del batches
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_a_stream_that_breaks_off() -> None:
    """What was read before is still handed over, and then the error."""

    def breaks() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array([1])], schema=SCHEMA)
        raise OSError("cut off")

    batches = iter(request.Ahead(pa.RecordBatchReader.from_batches(SCHEMA, breaks())))
    assert next(batches).num_rows == 1
    with pytest.raises(OSError, match="cut off"):
        next(batches)
