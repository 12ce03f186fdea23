"""What LanceDB's remote SDK writes by the server's engine is what LanceDB writes by itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lancedb.index import FTS, Bitmap, BTree, LabelList

from engine import DIMENSION, SCHEMA, Pair, connect, plain, sample
from lake import Lake
from server import Server

Change = Callable[[Any], Any]


@pytest.fixture
def pair(engine_server: Server, tmp_path: Path) -> Pair:
    return Pair(engine_server, tmp_path, sample(0, 60))


@pytest.fixture
def db(engine_server: Server) -> Any:
    return connect(engine_server)


CHANGES: dict[str, Change] = {
    "add": lambda t: t.add(sample(60, 10)),
    "add dicts": lambda t: t.add([{"id": 1000, "vector": [0.5] * DIMENSION, "text": "new", "group": None}]),
    "add columns in another order": lambda t: t.add(sample(60, 3).select(["text", "id", "group", "vector"])),
    "add without a nullable column": lambda t: t.add(sample(60, 3).drop_columns(["group"])),
    "add batches": lambda t: t.add(pa.RecordBatchReader.from_batches(SCHEMA, iter(sample(60, 40).to_batches(max_chunksize=7)))),
    "add nothing": lambda t: t.add(sample(0, 0)),
    "overwrite": lambda t: t.add(sample(500, 5), mode="overwrite"),
    "update a value": lambda t: t.update("id < 10", values={"text": "it's new", "group": "c"}),
    "update a vector": lambda t: t.update("id = 3", values={"vector": [0.25] * DIMENSION}),
    "update by SQL": lambda t: t.update("id % 2 = 0", values_sql={"id": "id + 1000", "text": "upper(text)"}),
    "update all": lambda t: t.update(values={"group": "all"}),
    "update none": lambda t: t.update("id = 100000", values={"text": "x"}),
    "delete": lambda t: t.delete("id > 40"),
    "delete by text": lambda t: t.delete("text LIKE 'river%' OR \"group\" = 'a'"),
    "delete all": lambda t: t.delete("true"),
    "delete none": lambda t: t.delete("id = 100000"),
    "merge": lambda t: t.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(_changed(50, 20)),
    "merge inserts only": lambda t: t.merge_insert("id").when_not_matched_insert_all().execute(_changed(50, 20)),
    "merge updates only": lambda t: t.merge_insert("id").when_matched_update_all().execute(_changed(50, 20)),
    "merge some": lambda t: (
        t.merge_insert("id").when_matched_update_all(where="target.id > 55").execute(_changed(50, 20))
    ),
    "merge by two columns": lambda t: (
        t.merge_insert(["id", "text"]).when_matched_update_all().when_not_matched_insert_all().execute(_changed(50, 20))
    ),
    "merge and delete": lambda t: (
        t.merge_insert("id").when_not_matched_insert_all().when_not_matched_by_source_delete().execute(_changed(50, 20))
    ),
    "merge and delete some": lambda t: (
        t.merge_insert("id").when_matched_update_all().when_not_matched_by_source_delete("id < 20").execute(_changed(50, 20))
    ),
    "merge without an index": lambda t: t.merge_insert("id").when_matched_update_all().use_index(False).execute(_changed(50, 20)),
    "merge within a time": lambda t: (
        t.merge_insert("id").when_not_matched_insert_all().execute(_changed(50, 20), timeout=timedelta(seconds=20))
    ),
    "add a column by SQL": lambda t: t.add_columns({"twice": "id * 2", "loud": "upper(text)"}),
    "add a column of nulls": lambda t: t.add_columns(pa.field("empty", pa.int32())),
    "add columns of nulls": lambda t: t.add_columns(pa.schema([pa.field("e", pa.int32()), pa.field("f", pa.list_(pa.string()))])),
    "rename a column": lambda t: t.alter_columns({"path": "text", "rename": "words"}),
    "cast a column": lambda t: t.alter_columns({"path": "id", "data_type": pa.int32()}),
    "drop columns": lambda t: t.drop_columns(["text", "group"]),
}  # fmt: skip


def _changed(first: int, count: int) -> pa.Table:
    data = sample(first, count)
    return data.set_column(3, "group", pa.array(["changed"] * count))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_change(pair: Pair, change: Change) -> None:
    """A change answers the same counts, makes one version more, and leaves the same rows."""
    before = pair.remote.version
    got, want = change(pair.remote), change(pair.local)
    for name in ("rows_updated", "num_inserted_rows", "num_updated_rows", "num_deleted_rows", "num_rows"):
        assert getattr(got, name, None) == getattr(want, name, None), name
    assert pair.remote.version == got.version
    assert pair.remote.version - before == pair.local.version - 1
    pair.same("id")


def test_null_allowed(pair: Pair) -> None:
    """A column can be made to refuse nulls, and to take them again."""
    for table in (pair.remote, pair.local):
        table.alter_columns({"path": "text", "nullable": False})
    pair.same()
    for table in (pair.remote, pair.local):
        with pytest.raises(Exception, match="text"):
            table.add([{"id": 1, "vector": [0.0] * DIMENSION, "text": None, "group": None}])
        table.alter_columns({"path": "text", "nullable": True})
    pair.same()


def test_create(db: Any, engine_server: Server, tmp_path: Path) -> None:
    """Modes of creation, and what is there afterwards."""
    name = f"create_{tmp_path.name}"
    table = db.create_table(name, sample(0, 10))
    assert table.version == 1
    assert table.count_rows() == 10
    with pytest.raises(ValueError, match="already exists"):
        db.create_table(name, sample(0, 1))
    assert db.create_table(name, sample(0, 1), exist_ok=True).count_rows() == 10
    replaced = db.create_table(name, pa.table({"other": [1, 2]}), mode="overwrite")
    assert replaced.schema == pa.schema([("other", pa.int64())])
    assert replaced.count_rows() == 2
    assert db.create_table(f"{name}_empty", schema=SCHEMA).count_rows() == 0
    assert db.open_table(f"{name}_empty").schema == SCHEMA
    assert {name, f"{name}_empty"} <= set(db.table_names(limit=1000))
    db.drop_table(f"{name}_empty")
    with pytest.raises(Exception, match="not found"):
        db.open_table(f"{name}_empty")
    # pylance opens the same table through the catalog, and its commits go on from there.
    data = lance.write_dataset(pa.table({"other": [3]}), mode="append", namespace_client=db.namespace_client(), table_id=[name])
    assert data.version == 3
    assert sorted(db.open_table(name).search().to_arrow()["other"].to_pylist()) == [1, 2, 3]


def test_create_in_a_namespace(db: Any, tmp_path: Path) -> None:
    db.create_namespace([f"ns_{tmp_path.name}"])
    table = db.create_table("t", sample(0, 5), namespace_path=[f"ns_{tmp_path.name}"])
    assert table.count_rows("id > 2") == 2
    assert list(db.table_names(namespace_path=[f"ns_{tmp_path.name}"])) == ["t"]
    with pytest.raises(Exception, match="namespace"):
        db.create_table("t", sample(0, 5), namespace_path=["nowhere"])


def test_create_on_a_declared_table(engine_server: Server, lake: Lake) -> None:
    """A table that is only declared is filled, where it was declared."""
    from lance_namespace import DeclareTableRequest
    from lance_namespace import connect as namespace

    client = namespace("rest", {"uri": engine_server.url})
    name = lake.namespace
    declared = client.declare_table(DeclareTableRequest(id=[name]))
    table = connect(engine_server).create_table(name, sample(0, 5))
    assert table.count_rows() == 5
    assert lance.dataset(namespace_client=client, table_id=[name]).uri.rstrip("/") == str(declared.location).rstrip("/")


INDICES: dict[str, tuple[str, Any, str]] = {
    "BTree": ("id", BTree(), "id = 17"),
    "Bitmap": ("group", Bitmap(), "\"group\" = 'a'"),
    "LabelList": ("labels", LabelList(), "array_has_any(labels, ['x3'])"),
}


@pytest.mark.parametrize("kind", INDICES)
def test_scalar_index(engine_server: Server, tmp_path: Path, kind: str) -> None:
    column, config, where = INDICES[kind]
    data = sample(0, 60).append_column("labels", pa.array([[f"x{i % 7}", f"y{i % 3}"] for i in range(60)]))
    pair = Pair(engine_server, tmp_path, data)
    pair.remote.create_index(column, config=config)
    pair.remote.wait_for_index([f"{column}_idx"])
    (listed,) = pair.remote.list_indices()
    assert (listed.name, listed.columns) == (f"{column}_idx", [column])
    assert listed.index_type == kind
    stats = pair.remote.index_stats(f"{column}_idx")
    assert (stats.num_indexed_rows, stats.num_unindexed_rows) == (60, 0)
    assert "ScalarIndexQuery" in pair.remote.search().where(where).explain_plan()
    pair.both(lambda t: sorted(row["id"] for row in t.search().where(where).limit(100).to_list()))
    pair.remote.drop_index(f"{column}_idx")
    assert pair.remote.list_indices() == []
    assert pair.remote.index_stats(f"{column}_idx") is None
    with pytest.raises(Exception, match="not found"):
        pair.remote.drop_index(f"{column}_idx")


TOKENS: dict[str, tuple[Any, str]] = {
    "stems": (FTS(stem=True, language="English"), "rivers"),
    "no stems": (FTS(stem=False), "rivers"),
    "case": (FTS(lower_case=False, stem=False), "River"),
    "pieces": (FTS(base_tokenizer="ngram", ngram_min_length=3, ngram_max_length=4), "ive"),
    "beginnings": (FTS(base_tokenizer="ngram", ngram_min_length=3, ngram_max_length=3, prefix_only=True), "ive"),
    "whole": (FTS(base_tokenizer="raw", stem=False, lower_case=False, max_token_length=None), "river and river of 0"),
    "stop words": (FTS(remove_stop_words=True), "and"),
    "own stop words": (FTS(custom_stop_words=["river"]), "river"),
}


@pytest.mark.parametrize("kind", TOKENS)
def test_text_index(pair: Pair, kind: str) -> None:
    """Every setting of a full-text index has its effect."""
    config, word = TOKENS[kind]
    for table in (pair.local, pair.remote):
        table.create_index("text", config=config)
    pair.both(lambda t: sorted(row["id"] for row in t.search(word, query_type="fts").limit(100).to_list()))


def test_distance_of_an_index(pair: Pair) -> None:
    """The distance type that an index is asked for is the one that it has."""
    from lancedb.index import IvfFlat

    pair.remote.create_index("vector", config=IvfFlat(distance_type="cosine", num_partitions=1))
    assert pair.remote.index_stats("vector_idx").distance_type == "cosine"
    pair.both(lambda t: t.search([0.5] * DIMENSION).distance_type("cosine").limit(3).to_list())


def test_named_index(pair: Pair) -> None:
    pair.remote.create_index("id", config=BTree(), name="by_id")
    with pytest.raises(Exception, match=r"by_id.*exists"):
        pair.remote.create_index("id", config=BTree(), name="by_id")
    pair.remote.create_index("text", config=FTS())
    pair.remote.create_index("text", config=FTS())  # made anew
    assert sorted(i.name for i in pair.remote.list_indices()) == ["by_id", "text_idx"]


def test_restore_and_versions(pair: Pair) -> None:
    for table in (pair.local, pair.remote):
        table.delete("id < 30")
        table.add(sample(60, 5))
        table.checkout(1)
        table.restore()
    pair.same()
    assert [v["version"] for v in pair.remote.list_versions()] == [v["version"] for v in pair.local.list_versions()]
    assert pair.remote.version == 4
    pair.remote.restore(2)
    assert pair.remote.count_rows() == 30
    with pytest.raises(Exception, match="99"):
        pair.remote.restore(99)


def test_tags(pair: Pair) -> None:
    pair.remote.tags.create("first", 1)
    pair.remote.delete("id < 30")
    pair.remote.checkout("first")
    assert pair.remote.count_rows() == 60
    pair.remote.checkout_latest()
    pair.remote.tags.update("first", 2)
    assert pair.remote.tags.get_version("first") == 2
    pair.remote.tags.delete("first")
    assert pair.remote.tags.list() == {}


def test_branches(pair: Pair) -> None:
    """A branch goes on from where it began, and main does not see it."""
    branch = pair.remote.branches.create("try/it")
    branch.add(sample(60, 10))
    branch.delete("id < 5")
    branch.update("id = 6", values={"text": "on the branch"})
    assert branch.count_rows() == 65
    assert pair.remote.count_rows() == 60
    assert pair.remote_db.open_table(pair.name, branch="try/it").count_rows("text = 'on the branch'") == 1
    assert list(pair.remote.branches.list()) == ["try/it"]
    again = pair.remote.branches.checkout("try/it")
    assert again.search([0.5] * DIMENSION).where("id >= 60").limit(3).to_list()[0]["id"] >= 60
    with pytest.raises(Exception, match="exists"):
        pair.remote.branches.create("try/it")
    second = pair.remote.branches.create("second", from_ref="try/it")
    assert second.count_rows() == 65
    pair.remote.branches.delete("second")
    pair.remote.branches.delete("try/it")
    assert pair.remote.branches.list() == {}
    with pytest.raises(Exception, match="try/it"):
        pair.remote.branches.delete("try/it")


def test_field_metadata(pair: Pair) -> None:
    pair.remote.update_field_metadata({"path": "id", "metadata": {"unit": "rows", "note": "x"}})
    pair.remote.update_field_metadata({"path": "id", "metadata": {"note": None}}, {"path": "text", "metadata": {"a": "b"}})
    schema = pair.remote.schema
    assert schema.field("id").metadata == {b"unit": b"rows"}
    assert schema.field("text").metadata == {b"a": b"b"}
    pair.remote.update_field_metadata({"path": "id", "metadata": {"only": "this"}, "replace": True})
    assert pair.remote.schema.field("id").metadata == {b"only": b"this"}


def test_stats(pair: Pair) -> None:
    pair.remote.add(sample(60, 10))
    stats = pair.remote.stats()
    assert stats["num_rows"] == 70
    assert stats["fragment_stats"]["num_fragments"] == 2


MISTAKES: dict[str, tuple[Change, str]] = {
    "an empty predicate": (lambda t: t.delete(""), "predicate"),
    "a predicate of blanks": (lambda t: t.delete("  "), "predicate"),
    "a delete by an unknown column": (lambda t: t.delete("none = 1"), "none"),
    "an update of an unknown column": (lambda t: t.update("id = 1", values={"none": 1}), "none"),
    "an update from an unknown column": (lambda t: t.update("id = 1", values_sql={"id": "none"}), "none"),
    "an update to what does not fit": (lambda t: t.update("id = 1", values_sql={"id": "text"}), "id|Cast|cast"),
    "a merge by an unknown column": (lambda t: t.merge_insert("none").when_matched_update_all().execute(sample(0, 1)), "none"),
    "a column that exists": (lambda t: t.add_columns({"id": "1"}), "id"),
    "a column of nonsense": (lambda t: t.add_columns({"new": "none + "}), "none|EOF"),
    "the renaming of an unknown column": (lambda t: t.alter_columns({"path": "none", "rename": "x"}), "none"),
    "the dropping of an unknown column": (lambda t: t.drop_columns(["none"]), "none"),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_mistakes(pair: Pair, kind: str) -> None:
    """What is wrong is refused with 400: 404 would mean a missing table, and 409 or 500 would be tried again."""
    change, words = MISTAKES[kind]
    with pytest.raises(Exception, match=words) as failed:
        change(pair.remote)
    assert "400" in str(failed.value)
    assert ".rs" not in str(failed.value)
    assert pair.remote.version == 1


def test_wrong_rows(engine_server: Server, pair: Pair) -> None:
    """Rows of another schema are refused; here by plain HTTP, as the SDK looks at them first."""
    import urllib.error
    import urllib.request

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("id", pa.string())])) as stream:
        stream.write_table(pa.table({"id": ["x"]}))
    url = f"{engine_server.url}/v1/table/{pair.name}/insert"
    request = urllib.request.Request(url, sink.getvalue().to_pybytes(), {"Content-Type": "application/vnd.apache.arrow.stream"})
    with pytest.raises(urllib.error.HTTPError) as failed:
        urllib.request.urlopen(request)
    assert failed.value.code == 400
    assert b'"code":20' in failed.value.read()
    assert pair.remote.version == 1


def test_rename_and_go_on(db: Any, tmp_path: Path) -> None:
    """What workers keep of a table does not outlive its name, nor a table that has the name afterwards."""
    first, second = f"a_{tmp_path.name}", f"b_{tmp_path.name}"
    db.create_table(first, sample(0, 10)).count_rows("id > 1")
    db.rename_table(first, second)
    db.create_table(first, sample(100, 7))
    assert db.open_table(first).count_rows("id > 1") == 7
    renamed = db.open_table(second)
    renamed.add(sample(10, 2))
    assert renamed.count_rows("id > 1") == 10
    for _ in range(3):
        db.drop_table(first)
        db.create_table(first, sample(0, 3))
        assert db.open_table(first).count_rows("id >= 0") == 3


@pytest.fixture
def arrays() -> Any:
    """Rows of many types."""
    return pa.table({
        "id": [1, 2],
        "small": pa.array([1, None], pa.int8()),
        "half": pa.array(np.array([1.5, 2.5], np.float16)),
        "when": pa.array([0, 1], pa.timestamp("us", "UTC")),
        "day": pa.array([0, 1], pa.date32()),
        "bytes": pa.array([b"x", None]),
        "list": pa.array([["a"], []]),
        "struct": pa.array([{"x": 1, "y": "a"}, None]),
        "money": pa.array([1, 2], pa.decimal128(10, 2)),
        "large": pa.array(["x" * 5000, "y"], pa.large_string()),
        "kind": pa.array(["a", "b"]).dictionary_encode(),
    })  # fmt: skip


def test_types(engine_server: Server, tmp_path: Path, arrays: pa.Table) -> None:
    pair = Pair(engine_server, tmp_path, arrays)
    pair.both(lambda t: plain(sorted(t.search().limit(10).to_list(), key=lambda row: row["id"])))
