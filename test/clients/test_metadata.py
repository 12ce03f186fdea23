"""What the server tells from manifests, against what pylance and its reference server say of the same tables."""

from __future__ import annotations

import copy
import itertools
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import lance.namespace
import lance.schema
import lancedb
import numpy as np
import pyarrow as pa
import pytest
from columns import EXTENSION, every_type
from lance_namespace import DescribeTableRequest, GetTableStatsRequest, ListTableVersionsRequest

from lake import DIMENSION, Lake, rows, vectors

LOGICAL_TYPE = "lance:logical_type"
FORMATS = ("2.0", "2.1", "2.2")


def post(url: str, body: Any = None, **headers: str) -> Any:
    """Send a request whose answer is a success, and return its body."""
    data = None if body is None else json.dumps(body).encode()
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if data is not None:
        sent["Content-Type"] = "application/json"
    with urllib.request.urlopen(urllib.request.Request(url, data, sent, method="POST"), timeout=30) as answer:
        return json.load(answer)


@pytest.fixture
def reference(lake: Lake) -> Iterator[Reference]:
    """Pylance's own server on the directory in which this server keeps its tables."""
    lake.write("any", rows(0), mode="create")
    root = str(Path(local(lake.location("any"))).parent)
    with lance.namespace.RestAdapter("dir", {"root": root}, host="127.0.0.1", port=0) as adapter:
        yield Reference(f"http://127.0.0.1:{adapter.port}", lake)


class Reference:
    """What the reference server says of a table of a lake."""

    def __init__(self, url: str, lake: Lake) -> None:
        self.url = url
        self._lake = lake

    def ask(self, name: str, operation: str, body: Any = None) -> Any:
        """Ask for an operation on a table."""
        table = Path(local(self._lake.location(name))).name.removesuffix(".lance")
        return post(f"{self.url}/v1/table/{table}/{operation}", {} if body is None else body)


def local(location: str) -> str:
    """Return the directory of a location on this machine."""
    return location.removeprefix("file://")


def ask(lake: Lake, name: str, operation: str, body: Any = None) -> Any:
    """Ask this server for an operation on a table."""
    return post(f"{lake.url}/v1/table/{lake.namespace}%24{name}/{operation}?delimiter=%24", body or {})


def described(lake: Lake, name: str, **request: Any) -> Any:
    """Describe a table in full."""
    return ask(lake, name, "describe", {"load_detailed_metadata": True, **request})


def without_logical_types(field: Any) -> Any:
    """Return a schema as the reference server writes it, which has no place for what the key holds."""
    field = copy.deepcopy(field)

    def strip(node: Any) -> None:
        if isinstance(node, list):
            for part in node:
                strip(part)
        elif isinstance(node, dict):
            metadata = node.get("metadata")
            if metadata and metadata.pop(LOGICAL_TYPE, None) and not metadata:
                del node["metadata"]
            for part in node.values():
                strip(part)

    strip(field)
    return field


def as_stored(schema: pa.Schema) -> pa.Schema:
    """Return a schema as Lance has it, whose JSON is bytes with a mark: pylance shows it as Arrow's own extension type."""
    mark = {EXTENSION: "lance.json", "ARROW:extension:metadata": ""}
    return schema.set(schema.get_field_index("json"), pa.field("json", pa.large_binary(), metadata=mark))


def summary(dataset: lance.LanceDataset) -> dict[str, str]:
    """Return what pylance shows with the version that it has open."""
    found = [v["metadata"] for v in dataset.versions() if v["version"] == dataset.version]
    return dict(found[0])


