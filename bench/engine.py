"""The engine's counterpart: pylance in one process, told what to do by `go run ./bench -engine`.

Reads commands from standard input, one JSON object a line, and answers each with one line of JSON. Durations are in seconds. An
error ends the process.

    {"do": "prepare", "url": URL, "rows": N, "queries": FILE, "stream": PREFIX}
        make the table and its index, and write the query vectors and an Arrow stream's parts to files
    {"do": "query", "threads": N, "seconds": S}
        query it in this process
    {"do": "sdk", "url": URL, "threads": N, "seconds": S}
        query it through the server, with LanceDB's remote SDK
    {"do": "write", "path": DIR, "mode": "create" or "append", "times": N}
        write the stream's rows, so many times over, into a table of this process's own
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from lance_namespace import connect

TABLE = "vectors"
DIMENSION = 128
CLUSTERS = 1000
QUERIES = 1000
K = 10
# What Lance's own introduction makes its index with.
INDEX = {"num_partitions": 256, "num_sub_vectors": 16}
# A stream repeats so many batches of so many rows: together too large for any processor's cache.
BATCHES = 64
BATCH = 8192
COLUMNS = ["id", "_distance"]
SCHEMA = pa.schema([("id", pa.int64()), ("vector", pa.list_(pa.float32(), DIMENSION))])


class Side:
    """What is kept between commands."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(1)
        self._centres = self._random.normal(size=(CLUSTERS, DIMENSION)).astype(np.float32)
        self._queries = self._vectors(QUERIES)
        self._table: Any = None

    def _vectors(self, count: int) -> np.ndarray:
        noise = self._random.standard_normal((count, DIMENSION), dtype=np.float32)
        return self._centres[self._random.integers(0, CLUSTERS, count)] + np.float32(0.3) * noise

    def _batch(self, first: int, count: int) -> pa.RecordBatch:
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(self._vectors(count).ravel()), DIMENSION)
        return pa.record_batch([pa.array(np.arange(first, first + count)), vectors], schema=SCHEMA)

    def prepare(self, url: str, rows: int, queries: str, stream: str) -> dict[str, Any]:
        """Make the table through the catalog, as any client would, and leave what the load generator sends in files."""
        Path(queries).write_bytes(self._queries.tobytes())
        self._stream = [self._batch(at * BATCH, BATCH) for at in range(BATCHES)]
        for name, part in parts(self._stream).items():
            Path(f"{stream}.{name}").write_bytes(part)
        batches = (self._batch(at, min(BATCH, rows - at)) for at in range(0, rows, BATCH))
        where = {"namespace_client": connect("rest", {"uri": url}), "table_id": [TABLE]}
        lance.write_dataset(pa.RecordBatchReader.from_batches(SCHEMA, batches), mode="create", **where)
        lance.dataset(**where).create_index("vector", "IVF_PQ", **INDEX)
        self._table = lance.dataset(**where)
        return {"stream_rows": BATCH * BATCHES}

    def query(self, threads: int, seconds: float) -> dict[str, Any]:
        def one(vector: np.ndarray) -> None:
            found = self._table.scanner(columns=COLUMNS, nearest={"column": "vector", "q": vector, "k": K}).to_table()
            assert found.num_rows == K

        return self._load(one, threads, seconds)

    def sdk(self, url: str, threads: int, seconds: float) -> dict[str, Any]:
        import lancedb

        table = lancedb.connect("db://bench", api_key="any", host_override=url, region="local").open_table(TABLE)

        def one(vector: np.ndarray) -> None:
            found = table.search(vector).select(COLUMNS).limit(K).to_arrow()
            assert found.num_rows == K

        return self._load(one, threads, seconds)

    def _load(self, one: Callable[[np.ndarray], None], threads: int, seconds: float) -> dict[str, Any]:
        took: list[list[float]] = [[] for _ in range(threads)]
        begin, used = time.perf_counter(), time.process_time()

        def client(number: int) -> None:
            at = number * QUERIES // threads
            while (start := time.perf_counter()) < begin + seconds:
                one(self._queries[at % QUERIES])
                took[number].append(time.perf_counter() - start)
                at += 1

        clients = [threading.Thread(target=client, args=(number,)) for number in range(threads)]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join()
        return {"took": list(itertools.chain(*took)), "elapsed": time.perf_counter() - begin, "cpu": time.process_time() - used}

    def write(self, path: str, mode: str, times: int) -> dict[str, Any]:
        """Write the rows that the load generator sends to the server, from memory as it does."""
        if mode == "append":
            lance.write_dataset(self._stream[0].slice(0, 1), path, mode="create")
        same: Iterator[pa.RecordBatch] = itertools.chain.from_iterable(self._stream for _ in range(times))
        begin, used = time.perf_counter(), time.process_time()
        lance.write_dataset(pa.RecordBatchReader.from_batches(SCHEMA, same), path, mode=mode)
        return {"elapsed": time.perf_counter() - begin, "cpu": time.process_time() - used}


def parts(batches: list[pa.RecordBatch]) -> dict[str, bytes]:
    """Return an Arrow stream's head, the batches as they stand in it, its end, and a whole stream of one row."""
    head, end = SCHEMA.serialize().to_pybytes(), b"\xff\xff\xff\xff\0\0\0\0"
    row = batches[0].slice(0, 1).serialize().to_pybytes()
    middle = b"".join(batch.serialize().to_pybytes() for batch in batches)
    return {"head": head, "batches": middle, "end": end, "row": head + row + end}


def main() -> None:
    side = Side()
    for line in sys.stdin:
        command = json.loads(line)
        do = command.pop("do")
        print(json.dumps(getattr(side, do)(**command)), flush=True)


if __name__ == "__main__":
    main()
