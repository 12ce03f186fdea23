"""Every data operation of the specification, as pylance's client of it and plain HTTP send them, against pylance in process."""

from __future__ import annotations

import io
import itertools
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import lance
import lance_namespace as spec
import lancedb
import pyarrow as pa
import pytest
from lance_namespace.errors import LanceNamespaceError
from lance_namespace_urllib3_client.models.add_columns_entry import AddColumnsEntry
from lance_namespace_urllib3_client.models.query_table_request_vector import QueryTableRequestVector

from engine import DIMENSION, ROWS, sample
from server import Server

_numbers = itertools.count(1)
NEAR = [0.5] * DIMENSION


def stream(data: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, data.schema) as writer:
        writer.write_table(data)
    return sink.getvalue()


class Both:
    """A table behind the server, reached by the specification's operations alone, and one of the same rows by pylance."""

    def __init__(self, server: Server, directory: Path) -> None:
        self.url = server.url
        self.client: Any = spec.connect("rest", {"uri": server.url})
        self.id = [f"spec{next(_numbers)}"]
        self.client.create_table(spec.CreateTableRequest(id=self.id), stream(sample()))
        self.local = lance.write_dataset(sample(), str(directory / "local.lance"))

    def open(self, branch: str | None = None) -> lance.LanceDataset:
        """Open the table past the engine."""
        data = lance.dataset(namespace_client=self.client, table_id=self.id)
        return data.checkout_version((branch, None)) if branch else data

    def same(self) -> None:
        assert self.open().schema == self.local.schema
        assert self.open().to_table().sort_by("id") == self.local.to_table().sort_by("id")

    def query(self, **fields: Any) -> pa.Table:
        request = spec.QueryTableRequest(**{"id": self.id, "k": 0, "vector": {}, **fields})
        return pa.ipc.open_file(self.client.query_table(request).data).read_all()

    def post(self, operation: str, body: Any) -> tuple[int, Any]:
        """Send a request as a person with curl does."""
        request = urllib.request.Request(
            f"{self.url}/v1/table/{self.id[0]}/{operation}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as err:
            return err.code, json.load(err)


@pytest.fixture
def both(engine_server: Server, tmp_path: Path) -> Both:
    return Both(engine_server, tmp_path)


def test_create_modes(both: Both) -> None:
    create = both.client.create_table
    again = create(spec.CreateTableRequest(id=both.id, mode="ExistOk"), stream(sample(0, 1)))
    assert (again.version, again.location) == (1, both.open().uri)
    with pytest.raises(LanceNamespaceError) as failed:
        create(spec.CreateTableRequest(id=both.id), stream(sample(0, 1)))
    assert failed.value.code == 5
    replaced = create(spec.CreateTableRequest(id=both.id, mode="overwrite"), stream(pa.table({"x": [1]})))
    assert replaced.version == 2
    assert both.open().to_table() == pa.table({"x": [1]})
    empty = create(spec.CreateTableRequest(id=[both.id[0] + "_empty"], properties={"owner": "me"}), stream(sample(0, 0)))
    assert (empty.version, empty.properties) == (1, {"owner": "me"})
    with pytest.raises(LanceNamespaceError) as failed:
        create(spec.CreateTableRequest(id=["nowhere", "t"]), stream(sample(0, 1)))
    assert failed.value.code == 1


def test_insert(both: Both) -> None:
    done = both.client.insert_into_table(spec.InsertIntoTableRequest(id=both.id), stream(sample(400, 20)))
    assert (done.version, done.num_inserted_rows) == (2, 20)
    both.local.insert(sample(400, 20))
    both.same()
    done = both.client.insert_into_table(spec.InsertIntoTableRequest(id=both.id, mode="Overwrite"), stream(sample(7, 2)))
    assert (done.version, done.num_inserted_rows) == (3, 2)
    both.local.insert(sample(7, 2), mode="overwrite")
    both.same()


def test_insert_makes_the_first_version(both: Both) -> None:
    id = [both.id[0] + "_declared"]
    both.client.declare_table(spec.DeclareTableRequest(id=id))
    with pytest.raises(LanceNamespaceError) as failed:
        both.client.delete_from_table(spec.DeleteFromTableRequest(id=id, predicate="true"))
    assert failed.value.code == 19
    done = both.client.insert_into_table(spec.InsertIntoTableRequest(id=id), stream(sample(0, 3)))
    assert (done.version, done.num_inserted_rows) == (1, 3)
    merged = [both.id[0] + "_merged"]
    both.client.declare_table(spec.DeclareTableRequest(id=merged))
    done = both.client.merge_insert_into_table(spec.MergeInsertIntoTableRequest(id=merged, on=["id"]), stream(sample(0, 3)))
    assert (done.version, done.num_inserted_rows, done.num_updated_rows) == (1, 3, 0)


def test_merge_update_delete(both: Both) -> None:
    merged = both.client.merge_insert_into_table(
        spec.MergeInsertIntoTableRequest(
            id=both.id, on=["id"], when_matched_update_all=True, when_not_matched_insert_all=True, timeout="30s"
        ),
        stream(sample(390, 20)),
    )
    assert (merged.num_updated_rows, merged.num_inserted_rows, merged.num_deleted_rows, merged.version) == (10, 10, 0, 2)
    both.local.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(sample(390, 20))
    both.same()
    updated = both.client.update_table(
        spec.UpdateTableRequest(id=both.id, predicate="id < 5", updates=[["text", "concat(text, '!')"], ["id", "id + 1000"]])
    )
    assert (updated.updated_rows, updated.version) == (5, 3)
    both.local.update({"text": "concat(text, '!')", "id": "id + 1000"}, where="id < 5")
    both.same()
    deleted = both.client.delete_from_table(spec.DeleteFromTableRequest(id=both.id, predicate="id > 300"))
    assert deleted.version == 4
    both.local.delete("id > 300")
    both.same()


QUERIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "everything": ({}, {}),
    "a filter": ({"filter": "id % 7 = 3"}, {"filter": "id % 7 = 3"}),
    "columns": ({"columns": {"column_names": ["text", "id"]}, "k": 5}, {"columns": ["text", "id"], "limit": 5}),
    "aliases": ({"columns": {"column_aliases": {"n": "id"}}, "k": 5}, {"columns": {"n": "id"}, "limit": 5}),
    "an offset": ({"k": 5, "offset": 3}, {"limit": 5, "offset": 3}),
    "row ids": ({"k": 5, "with_row_id": True}, {"limit": 5, "with_row_id": True}),
    "a vector": ({"vector": {"single_vector": NEAR}, "k": 4}, {"nearest": {"column": "vector", "q": NEAR, "k": 4}}),
    "ten by default": ({"vector": {"single_vector": NEAR}}, {"nearest": {"column": "vector", "q": NEAR, "k": 10}}),
    "a distance": (
        {"vector": {"single_vector": NEAR}, "k": 4, "distance_type": "Cosine", "vector_column": "vector"},
        {"nearest": {"column": "vector", "q": NEAR, "k": 4, "metric": "cosine"}},
    ),
    "several vectors": (
        {"vector": {"multi_vector": [NEAR, [0.0] * DIMENSION]}, "k": 2},
        {"nearest": {"column": "vector", "q": [NEAR, [0.0] * DIMENSION], "k": 2}},
    ),
    "before the search": (
        {"vector": {"single_vector": NEAR}, "k": 4, "filter": "id < 50", "prefilter": True},
        {"nearest": {"column": "vector", "q": NEAR, "k": 4}, "filter": "id < 50", "prefilter": True},
    ),
    "after the search": (
        {"vector": {"single_vector": NEAR}, "k": 40, "filter": "id < 50"},
        {"nearest": {"column": "vector", "q": NEAR, "k": 40}, "filter": "id < 50"},
    ),
    "bounds": (
        {"vector": {"single_vector": NEAR}, "k": 40, "lower_bound": 0.2, "upper_bound": 0.5},
        {"nearest": {"column": "vector", "q": NEAR, "k": 40, "distance_range": (0.2, 0.5)}},
    ),
}