@pytest.mark.parametrize("data_format", FORMATS)
def test_schema_of_every_type(lake: Lake, reference: Reference, data_format: str) -> None:
    data = every_type(data_format)
    dataset = lake.write("t", data, mode="create", data_storage_version=data_format)
    dataset.update_metadata({"purpose": "tests"})

    answer, wanted = described(lake, "t"), reference.ask("t", "describe?load_detailed_metadata=true")
    assert without_logical_types(answer["schema"]) == wanted["schema"]
    assert answer["version"] == wanted["version"] == 2
    assert answer["metadata"] == {**summary(lake.open("t")), "purpose": "tests"}
    assert answer["stats"] == {"num_deleted_rows": 0, "num_fragments": 1}
    assert "context" not in answer

    # What the names of the specification lose stands in the metadata of the fields: read so, the schema is what was written.
    types = {f["name"]: (f.get("metadata") or {}).get(LOGICAL_TYPE) for f in answer["schema"]["fields"]}
    assert types["timestamp[us, tz=Europe/Berlin]"] == "timestamp:us:Europe/Berlin"
    assert types["time32[s]"] == "time32:s"
    assert types["dictionary_int8"] == "dict:string:int8:false"
    assert types["int64"] is None


@pytest.mark.parametrize("data_format", FORMATS)
def test_schema_in_lances_own_names(lake: Lake, data_format: str) -> None:
    data = every_type(data_format)
    if "map" in data.column_names:
        data = data.drop_columns(["map"])  # LanceDB's own reader of these names knows none
    dataset = lake.write("t", data, mode="create", data_storage_version=data_format)
    answer = post(f"{lake.url}/v1/table/{lake.namespace}$t/describe/", None, user_agent="LanceDB-Python-Client/0.40.0")
    assert answer["version"] == dataset.version
    wanted = as_stored(dataset.schema)
    assert lance.schema.json_to_schema(answer["schema"]).equals(wanted, check_metadata=True)

    # The real SDK opens the table by it.
    db = lancedb.connect("db://dev", api_key="any", host_override=lake.url)
    opened = db.open_table("t", namespace_path=[lake.namespace])
    assert opened.schema.equals(wanted, check_metadata=True)
    assert (opened.version, opened.count_rows()) == (1, data.num_rows)


def test_versions_tags_and_branches(lake: Lake) -> None:
    lake.write("t", rows(0, 10), mode="create")
    dataset = lake.write("t", rows(10, 5))
    dataset.add_columns({"twice": "id * 2"})
    dataset.delete("id < 3")
    branch = dataset.create_branch("dev", 2)
    branch.insert(rows(50, 7))
    dataset.tags.create("first", 1)
    dataset.tags.create("dev.2", ("dev", 3))

    for request, columns, counts in (
        ({}, ["id", "text", "twice"], ("12", 3, 2)),
        ({"version": 3}, ["id", "text", "twice"], ("15", 0, 2)),
        ({"version": 2}, ["id", "text"], ("15", 0, 2)),
        ({"tag": "first"}, ["id", "text"], ("10", 0, 1)),
        ({"branch": "dev"}, ["id", "text"], ("22", 0, 3)),
        ({"branch": "dev", "version": 2}, ["id", "text"], ("15", 0, 2)),
        ({"tag": "dev.2"}, ["id", "text"], ("22", 0, 3)),
    ):
        answer = described(lake, "t", **request)
        stats = answer["stats"]
        assert [f["name"] for f in answer["schema"]["fields"]] == columns, request
        assert (answer["metadata"]["total_rows"], stats["num_deleted_rows"], stats["num_fragments"]) == counts, request
        if "tag" not in request:
            assert ask(lake, "t", "count_rows", request) == int(counts[0])

    listed = lake.client.list_table_versions(ListTableVersionsRequest(id=lake.id("t"))).versions
    assert {v.version: v.metadata for v in listed} == {v["version"]: v["metadata"] for v in lake.open("t").versions()}
    made = [v.timestamp_millis for v in listed]
    assert all(earlier and later and earlier <= later for earlier, later in itertools.pairwise(made))


