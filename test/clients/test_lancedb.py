"""LanceDB's Python client on the catalog (`connect_namespace`): tables, names, pages and modes."""

from __future__ import annotations

from typing import Any

import lancedb
import pytest
from lance_namespace.errors import LanceNamespaceError
from lancedb.index import BTree, IvfFlat

from lake import DIMENSION, Lake, rows, together, vectors


@pytest.fixture
def db(lake: Lake) -> Any:
    """A LanceDB connection to the server of the namespace."""
    return lancedb.connect_namespace("rest", {"uri": lake.url})


def names(db: Any, lake: Lake, page: int) -> list[str]:
    """Walk all pages of the namespace's tables."""
    found: list[str] = []
    token = None
    while True:
        answer = db.list_tables(namespace_path=[lake.namespace], limit=page, page_token=token)
        assert len(answer.tables) <= page
        found += answer.tables
        token = answer.page_token
        if not token:
            return found


def test_create_open_add_search(lake: Lake, db: Any) -> None:
    data = vectors(50)
    table = db.create_table("t", data, namespace_path=[lake.namespace])
    table.add(data)
    opened = db.open_table("t", namespace_path=[lake.namespace])
    assert (opened.version, opened.count_rows()) == (2, 100)

    wanted = data.column("vector")[7].values.to_numpy()
    assert len(wanted) == DIMENSION
    assert [r["id"] for r in opened.search(wanted).limit(2).to_list()] == [7, 7]

    opened.update(where="id = 7", values={"id": 700})
    opened.delete("id < 7")
    assert (opened.count_rows("id = 700"), opened.count_rows()) == (2, 86)
    opened.checkout(1)
    assert opened.count_rows() == 50
    assert lake.versions("t") == [1, 2, 3, 4]


def test_create_modes(lake: Lake, db: Any) -> None:
    where: dict[str, Any] = {"namespace_path": [lake.namespace]}
    db.create_table("t", rows(0), **where)
    with pytest.raises(ValueError, match="already exists"):
        db.create_table("t", rows(1), **where)
    assert db.create_table("t", rows(1), exist_ok=True, **where).count_rows() == 1
    assert db.create_table("t", rows(5, 3), mode="overwrite", **where).count_rows() == 3
    assert lake.open("t").count_rows() == 3


def test_create_finishes_a_table_that_was_only_declared(lake: Lake, db: Any) -> None:
    status, answer = lake.post(f"/v1/table/{lake.namespace}%24t/declare", {"id": lake.id("t")})
    assert status == 200, answer
    assert db.create_table("t", rows(0), namespace_path=[lake.namespace]).count_rows() == 1


def test_list_pages(lake: Lake, db: Any) -> None:
    wanted = [f"t{i:02}" for i in range(12)]
    for name in reversed(wanted):
        status, answer = lake.post(f"/v1/table/{lake.namespace}%24{name}/declare", {})
        assert status == 200, answer
    for page in (1, 3, 4, 12, 13):
        assert names(db, lake, page) == wanted


def test_rename_keeps_data_and_versions(lake: Lake, db: Any) -> None:
    db.create_table("old", rows(0), namespace_path=[lake.namespace]).add(rows(1))
    place = lake.location("old")
    db.rename_table("old", "new", cur_namespace_path=[lake.namespace], new_namespace_path=[lake.namespace])
    assert names(db, lake, 10) == ["new"]
    assert lake.location("new") == place
    table = db.open_table("new", namespace_path=[lake.namespace])
    table.add(rows(2))
    assert (table.version, lake.versions("new")) == (3, [1, 2, 3])


def test_drop(lake: Lake, db: Any) -> None:
    db.create_table("t", rows(0), namespace_path=[lake.namespace])
    db.create_table("kept", rows(0), namespace_path=[lake.namespace])
    db.drop_table("t", namespace_path=[lake.namespace])
    assert names(db, lake, 10) == ["kept"]
    with pytest.raises(LanceNamespaceError, match="t"):
        db.open_table("t", namespace_path=[lake.namespace])
    with pytest.raises((LanceNamespaceError, RuntimeError, ValueError)):
        db.drop_table("t", namespace_path=[lake.namespace])
    assert db.create_table("t", rows(1), namespace_path=[lake.namespace]).version == 1


def test_namespace_modes(lake: Lake, db: Any) -> None:
    inner = [lake.namespace, "inner"]
    db.create_namespace(inner)
    db.create_namespace(inner, mode="exist_ok")
    with pytest.raises((LanceNamespaceError, RuntimeError, ValueError), match="inner"):
        db.create_namespace(inner, mode="create")
    db.create_table("t", rows(0), namespace_path=inner)
    assert db.list_namespaces(namespace_path=[lake.namespace]).namespaces == ["inner"]

    with pytest.raises((LanceNamespaceError, RuntimeError, ValueError), match="inner"):
        db.drop_namespace(inner, behavior="restrict")
    db.drop_namespace(inner, behavior="cascade")
    db.drop_namespace(inner, mode="skip")
    assert db.list_namespaces(namespace_path=[lake.namespace]).namespaces == []


def test_index_and_optimize(lake: Lake, db: Any) -> None:
    table = db.create_table("t", vectors(300), namespace_path=[lake.namespace])
    table.create_index("id", config=BTree())
    table.create_index("vector", config=IvfFlat(distance_type="l2", num_partitions=2))
    table.add(vectors(10))
    table.optimize()
    assert sorted(index.name for index in table.list_indices()) == ["id_idx", "vector_idx"]
    assert lake.open("t").count_rows() == 310


def test_six_writers(lake: Lake, db: Any) -> None:
    db.create_table("t", rows(0), namespace_path=[lake.namespace])

    def writer(number: int) -> None:
        table = lancedb.connect_namespace("rest", {"uri": lake.url}).open_table("t", namespace_path=[lake.namespace])
        for i in range(4):
            table.add(rows(1 + number * 4 + i))

    together([lambda n=n: writer(n) for n in range(6)])  # type: ignore[misc]
    assert lake.open("t").count_rows() == 25
