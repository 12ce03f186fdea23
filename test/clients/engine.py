"""A server with an engine, and a way to do the same on it and on a local database."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
import pyarrow as pa

from server import Server

DIMENSION = 8
ROWS = 400
SCHEMA = pa.schema(
    [("id", pa.int64()), ("vector", pa.list_(pa.float32(), DIMENSION)), ("text", pa.string()), ("group", pa.string())]
)
_WORDS = ("river", "stone", "cloud", "light", "winter")
_numbers = itertools.count(1)


def serve(binary: Path, data: Path, *more: str) -> Server:
    """Start a server whose workers run in the Python of the tests."""
    return Server(binary, data, "--engine", "auto", "--engine-python", sys.executable, *more).start()


def sample(first: int = 0, count: int = ROWS) -> pa.Table:
    """Return rows that depend on their ids alone."""
    ids = range(first, first + count)
    vectors = np.array([np.random.default_rng(i).random(DIMENSION, dtype=np.float32) for i in ids], np.float32)
    columns = [
        pa.array(ids, pa.int64()),
        pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel(), pa.float32()), DIMENSION),
        pa.array([f"{_WORDS[i % 5]} and {_WORDS[i * 7 % 4]} of {i}" for i in ids]),
        pa.array([None if i % 11 == 0 else "ab"[i % 2] for i in ids]),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def connect(server: Server, **options: Any) -> Any:
    """Connect as LanceDB's remote SDK does."""
    return lancedb.connect("db://lake", api_key="sk_test", host_override=server.url, region="local", **options)


def plain(result: Any) -> Any:
    """Return a result in a form that can be compared: floats as the 32 bits that they come from."""
    if isinstance(result, pa.Table):
        result = result.to_pylist()
    if isinstance(result, float):
        return round(result, 4)
    if isinstance(result, dict):
        return {key: plain(value) for key, value in result.items()}
    if isinstance(result, (list, tuple)):
        return [plain(value) for value in result]
    return result


class Pair:
    """One table twice: on the server, and in a local database by LanceDB itself."""

    def __init__(self, server: Server, directory: Path, data: pa.Table | None = None) -> None:
        self.name = f"t{next(_numbers)}_{directory.name}"
        self.remote_db = connect(server)
        self.local_db: Any = lancedb.connect(str(directory / "local"))
        data = sample() if data is None else data
        self.remote: Any = self.remote_db.create_table(self.name, data)
        self.local: Any = self.local_db.create_table(self.name, data)

    def both(self, do: Callable[[Any], Any]) -> Any:
        """Do the same on both, and return what the server answered once it is what LanceDB answers locally."""
        want, got = plain(do(self.local)), plain(do(self.remote))
        assert got == want
        return got

    def same(self, *order: str) -> None:
        """Check that both hold the same rows, of the same schema."""
        assert self.remote.schema == self.local.schema
        by = order or ("id",)

        def rows(table: Any) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = table.search().limit(100_000).to_list()
            return sorted(plain(found), key=lambda row: tuple(str(row[name]) for name in by))

        assert rows(self.remote) == rows(self.local)