@pytest.mark.parametrize("options", [{}, {"enable_stable_row_ids": True}, {"enable_v2_manifest_paths": False}])
@pytest.mark.parametrize("data_format", FORMATS)
def test_statistics(lake: Lake, reference: Reference, data_format: str, options: dict[str, Any]) -> None:
    lake.write("t", rows(0, 100), mode="create", data_storage_version=data_format, max_rows_per_file=7, **options)
    dataset = lake.write("t", rows(100, 33))
    dataset.delete("id % 10 = 3")
    dataset.update({"text": "'changed'"}, "id = 50")
    dataset.create_scalar_index("id", "BTREE")

    opened = lake.open("t")
    answer, wanted = ask(lake, "t", "stats"), reference.ask("t", "stats")
    assert answer["fragment_stats"] == wanted["fragment_stats"]
    assert answer["num_rows"] == opened.count_rows() == ask(lake, "t", "count_rows")
    assert answer["num_indices"] == len(opened.describe_indices()) == 1
    assert answer["total_bytes"] == int(summary(opened)["total_files_size"])
    assert described(lake, "t")["stats"] == {
        "num_deleted_rows": wanted["num_rows"] - opened.count_rows(),
        "num_fragments": len(opened.get_fragments()),
    }
    typed = lake.client.get_table_stats(GetTableStatsRequest(id=lake.id("t")))
    assert typed.num_rows == opened.count_rows()


def test_indices(lake: Lake, reference: Reference) -> None:
    data = vectors(600)
    columns = {
        "category": pa.array([f"c{i % 5}" for i in range(600)]),
        "labels": pa.array([[f"l{i % 3}"] for i in range(600)]),
        "text": pa.array([f"hello world {i}" for i in range(600)]),
        "nested": pa.array([{"a.b": i, "c": i} for i in range(600)]),
    }
    for name, column in columns.items():
        data = data.append_column(name, column)
    dataset = lake.write("t", data, mode="create", max_rows_per_file=200)
    assert ask(lake, "t", "index/list")["indexes"] == []

    kind: Any
    for column, kind in (("id", "BTREE"), ("category", "BITMAP"), ("labels", "LABEL_LIST"), ("text", "INVERTED")):
        dataset.create_scalar_index(column, kind)
    for column, kind, name in (
        ("id", "ZONEMAP", "zones"),
        ("id", "BLOOMFILTER", "bloom"),
        ("text", "NGRAM", "ngrams"),
        ("nested.`a.b`", "BTREE", "inside"),
    ):
        dataset.create_scalar_index(column, kind, name=name)
    trained: list[tuple[str, str, dict[str, Any]]] = [
        ("IVF_FLAT", "dot", {}),
        ("IVF_PQ", "l2", {"num_sub_vectors": 4}),
        ("IVF_SQ", "cosine", {}),
        ("IVF_RQ", "l2", {}),
        ("IVF_HNSW_SQ", "cosine", {}),
        ("IVF_HNSW_PQ", "l2", {"num_sub_vectors": 4}),
    ]
    for kind, metric, more in trained:
        dataset.create_index("vector", kind, metric=metric, num_partitions=2, name=kind.lower(), **more)
    dataset = lake.write("t", data.slice(0, 50))
    dataset.optimize.optimize_indices(num_indices_to_merge=0, index_names=["id_idx", "ivf_pq"])
    dataset.delete("id < 3")
    lake.write("t", data.slice(0, 30))
    dataset = lake.open("t")
    assert DIMENSION == 16

    mine = {x["index_name"]: x for x in ask(lake, "t", "index/list")["indexes"]}
    theirs = {x["index_name"]: x for x in reference.ask("t", "index/list")["indexes"]}
    assert list(mine) == sorted(theirs)
    for name, index in theirs.items():
        got = mine[name]
        assert json.loads(got.pop("index_details")) == json.loads(index.pop("index_details")), name
        assert got.pop("created_at")[:19] == index.pop("created_at")[:19], name
        assert got == index, name
        stats, wanted = ask(lake, "t", f"index/{name}/stats"), reference.ask("t", f"index/{name}/stats")
        distance = stats.pop("distance_type", None)
        assert stats == wanted, name
        metric = json.loads(described_details(lake, name)).get("metric_type")
        assert distance == (metric.lower() if metric else None), name
        known = dataset.stats.index_stats(name)
        assert (stats["num_indexed_rows"], stats["num_unindexed_rows"]) == (
            known["num_indexed_rows"],
            known["num_unindexed_rows"],
        )
    assert mine["id_idx"]["num_segments"] == 2
    assert ask(lake, "t", "stats")["num_indices"] == len(theirs)

    # Pages, older versions, and LanceDB's own reader.
    page = ask(lake, "t", "index/list", {"limit": 5})
    assert [x["index_name"] for x in page["indexes"]] == sorted(theirs)[:5]
    rest = ask(lake, "t", "index/list", {"page_token": page["page_token"]})
    assert [x["index_name"] for x in rest["indexes"]] == sorted(theirs)[5:]
    assert [x["index_name"] for x in ask(lake, "t", "index/list", {"version": 2})["indexes"]] == ["id_idx"]
    db = lancedb.connect("db://dev", api_key="any", host_override=lake.url)
    opened = db.open_table("t", namespace_path=[lake.namespace])
    kinds = {x.name: (x.index_type, x.columns) for x in opened.list_indices()}
    assert kinds["id_idx"] == ("BTree", ["id"])
    assert kinds["ivf_hnsw_sq"] == ("IvfHnswSq", ["vector"])
    stats = opened.index_stats("ivf_sq")
    assert stats is not None
    assert (stats.index_type, stats.distance_type) == ("IVF_SQ", "cosine")
    assert opened.index_stats("nothing") is None