@pytest.mark.parametrize("kind", QUERIES)
def test_query(both: Both, kind: str) -> None:
    asked, scanned = QUERIES[kind]
    assert both.query(**asked) == both.local.to_table(**scanned)


def test_query_of_a_version(both: Both) -> None:
    both.client.delete_from_table(spec.DeleteFromTableRequest(id=both.id, predicate="id >= 10"))
    assert both.query().num_rows == 10
    assert both.query(version=1).num_rows == ROWS
    with pytest.raises(LanceNamespaceError) as failed:
        both.query(version=9)
    assert failed.value.code == 11


def test_text(both: Both) -> None:
    both.client.create_table_index(spec.CreateTableIndexRequest(id=both.id, column="text", index_type="FTS", with_position=True))
    both.local.create_scalar_index("text", "INVERTED", with_position=True)
    words = {"string_query": {"query": "river"}}
    got, want = both.query(full_text_query=words, k=500), both.local.to_table(full_text_query="river")
    assert got.sort_by([("_score", "descending"), ("id", "ascending")]) == want.sort_by(
        [("_score", "descending"), ("id", "ascending")]
    )
    tree = {"structured_query": {"query": {"boolean": {
        "must": [{"match": {"terms": "river", "column": "text"}}], "must_not": [{"phrase": {"terms": "stone", "column": "text"}}],
        "should": [],
    }}}}  # fmt: skip
    want_ids = [r["id"] for r in got.to_pylist() if "stone" not in r["text"]]
    assert sorted(both.query(full_text_query=tree, k=500)["id"].to_pylist()) == sorted(want_ids)
    without_column = {"structured_query": {"query": {"match": {"terms": "river"}}}}
    assert both.query(full_text_query=without_column, k=500).num_rows == got.num_rows
    together = both.query(full_text_query=words, vector={"single_vector": NEAR}, k=3)
    assert (together.num_rows, "_relevance_score" in together.schema.names) == (3, True)


