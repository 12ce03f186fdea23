"""Tables of which the catalog knows the names alone: clients commit to storage by themselves."""

from __future__ import annotations

import time
import urllib.request
from datetime import timedelta
from pathlib import Path

import lance
import lancedb
import pytest
from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DescribeTableRequest,
    ListTableTagsRequest,
    RegisterTableRequest,
    TableExistsRequest,
)

from conftest import new_lake
from lake import Lake, ids, rows
from server import Server


@pytest.fixture
def free(server: Server) -> Lake:
    """A namespace whose tables are not managed."""
    made = Lake(server.url, "unmanaged")
    made.client.create_namespace(
        CreateNamespaceRequest(id=["unmanaged"], properties={"managed_versioning": "false"}, mode="ExistOk")
    )
    return made


def test_pylance(free: Lake) -> None:
    """Pylance creates, appends, deletes, tags, branches and cleans up without the catalog, which tells of it all the same."""
    free.write("t", rows(0, 10), mode="create")
    assert free.client.describe_table(DescribeTableRequest(id=free.id("t"))).managed_versioning in (False, None)
    free.write("t", rows(10, 5))
    opened = free.open("t")
    opened.delete("id < 3")
    opened.tags.create("kept", 1)
    branch = opened.create_branch("trial", 2)
    lance.write_dataset(rows(100, 2), branch, mode="append")
    assert free.versions("t") == [1, 2, 3]
    assert free.versions("t", "trial") == [2, 3]
    assert ids(free.open("t")) == list(range(3, 15))
    assert ids(free.open("t", 2)) == list(range(15))
    assert ids(free.open("t", "kept")) == list(range(10))
    assert free.client.list_table_tags(ListTableTagsRequest(id=free.id("t"))).tags["kept"].version == 1
    detailed = free.client.describe_table(DescribeTableRequest(id=free.id("t"), load_detailed_metadata=True))
    assert detailed.version == 3
    assert detailed.stats is not None
    assert detailed.stats.num_deleted_rows == 3
    free.open("t").tags.delete("kept")
    free.open("t").delete("id < 5")
    free.open("t").cleanup_old_versions(older_than=timedelta(0))
    kept = sorted(v["version"] for v in free.open("t").versions())
    assert free.versions("t") == kept, "what is listed is what storage has"
    assert 4 in kept
    assert 1 not in kept


def test_lancedb(free: Lake) -> None:
    """LanceDB works with such a table through the catalog, and straight on its directory."""
    db = lancedb.connect_namespace("rest", {"uri": free.url})
    table = db.create_table("words", rows(0, 4), namespace_path=[free.namespace])
    table.add(rows(4, 4))
    lance.write_dataset(rows(8, 4), free.location("words"), mode="append")
    assert db.open_table("words", namespace_path=[free.namespace]).count_rows() == 12
    assert free.versions("words") == [1, 2, 3]


def test_commit_is_refused(free: Lake) -> None:
    """A version that somebody wants to make through the catalog is refused, and the answer says what is right."""
    free.write("held", rows(0, 2), mode="create")
    status, answer = free.post(
        "/v1/table/unmanaged$held/version/create",
        {"version": 2, "manifest_path": f"{free.location('held').removeprefix('file:///')}/_versions/x-y"},
    )
    assert (status, answer["code"]) == (409, 19)
    assert "managed_versioning" in answer["error"]


def test_managed_again(lake: Lake) -> None:
    """Registered anew a table is managed, with everything that storage had; who still writes as before is adopted."""
    lake.client.declare_table(DeclareTableRequest(id=lake.id("t"), properties={"managed_versioning": "false"}))
    lake.write("t", rows(0, 3))
    lake.write("t", rows(3, 3))
    before = lake.open("t")
    lake.client.register_table(
        RegisterTableRequest(
            id=lake.id("t"),
            location=lake.location("t"),
            mode="Overwrite",
            properties={"managed_versioning": "true"},
        )
    )
    assert lake.client.describe_table(DescribeTableRequest(id=lake.id("t"))).managed_versioning
    assert lake.versions("t") == [1, 2]
    lake.write("t", rows(6, 3))
    before.delete("id = 0")
    lake.write("t", rows(9, 3))
    assert lake.versions("t") == [1, 2, 3, 4, 5]
    assert ids(lake.open("t")) == list(range(1, 12))


def test_past_the_catalog(binary: Path, tmp_path: Path) -> None:
    """What a writer and a cleanup do past the catalog is known to it a moment later, and no version is offered that is gone."""
    server = Server(binary, tmp_path / "data", "--reconcile", "20ms").start()
    lake = new_lake(server)
    for i in range(4):
        lake.write("t", rows(i), mode="append" if i else "create")
    past = lance.write_dataset(rows(4), lake.location("t"), mode="append")
    past.cleanup_old_versions(older_than=timedelta(0))
    kept = sorted(v["version"] for v in past.versions())
    assert kept == [5]

    def counted(name: str) -> int:
        with urllib.request.urlopen(f"{server.url}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name + " "))

    deadline = time.monotonic() + 60
    while counted("lancerest_pruned_total") < 4 or counted("lancerest_adoptions_total") < 1:
        assert time.monotonic() < deadline, "the catalog does not find out"
        lake.client.table_exists(TableExistsRequest(id=lake.id("t")))
    assert lake.versions("t") == kept
    for version in range(1, 5):
        status, answer = lake.post(f"/v1/table/{lake.namespace}$t/version/describe", {"version": version})
        assert (status, answer["code"]) == (404, 11)
    lake.write("t", rows(5))
    assert ids(lake.open("t")) == list(range(6))
    assert counted("lancerest_reconcile_errors_total") == 0
    assert server.stop() == 0
