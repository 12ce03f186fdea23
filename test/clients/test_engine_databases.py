"""Several databases of LanceDB's remote SDK on one server: --databases namespace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance_namespace as spec
import lancedb
import pytest
from lance_namespace.errors import LanceNamespaceError

from engine import sample, serve
from server import Server


@pytest.fixture(scope="module")
def server(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = serve(binary, tmp_path_factory.mktemp("data"), "--engine-workers", "1", "--databases", "namespace")
    yield running
    assert running.stop() == 0, running.log


def connect(server: Server, name: str) -> Any:
    return lancedb.connect(f"db://{name}", api_key="k", host_override=server.url, region="local")


def test_databases_are_apart(server: Server) -> None:
    """Databases are made when they are used, and what is in one is not in another."""
    one, two = connect(server, "one"), connect(server, "two")
    assert list(one.table_names()) == []
    first, second = one.create_table("t", sample(0, 5)), two.create_table("t", sample(0, 9))
    first.add(sample(5, 1))
    second.update("id = 1", values={"text": "two"})
    assert (first.count_rows("id >= 0"), second.count_rows("id >= 0")) == (6, 9)
    assert (first.count_rows("text = 'two'"), second.count_rows("text = 'two'")) == (0, 1)
    one.create_namespace(["n"])
    one.create_table("u", sample(0, 1), namespace_path=["n"])
    assert list(one.list_namespaces().namespaces) == ["n"]
    assert list(two.list_namespaces().namespaces) == []
    one.create_namespace(["m"])
    one.rename_table("u", "v", cur_namespace_path=["n"], new_namespace_path=["m"])
    assert list(one.table_names(namespace_path=["m"])) == ["v"]
    assert one.open_table("v", namespace_path=["m"]).count_rows("id >= 0") == 1
    assert list(two.table_names()) == ["t"]
    two.drop_table("t")
    assert one.open_table("t").search().limit(3).to_list()


def test_the_whole_catalog(server: Server) -> None:
    """Clients that name no database see them as namespaces; those that do see theirs, by every kind of client."""
    db = connect(server, "three")
    db.create_table("t", sample(0, 5))
    whole: Any = spec.connect("rest", {"uri": server.url})
    assert "three" in whole.list_namespaces(spec.ListNamespacesRequest(id=[])).namespaces
    count = whole.count_table_rows(spec.CountTableRowsRequest(id=["three", "t"], predicate="id > 0"))
    assert count.count == 4
    inside = db.namespace_client()
    count = inside.count_table_rows(spec.CountTableRowsRequest(id=["t"], predicate="id > 0"))
    assert count.count == 4
    with pytest.raises(LanceNamespaceError) as failed:
        inside.list_all_tables(spec.ListTablesRequest())
    assert failed.value.code == 0


def test_a_name_that_is_none(server: Server) -> None:
    with pytest.raises(Exception, match="400"):
        list(connect(server, "a$b").table_names())


def test_one_database(engine_server: Server, tmp_path: Path) -> None:
    """By default the name means nothing."""
    connect(engine_server, "this").create_table(f"t_{tmp_path.name}", sample(0, 5))
    assert connect(engine_server, "that").open_table(f"t_{tmp_path.name}").count_rows() == 5