def test_count_and_plans(both: Both) -> None:
    count = both.client.count_table_rows(spec.CountTableRowsRequest(id=both.id, predicate="id < 7"))
    assert count.count == 7
    query = spec.QueryTableRequest(id=both.id, vector=QueryTableRequestVector(single_vector=NEAR), k=3)
    plan = both.client.explain_table_query_plan(spec.ExplainTableQueryPlanRequest(id=both.id, query=query, verbose=True))
    assert "KNNVectorDistance" in plan
    analysis = both.client.analyze_table_query_plan(
        spec.AnalyzeTableQueryPlanRequest(id=both.id, vector=QueryTableRequestVector(single_vector=NEAR), k=3)
    )
    assert "elapsed" in analysis


def test_indices(both: Both) -> None:
    create, scalar = both.client.create_table_index, both.client.create_table_scalar_index
    create(spec.CreateTableIndexRequest(id=both.id, column="vector", index_type="IVF_PQ", distance_type="dot", num_sub_vectors=4))
    (made,) = both.open().describe_indices()
    assert made.details["metric_type"].upper() == "DOT"
    create(
        spec.CreateTableIndexRequest(
            id=both.id, column="vector", index_type="IVF_HNSW_PQ", num_sub_vectors=2, num_partitions=1,
            max_iterations=3, sample_rate=200, m=5, ef_construction=11,
        )
    )  # fmt: skip
    (made,) = both.open().describe_indices()
    assert made.details["compression"]["num_sub_vectors"] == 2
    assert (made.details["hnsw"]["max_connections"], made.details["hnsw"]["construction_ef"]) == (5, 11)
    hints = made.details["runtime_hints"]
    assert (hints["lance.ivf.max_iters"], hints["lance.ivf.sample_rate"]) == ("3", "200")
    scalar(spec.CreateTableIndexRequest(id=both.id, column="id", index_type="BTREE", name="by_id"))
    for kind, column in (("BITMAP", "group"), ("NGRAM", "text"), ("ZONEMAP", "id"), ("BLOOMFILTER", "id")):
        scalar(spec.CreateTableIndexRequest(id=both.id, column=column, index_type=kind, name=f"a_{kind}"))
    listed = {i.index_name: i for i in both.client.list_table_indices(spec.ListTableIndicesRequest(id=both.id)).indexes}
    assert set(listed) == {"vector_idx", "by_id", "a_BITMAP", "a_NGRAM", "a_ZONEMAP", "a_BLOOMFILTER"}
    assert {i.index_name: i.index_type for i in listed.values()} | {} == {
        i.name: i.index_type for i in both.open().describe_indices()
    }
    with pytest.raises(LanceNamespaceError) as failed:
        scalar(spec.CreateTableIndexRequest(id=both.id, column="id", index_type="BTREE", name="by_id"))
    assert failed.value.code == 7
    with pytest.raises(LanceNamespaceError) as failed:
        scalar(spec.CreateTableIndexRequest(id=both.id, column="vector", index_type="IVF_PQ"))
    assert failed.value.code == 13
    both.client.drop_table_index(spec.DropTableIndexRequest(id=both.id, index_name="by_id"))
    with pytest.raises(LanceNamespaceError) as failed:
        both.client.drop_table_index(spec.DropTableIndexRequest(id=both.id, index_name="by_id"))
    assert failed.value.code == 6


