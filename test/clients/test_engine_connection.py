"""The calls of LanceDB's remote connection, on a server with an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lancedb.index import BTree

from engine import DIMENSION, connect, sample, serve
from server import Server


@pytest.fixture(scope="module")
def server(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose tables are this module's alone: some tests look at all there are."""
    running = serve(binary, tmp_path_factory.mktemp("data"), "--engine-workers", "1")
    yield running
    assert running.stop() == 0, running.log


@pytest.fixture
def db(server: Server) -> Any:
    made = connect(server)
    for name in list(made.table_names(limit=1000)):
        made.drop_table(name)
    return made


def test_tables(db: Any) -> None:
    for name in ("b", "a", "c"):
        db.create_table(name, sample(0, 2))
    assert list(db.table_names()) == ["a", "b", "c"]
    assert list(db.table_names(limit=2)) == ["a", "b"]
    assert list(db.list_tables().tables) == ["a", "b", "c"]
    db.rename_table("a", "d")
    assert list(db.table_names()) == ["b", "c", "d"]
    assert db.open_table("d").count_rows("id > 0") == 1
    db.drop_table("b")
    assert list(db.table_names()) == ["c", "d"]
    with pytest.raises(Exception, match="does not exist"):
        db.drop_table("b")


def test_namespaces(db: Any) -> None:
    db.create_namespace(["n"], properties={"a": "b"})
    db.create_namespace(["n", "m"])
    assert list(db.list_namespaces(["n"]).namespaces) == ["m"]
    assert db.describe_namespace(["n"]).properties["a"] == "b"
    table = db.create_table("t", sample(0, 4), namespace_path=["n", "m"])
    assert table.count_rows("id > 1") == 2
    assert db.open_table("t", namespace_path=["n", "m"]).search([0.5] * DIMENSION).limit(1).to_list()
    db.rename_table("t", "u", cur_namespace_path=["n", "m"], new_namespace_path=["n"])
    assert list(db.table_names(namespace_path=["n"])) == ["u"]
    db.drop_table("u", namespace_path=["n"])
    db.drop_namespace(["n", "m"])
    db.drop_namespace(["n"])
    assert list(db.list_namespaces().namespaces) == []


def test_open(db: Any) -> None:
    table = db.create_table("t", sample(0, 4))
    table.delete("id = 0")
    assert db.open_table("t").count_rows() == 3
    assert db.open_table("t", version=1).count_rows() == 4
    with pytest.raises(Exception, match="not found"):
        db.open_table("nothing")
    client = db.namespace_client()
    from lance_namespace import CountTableRowsRequest

    assert client.count_table_rows(CountTableRowsRequest(id=["t"], predicate="id > 1")).count == 2


def test_data_of_many_kinds(db: Any) -> None:
    """What the SDK takes as data arrives: dicts, batches, generators, models."""
    from lancedb.pydantic import LanceModel, Vector

    class Picture(LanceModel):
        id: int
        vector: Vector(2)  # type: ignore[valid-type]

    models = db.create_table("models", schema=Picture)
    models.add([Picture(id=1, vector=[0.0, 1.0])])
    assert models.search([0.0, 1.0]).limit(1).to_pydantic(Picture)[0].id == 1
    assert db.create_table("dicts", [{"id": 1, "text": "a"}, {"id": 2, "text": None}]).count_rows("text IS NULL") == 1

    def batches() -> Iterator[pa.RecordBatch]:
        for n in range(5):
            yield from sample(10 * n, 10).to_batches()

    generated = db.create_table("generated", batches(), schema=sample(0, 0).schema)
    assert generated.count_rows("id >= 25") == 25


def test_fast_search(db: Any) -> None:
    """Rows that no index has yet are found, unless a search is told to be fast."""
    from lancedb.index import IvfFlat

    table = db.create_table("t", sample(0, 50))
    table.create_index("vector", config=IvfFlat(num_partitions=1))
    table.add(sample(50, 10))
    assert len(table.search([0.5] * DIMENSION).limit(100).to_list()) == 60
    assert len(table.search([0.5] * DIMENSION).fast_search().limit(100).to_list()) == 50
    assert table.index_stats("vector_idx").num_unindexed_rows == 10


REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "clone_table": lambda db, t: db.clone_table("new", "file:///nowhere"),
    "list_functions": lambda db, t: db.list_functions(),
    "list_views": lambda db, t: db.list_views(),
    "create_view": lambda db, t: db.create_view("v", "select 1"),
    "prewarm_index": lambda db, t: t.prewarm_index("id_idx"),
    "prewarm_data": lambda db, t: t.prewarm_data(["id"]),
    "branches.diff": lambda db, t: t.branches.diff("main"),
}


@pytest.mark.parametrize("call", REFUSED)
def test_refused(db: Any, call: str) -> None:
    """What is not offered is said to be so, which is not that the table is missing, and nothing changes."""
    table = db.create_table("t", sample(0, 4))
    table.create_index("id", config=BTree())
    with pytest.raises(Exception, match=r".") as failed:
        REFUSED[call](db, table)
    assert "was not found" not in str(failed.value)
    assert "500" not in str(failed.value)
    assert list(db.table_names()) == ["t"]
    assert db.open_table("t").version == 2