def described_details(lake: Lake, name: str) -> str:
    """Return how an index was made, as the server says it."""
    found = [x for x in ask(lake, "t", "index/list")["indexes"] if x["index_name"] == name]
    return str(found[0]["index_details"])


def test_compaction_that_leaves_indices_behind(lake: Lake) -> None:
    dataset = lake.write("t", rows(0, 100), mode="create", max_rows_per_file=10)
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id % 2 = 0")
    dataset.optimize.compact_files(defer_index_remap=True)
    index = ask(lake, "t", "index/list")["indexes"][0]
    assert index["index_name"] == "id_idx"
    assert "num_indexed_rows" not in index, "the manifest alone does not tell"


def test_shallow_clone(lake: Lake, reference: Reference) -> None:
    lake.write("t", rows(0, 40), mode="create", max_rows_per_file=10)
    source = local(lake.location("t"))
    place = Path(source).parent / f"clone_{lake.namespace}.lance"
    clone = lance.dataset(source).shallow_clone(str(place), 1)  # pylance cannot clone through a catalog
    clone.insert(rows(100, 5))
    status, _ = lake.post(f"/v1/table/{lake.namespace}%24c/register", {"location": str(place)})
    assert status == 200
    wanted = lance.dataset(str(place))
    answer = described(lake, "c")
    assert answer["stats"] == {"num_deleted_rows": 0, "num_fragments": 5}
    assert answer["metadata"]["total_rows"] == str(wanted.count_rows())
    assert ask(lake, "c", "stats")["fragment_stats"] == reference.ask("c", "stats")["fragment_stats"]
    assert answer["schema"] == reference.ask("c", "describe?load_detailed_metadata=true")["schema"]

    # The source stays as long as the clone needs its files.
    status, error = lake.post(f"/v1/table/{lake.namespace}%24t/drop", {})
    assert (status, error["code"]) == (409, 19)
    assert f"{lake.namespace}$c" in error["error"]
    assert lake.post(f"/v1/table/{lake.namespace}%24c/drop", {})[0] == 200
    assert lake.post(f"/v1/table/{lake.namespace}%24t/drop", {})[0] == 200