def test_columns(both: Both) -> None:
    add = spec.AlterTableAddColumnsRequest(id=both.id, new_columns=[AddColumnsEntry(name="twice", expression="id * 2")])
    assert both.client.alter_table_add_columns(add).version == 2
    both.local.add_columns({"twice": "id * 2"})
    both.same()
    status, answer = both.post(
        "alter_columns",
        {
            "alterations": [
                {"path": "twice", "rename": "double", "data_type": {"type": "int32"}},
                {"path": "text", "nullable": True},
            ]
        },
    )
    assert (status, answer["version"]) == (200, 3)
    change: Any = {"path": "twice", "name": "double", "data_type": pa.int32()}
    both.local.alter_columns(change)
    both.same()
    dropped = both.client.alter_table_drop_columns(spec.AlterTableDropColumnsRequest(id=both.id, columns=["double", "group"]))
    assert dropped.version == 4
    both.local.drop_columns(["double", "group"])
    both.same()
    with pytest.raises(LanceNamespaceError) as failed:
        both.client.alter_table_drop_columns(spec.AlterTableDropColumnsRequest(id=both.id, columns=["group"]))
    assert failed.value.code == 12
    for entry in ({"name": "c"}, {"name": "c", "computed": "id", "expression": "id"}):
        status, answer = both.post("add_columns", {"new_columns": [entry]})
        assert (status, answer["code"]) == (400, 13)


def test_metadata(both: Both) -> None:
    update = both.client.update_table_schema_metadata
    update(spec.UpdateTableSchemaMetadataRequest(id=both.id, metadata={"a": "1", "b": "2"}))
    now = update(spec.UpdateTableSchemaMetadataRequest(id=both.id, metadata={"b": "3"}))
    assert now.metadata == {"a": "1", "b": "3"}
    assert both.open().schema.metadata == {b"a": b"1", b"b": b"3"}
    status, answer = both.post(
        "update_field_metadata",
        {"updates": [{"path": "id", "metadata": {"unit": "rows", "x": "y"}}, {"path": "vector", "metadata": {"model": "m"}}]},
    )
    assert (status, answer) == (200, {"version": 4, "fields": {"id": {"unit": "rows", "x": "y"}, "vector": {"model": "m"}}})
    status, answer = both.post(
        "update_field_metadata",
        {"updates": [{"path": "id", "metadata": {"x": None}}, {"path": "vector", "metadata": {"n": "1"}, "replace": True}]},
    )
    assert (status, answer) == (200, {"version": 5, "fields": {"id": {"unit": "rows"}, "vector": {"n": "1"}}})
    assert both.open().schema.field("id").metadata == {b"unit": b"rows"}
    status, answer = both.post("update_field_metadata", {"updates": [{"path": "none", "metadata": {}}]})
    assert (status, answer["code"]) == (404, 12)


def test_restore(both: Both) -> None:
    both.client.delete_from_table(spec.DeleteFromTableRequest(id=both.id, predicate="true"))
    both.client.restore_table(spec.RestoreTableRequest(id=both.id, version=1))
    both.same()
    assert both.open().version == 3
    with pytest.raises(LanceNamespaceError) as failed:
        both.client.restore_table(spec.RestoreTableRequest(id=both.id, version=9))
    assert failed.value.code == 11


def test_branches(both: Both) -> None:
    """Every operation that takes a branch works on it, and main stays as it is."""
    c, id = both.client, both.id
    c.delete_from_table(spec.DeleteFromTableRequest(id=id, predicate="id >= 20"))
    c.create_table_branch(spec.CreateTableBranchRequest(id=id, name="b", from_version=1))
    c.insert_into_table(spec.InsertIntoTableRequest(id=id, branch="b"), stream(sample(400, 10)))
    c.merge_insert_into_table(
        spec.MergeInsertIntoTableRequest(id=id, branch="b", on=["id"], when_not_matched_insert_all=True), stream(sample(405, 10))
    )
    updated = c.update_table(spec.UpdateTableRequest(id=id, branch="b", predicate="id = 1", updates=[["text", "'branch'"]]))
    assert (updated.updated_rows, updated.version) == (1, 4)
    c.delete_from_table(spec.DeleteFromTableRequest(id=id, branch="b", predicate="id = 2"))
    c.create_table_scalar_index(spec.CreateTableIndexRequest(id=id, branch="b", column="id", index_type="BTREE"))
    c.alter_table_add_columns(
        spec.AlterTableAddColumnsRequest(id=id, branch="b", new_columns=[AddColumnsEntry(name="twice", expression="id * 2")])
    )
    c.update_table_schema_metadata(spec.UpdateTableSchemaMetadataRequest(id=id, branch="b", metadata={"on": "b"}))
    count = c.count_table_rows(spec.CountTableRowsRequest(id=id, branch="b", predicate="twice > 20 OR text = 'branch'"))
    assert count.count == 415 - 11 + 1
    assert both.query(branch="b").num_rows == 414
    assert both.query(branch="b", version=1).num_rows == ROWS
    c.restore_table(spec.RestoreTableRequest(id=id, branch="b", version=2))
    assert both.query(branch="b").num_rows == 410
    assert both.open("b").count_rows() == 410
    assert both.query().num_rows == 20
    assert both.open().version == 2
    with pytest.raises(LanceNamespaceError) as failed:
        c.create_table_branch(spec.CreateTableBranchRequest(id=id, name="b"))
    assert failed.value.code == 23
    for name in ("", "a..b", "/a", "x.lock", "main"):
        with pytest.raises(LanceNamespaceError) as failed:
            c.create_table_branch(spec.CreateTableBranchRequest(id=id, name=name))
        assert failed.value.code == 13, name
    c.create_table_branch(spec.CreateTableBranchRequest(id=id, name="b/c", from_branch="b"))
    with pytest.raises(LanceNamespaceError) as failed:
        c.delete_table_branch(spec.DeleteTableBranchRequest(id=id, name="b"))
    assert failed.value.code == 13
    c.delete_table_branch(spec.DeleteTableBranchRequest(id=id, name="b/c"))
    c.delete_table_branch(spec.DeleteTableBranchRequest(id=id, name="b"))
    with pytest.raises(LanceNamespaceError) as failed:
        both.query(branch="b")
    assert failed.value.code == 22


def test_backfill_without_a_rule_is_refused(both: Both) -> None:
    """A column that is not computed cannot be filled, one that is not there neither."""
    for column, want in (("id", (400, 13)), ("nothing", (404, 12))):
        status, answer = both.post("backfill_column", {"column": column})
        assert (status, answer["code"]) == want


def test_pushed_down_queries(both: Both) -> None:
    """lancedb.connect_namespace asks the server to query, where it is told to."""
    options: dict[str, Any] = {"namespace_client_pushdown_operations": ["QueryTable"]}
    table = lancedb.connect_namespace("rest", {"uri": both.url}, **options).open_table(both.id[0])
    found = table.search(NEAR).where("id > 100").limit(5).to_list()
    want = both.local.to_table(nearest={"column": "vector", "q": NEAR, "k": 5}, filter="id > 100", prefilter=True)
    assert [row["id"] for row in found] == want["id"].to_pylist()
    assert table.search().where("id < 3").limit(10).to_arrow()["id"].to_pylist() == [0, 1, 2]