def test_changes(lake: Lake, reference: Reference) -> None:
    lake.write("t", rows(0, 20), mode="create")
    dataset = lake.write("t", rows(20, 5), transaction_properties={"job": "nightly", "run": "7"})
    dataset.create_scalar_index("id", "BTREE")
    dataset.delete("id = 1")
    dataset.update({"text": "'x'"}, "id = 2")
    dataset.add_columns({"twice": "id * 2"})
    dataset.drop_columns(["twice"])
    dataset.update_config({"a": "b"})
    dataset.drop_index("id_idx")
    dataset.restore()
    dataset.optimize.compact_files()
    last = lake.open("t").version

    table = Path(local(lake.location("t"))).name.removesuffix(".lance")
    operations = []
    for version in range(1, last + 1):
        got = post(f"{lake.url}/v1/transaction/{lake.namespace}%24t%24{version}/describe", {})
        wanted = post(f"{reference.url}/v1/transaction/{table}%24{version}/describe", {})
        assert got["status"] == "Succeeded"
        properties = got["properties"]
        made = post(f"{lake.url}/v1/transaction/{properties.pop('transaction_id')}/describe", {})
        assert json.loads(made["properties"]["tables"])[0]["version"] == version
        assert properties == wanted["properties"], version
        again = post(f"{lake.url}/v1/transaction/{lake.namespace}%24t%24{properties['uuid']}/describe", {})
        assert again["properties"]["version"] == str(version)
        operations.append(properties["operation"])
    assert operations[:4] == ["Overwrite", "Append", "CreateIndex", "Delete"]
    assert {"Update", "Merge", "Project", "UpdateConfig", "DropIndex", "Restore", "Rewrite"} <= set(operations)

    # What people add stays theirs, and nothing that the writer wrote is lost.
    path = f"/v1/transaction/{lake.namespace}%24t%242"
    actions = [
        {"setPropertyAction": {"key": "reviewed", "value": "yes"}},
        {"unsetPropertyAction": {"key": "run", "mode": "Fail"}},
        {"setStatusAction": {"status": "Canceled"}},
    ]
    status, altered = lake.post(f"{path}/alter", {"actions": actions})
    assert status == 200
    assert altered["status"] == "Canceled"
    properties = post(f"{lake.url}{path}/describe", {})["properties"]
    assert {k: properties.get(k) for k in ("job", "run", "reviewed")} == {"job": "nightly", "run": None, "reviewed": "yes"}
    for key in ("uuid", "version", "operation", "transaction_id"):
        status, error = lake.post(f"{path}/alter", {"actions": [{"setPropertyAction": {"key": key, "value": "x"}}]})
        assert (status, error["code"]) == (400, 13)
    status, altered = lake.post(f"{path}/alter", {"actions": [{"setPropertyAction": {"key": "run", "value": "7"}}]})
    assert (status, altered["properties"]["run"], altered["properties"]["reviewed"]) == (200, "7", "yes")


def test_declared_only(lake: Lake) -> None:
    status, _ = lake.post(f"/v1/table/{lake.namespace}%24d/declare", {})
    assert status == 200
    answer = described(lake, "d")
    assert (answer["is_only_declared"], "schema" in answer, "version" in answer) == (True, False, False)
    assert ask(lake, "d", "count_rows") == 0
    assert ask(lake, "d", "stats")["fragment_stats"]["lengths"]["p99"] == 0
    assert ask(lake, "d", "index/list") == {"indexes": []}
    db = lancedb.connect("db://dev", api_key="any", host_override=lake.url)
    with pytest.raises(ValueError, match="not found"):
        db.open_table("d", namespace_path=[lake.namespace])
    assert lake.client.describe_table(DescribeTableRequest(id=lake.id("d"))).location


def test_many_fragments(lake: Lake) -> None:
    data = pa.table({"id": np.arange(2000)})
    dataset = lake.write("t", data, mode="create", max_rows_per_file=1)
    dataset.delete("id < 500")
    answer = ask(lake, "t", "stats")
    lengths = answer["fragment_stats"]["lengths"]
    assert (answer["num_rows"], answer["fragment_stats"]["num_fragments"]) == (1500, 1500)
    assert lengths == dict.fromkeys(("min", "max", "mean", "p25", "p50", "p75", "p99"), 1)
