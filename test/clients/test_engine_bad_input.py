"""What is wrong in a request for data is refused with a sentence, and changes nothing: each operation, over plain HTTP."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from engine import DIMENSION, connect, sample
from server import Server

JSON = "application/json"
STREAM = "application/vnd.apache.arrow.stream"
HUGE = 2**63 - 1
# What only developers of the library, or the server's operator, can use.
INTERNALS = re.compile(
    r"\.rs\b|/rustc/|Traceback|File \"|site-packages|\.py\b|object at 0x|called `|0x[0-9a-f]{6}|panicked|lancerest-data|/tmp/",
    re.I,
)
ZERO = [0.0] * DIMENSION


def call(server: Server, path: str, body: bytes, kind: str) -> tuple[int, str]:
    """Send one request and return the status and the text of the answer. It is there within a minute."""
    with contextlib.closing(http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)) as connection:
        connection.request("POST", path, body, {"Content-Type": kind})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")


def stream(data: pa.Table, *, compression: str | None = None) -> bytes:
    """Write rows as an Arrow IPC stream."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, data.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(data)
    return sink.getvalue()


def file(data: pa.Table) -> bytes:
    """Write rows as an Arrow IPC file, which is not what operations take."""
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, data.schema) as writer:
        writer.write_table(data)
    return sink.getvalue()


def changed(column: str, values: pa.Array) -> bytes:
    """Write rows one column of which is another."""
    data = sample(900, len(values))
    return stream(data.set_column(data.schema.get_field_index(column), column, values))


def flipped(data: bytes, at: int) -> bytes:
    """Turn some bytes into others."""
    return data[:at] + bytes(b ^ 0xFF for b in data[at : at + 64]) + data[at + 64 :]


GOOD = stream(sample(900, 20))
# What is no stream of rows for the table, by what is wrong with it.
STREAMS: dict[str, bytes] = {
    "empty": b"",
    "zeros": b"\0" * 64,
    "garbage": b"these are no rows at all, whatever one makes of them" * 9,
    "json": b'{"id": 1}',
    "an IPC file": file(sample(900, 3)),
    "cut in the schema": GOOD[:100],
    "cut in the rows": GOOD[: len(GOOD) // 2],
    "without its end's last bytes": GOOD[:-12],
    "a huge message": b"\xff\xff\xff\xff\xff\xff\xff\x7f" + b"\0" * 64,
    "a negative message": b"\xff\xff\xff\xff\xff\xff\xff\xff" + b"\0" * 64,
    "a damaged schema": flipped(GOOD, 60),
    "a damaged head of rows": flipped(GOOD, GOOD.index(b"\xff\xff\xff\xff", 8) + 24),
}
SCHEMAS: dict[str, bytes] = {
    "another type": changed("id", pa.array(["a", "b"])),
    "a shorter vector": changed("vector", pa.array([[1.0, 2.0]] * 2, pa.list_(pa.float32(), 2))),
    "a list for a vector": changed("vector", pa.array([["x"], []], pa.list_(pa.string()))),
    "an unknown column": stream(sample(900, 2).append_column("more", pa.array([1, 2]))),
    "other columns alone": stream(pa.table({"x": [1, 2]})),
    "a struct for a text": changed("text", pa.array([{"a": 1}, {"a": 2}])),
}
NAMELESS = stream(pa.table({"id": [1], "": [2]}))
TWICE = stream(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", "id"]))


def _streams() -> Iterator[tuple[str, str, bytes, str]]:
    merge = "merge_insert?on=id&when_not_matched_insert_all=true&when_matched_update_all=true"
    for operation, path in (("insert", "{t}/insert"), ("overwrite", "{t}/insert?mode=overwrite"), ("merge", "{t}/" + merge)):
        for what, body in STREAMS.items():
            yield f"{operation}: {what}", path, body, STREAM
    for operation, path in (("insert", "{t}/insert"), ("merge", "{t}/" + merge)):
        for what, body in {**SCHEMAS, "a column twice": TWICE}.items():
            yield f"{operation}: {what}", path, body, STREAM
    for what, body in {**STREAMS, "a column twice": TWICE, "a column without a name": NAMELESS}.items():
        yield f"create: {what}", "{new}/create", body, STREAM
        yield f"create over: {what}", "{t}/create?mode=overwrite", body, STREAM
    yield "create: what exists", "{t}/create", GOOD, STREAM
    yield "create: unknown mode", "{new}/create?mode=perhaps", GOOD, STREAM
    yield "create: storage_options", "{new}/create?storage_options=%7B%22a%22%3A%22b%22%7D", GOOD, STREAM
    yield "create: properties that are none", "{new}/create?properties=%5B1%5D", GOOD, STREAM
    yield "create: unknown namespace", "nobody${new}/create", GOOD, STREAM
    yield "insert: unknown mode", "{t}/insert?mode=perhaps", GOOD, STREAM
    yield "insert: unknown branch", "{t}/insert?branch=none", GOOD, STREAM
    yield "insert: unknown table", "{new}/insert", GOOD, STREAM
    yield "merge: without on", "{t}/merge_insert?when_not_matched_insert_all=true", GOOD, STREAM
    yield "merge: without a clause", "{t}/merge_insert?on=id", GOOD, STREAM
    yield "merge: unknown on", "{t}/merge_insert?on=nope&when_not_matched_insert_all=true", GOOD, STREAM
    yield "merge: on twice", "{t}/merge_insert?on=id&on=id&when_not_matched_insert_all=true", GOOD, STREAM
    yield (
        "merge: bad SQL",
        "{t}/merge_insert?on=id&when_matched_update_all=true&when_matched_update_all_filt=%28%28",
        GOOD,
        STREAM,
    )
    yield "merge: unknown column in SQL", "{t}/merge_insert?on=id&when_matched_update_all_filt=target.nope%3D1", GOOD, STREAM
    yield "merge: bad SQL of a deletion", "{t}/merge_insert?on=id&when_not_matched_by_source_delete_filt=1%2B", GOOD, STREAM
    yield "merge: bad timeout", "{t}/merge_insert?on=id&when_not_matched_insert_all=true&timeout=soon", GOOD, STREAM
    yield "merge: huge timeout", f"{{t}}/merge_insert?on=id&when_not_matched_insert_all=true&timeout={'9' * 30}h", GOOD, STREAM
    yield "merge: a flag that is none", "{t}/merge_insert?on=id&when_matched_update_all=perhaps", GOOD, STREAM
    yield "merge: ambiguous", "{t}/merge_insert?on=group&when_matched_update_all=true", GOOD, STREAM
    yield "merge: unknown branch", "{t}/merge_insert?on=id&when_matched_update_all=true&branch=none", GOOD, STREAM


SQL: dict[str, str] = {
    "not closed": "((",
    "no SQL": "this is no SQL",
    "an unknown column": "nope = 1",
    "an unknown function": "nope(id) = 1",
    "a number": "1 + 1",
    "a text": "'text'",
    "another type": "vector > 'x'",
    "a text not closed": "text = 'x",
    "a query": "id IN (SELECT 1)",
    "a statement": "1; DROP TABLE t",
    "an aggregate": "sum(id) > 1",
    "a window": "row_number() OVER () > 1",
    "a division by zero": "id / 0 = 1",
    "a cast that fails": "CAST(text AS int) = 1",
    "deep": "(" * 3000 + "true" + ")" * 3000,
    "NUL": "id = \0",
    "a parameter": "id = $1",
}


def _predicates() -> Iterator[tuple[str, str, Any]]:
    for what, sql in SQL.items():
        yield f"delete: {what}", "{t}/delete", {"predicate": sql}
        yield f"count: {what}", "{t}/count_rows", {"predicate": sql}
        yield f"query: {what}", "{t}/query", {"vector": {}, "k": 3, "filter": sql}
        yield f"vector query: {what}", "{t}/query", {"vector": {"single_vector": ZERO}, "k": 3, "filter": sql, "prefilter": True}
        yield f"update: {what}", "{t}/update", {"predicate": sql, "updates": [["text", "'new'"]]}
        if what not in ("a division by zero", "a cast that fails"):  # which is seen with rows alone
            yield f"explain: {what}", "{t}/explain_plan", {"query": {"vector": {}, "k": 3, "filter": sql}}
            yield f"analyze: {what}", "{t}/analyze_plan", {"vector": {}, "k": 3, "filter": sql}
    for what, sql in SQL.items():
        if what not in ("a number", "a text", "a statement", "a cast that fails"):  # which Lance takes
            yield f"update to {what}", "{t}/update", {"updates": [["text", sql]]}
            yield f"add {what}", "{t}/add_columns", {"new_columns": [{"name": "new", "expression": sql}]}


def _vector(**more: Any) -> dict[str, Any]:
    return {"vector": {"single_vector": ZERO}, "k": 3, **more}


def _text(query: Any) -> dict[str, Any]:
    return {"vector": {}, "k": 3, "full_text_query": query}


QUERIES: dict[str, Any] = {
    "a shorter vector": {"vector": {"single_vector": [1.0]}, "k": 3},
    "a longer vector": {"vector": {"single_vector": [1.0] * 4000}, "k": 3},
    "vectors of texts": {"vector": {"single_vector": ["a"] * DIMENSION}, "k": 3},
    "vectors of nulls": {"vector": {"single_vector": [None] * (DIMENSION - 1)}, "k": 3},
    "vectors of uneven lengths": {"vector": {"multi_vector": [ZERO, [1.0]]}, "k": 3},
    "a number beyond float32": {"vector": {"single_vector": [1e300] * DIMENSION}, "k": 3},
    "a text for a vector": {"vector": "near", "k": 3},
    "negative k": _vector(k=-1),
    "k that is a text": _vector(k="many"),
    "k beyond int64": _vector(k=2**64),
    "k with a fraction": _vector(k=1.5),
    "negative offset": _vector(offset=-1),
    "unknown vector_column": _vector(vector_column="nope"),
    "a vector_column of texts": _vector(vector_column="text"),
    "a vector_column of numbers": _vector(vector_column="id"),
    "a vector_column that is no path": _vector(vector_column="a..b"),
    "unknown distance_type": _vector(distance_type="far"),
    "hamming of floats": _vector(distance_type="hamming"),
    "negative nprobes": _vector(nprobes=-1),
    "probes upside down": _vector(minimum_nprobes=9, maximum_nprobes=2),
    "negative minimum_nprobes": _vector(minimum_nprobes=-2),
    "negative refine_factor": _vector(refine_factor=-1),
    "negative ef": _vector(ef=-1),
    "nprobes of 0": _vector(nprobes=0),
    "huge refine_factor": _vector(refine_factor=2**40),
    "unknown column": _vector(columns={"column_names": ["nope"]}),
    "unknown column in an alias": _vector(columns={"column_aliases": {"x": "nope + 1"}}),
    "bad SQL in an alias": _vector(columns={"column_aliases": {"x": "(("}}),
    "names and aliases": _vector(columns={"column_names": ["id"], "column_aliases": {"x": "id"}}),
    "columns that are a number": _vector(columns=3),
    "unknown version": _vector(version=9999),
    "negative version": _vector(version=-1),
    "unknown branch": _vector(branch="none"),
    "words and a tree": _text({"string_query": {"query": "a"}, "structured_query": {"query": {"match": {"terms": "a"}}}}),
    "words in an unknown column": _text({"string_query": {"query": "river", "columns": ["nope"]}}),
    "words in a column of numbers": _text({"string_query": {"query": "river", "columns": ["id"]}}),
    "a tree of no kind": _text({"structured_query": {"query": {}}}),
    "a tree of two kinds": _text({"structured_query": {"query": {"match": {"terms": "a"}, "phrase": {"terms": "a"}}}}),
    "a match in an unknown column": _text({"structured_query": {"query": {"match": {"terms": "river", "column": "nope"}}}}),
    "an unknown operator": _text({"structured_query": {"query": {"match": {"terms": "a", "column": "text", "operator": "nor"}}}}),
    "negative fuzziness": _text({"structured_query": {"query": {"match": {"terms": "a", "column": "text", "fuzziness": -1}}}}),
    "huge fuzziness": _text({"structured_query": {"query": {"match": {"terms": "a", "column": "text", "fuzziness": HUGE}}}}),
    "negative slop": _text({"structured_query": {"query": {"phrase": {"terms": "a", "column": "text", "slop": -1}}}}),
    "a boolean of nothing": _text({"structured_query": {"query": {"boolean": {"must": [], "should": [], "must_not": []}}}}),
    "a multi_match of nothing": _text({"structured_query": {"query": {"multi_match": {"match_queries": []}}}}),
    "no vector and no k": {},
    "a list": [],
    "not JSON": b"{",
}

INDICES: dict[str, Any] = {
    "unknown column": {"column": "nope", "index_type": "BTREE"},
    "no column": {"index_type": "BTREE"},
    "no path": {"column": "a..b", "index_type": "BTREE"},
    "no type": {"column": "id"},
    "unknown type": {"column": "id", "index_type": "MAGIC"},
    "vectors of texts": {"column": "text", "index_type": "IVF_PQ"},
    "a tree of vectors": {"column": "vector", "index_type": "BTREE"},
    "a bitmap of vectors": {"column": "vector", "index_type": "BITMAP"},
    "words of numbers": {"column": "id", "index_type": "FTS"},
    "n-grams of numbers": {"column": "id", "index_type": "NGRAM"},
    "labels of numbers": {"column": "id", "index_type": "LABEL_LIST"},
    "places of numbers": {"column": "id", "index_type": "RTREE"},
    "unknown distance": {"column": "vector", "index_type": "IVF_FLAT", "distance_type": "far"},
    "hamming of floats": {"column": "vector", "index_type": "IVF_FLAT", "distance_type": "hamming"},
    "no partitions": {"column": "vector", "index_type": "IVF_FLAT", "num_partitions": 0},
    "negative partitions": {"column": "vector", "index_type": "IVF_FLAT", "num_partitions": -1},
    "sub-vectors that do not fit": {"column": "vector", "index_type": "IVF_PQ", "num_sub_vectors": 3},
    "negative sub-vectors": {"column": "vector", "index_type": "IVF_PQ", "num_sub_vectors": -1},
    "bits that do not exist": {"column": "vector", "index_type": "IVF_PQ", "num_bits": 3},
    "negative bits": {"column": "vector", "index_type": "IVF_PQ", "num_bits": -8},
    "negative sample_rate": {"column": "vector", "index_type": "IVF_PQ", "sample_rate": -1},
    "negative iterations": {"column": "vector", "index_type": "IVF_PQ", "max_iterations": -1},
    "negative m": {"column": "vector", "index_type": "IVF_HNSW_SQ", "m": -1},
    "negative ef_construction": {"column": "vector", "index_type": "IVF_HNSW_SQ", "ef_construction": -1},
    "unknown tokenizer": {"column": "text", "index_type": "FTS", "base_tokenizer": "magic"},
    "unknown language": {"column": "text", "index_type": "FTS", "language": "Klingon"},
    "negative token length": {"column": "text", "index_type": "FTS", "max_token_length": -1},
    "n-grams upside down": {
        "column": "text",
        "index_type": "FTS",
        "base_tokenizer": "ngram",
        "min_ngram_length": 9,
        "max_ngram_length": 2,
    },
    "a name of the library's": {"column": "id", "index_type": "BTREE", "name": "__lance_x"},
    "unknown branch": {"column": "id", "index_type": "BTREE", "branch": "none"},
}

CHANGES: dict[str, tuple[str, Any]] = {
    "delete: an empty predicate": ("{t}/delete", {"predicate": ""}),
    "delete: a predicate of blanks": ("{t}/delete", {"predicate": " \n"}),
    "delete: no predicate": ("{t}/delete", {}),
    "delete: null": ("{t}/delete", {"predicate": None}),
    "delete: unknown branch": ("{t}/delete", {"predicate": "true", "branch": "none"}),
    "update: nothing": ("{t}/update", {"updates": []}),
    "update: unknown column": ("{t}/update", {"updates": [["nope", "1"]]}),
    "update: a column twice": ("{t}/update", {"updates": [["id", "1"], ["id", "2"]]}),
    "update: no pair": ("{t}/update", {"updates": [["id"]]}),
    "update: another type": ("{t}/update", {"updates": [["vector", "'x'"]]}),
    "update: an empty expression": ("{t}/update", {"updates": [["id", ""]]}),
    "update: a vector too short": ("{t}/update", {"updates": [["vector", "[1.0, 2.0]"]]}),
    "update: a text for a number": ("{t}/update", {"updates": [["id", "text"]]}),
    "update: a number out of range": ("{t}/update", {"updates": [["id", "1e300"]]}),
    "update: no path": ("{t}/update", {"updates": [["a..b", "1"]]}),
    "restore: unknown version": ("{t}/restore", {"version": 9999}),
    "restore: no version": ("{t}/restore", {}),
    "restore: negative version": ("{t}/restore", {"version": -1}),
    "restore: huge version": ("{t}/restore", {"version": HUGE}),
    "restore: unknown branch": ("{t}/restore", {"version": 1, "branch": "none"}),
    "add: nothing": ("{t}/add_columns", {"new_columns": []}),
    "add: what is there": ("{t}/add_columns", {"new_columns": [{"name": "id", "expression": "1"}]}),
    "add: twice": ("{t}/add_columns", {"new_columns": [{"name": "x", "expression": "1"}, {"name": "x", "expression": "2"}]}),
    "add: without expression": ("{t}/add_columns", {"new_columns": [{"name": "x"}]}),
    "add: an empty name": ("{t}/add_columns", {"new_columns": [{"name": "", "expression": "1"}]}),
    "add: no name": ("{t}/add_columns", {"new_columns": [{"expression": "1"}]}),
    "add: a name of the library's": ("{t}/add_columns", {"new_columns": [{"name": "_rowid", "expression": "1"}]}),
    "alter: nothing": ("{t}/alter_columns", {"alterations": []}),
    "alter: unknown column": ("{t}/alter_columns", {"alterations": [{"path": "nope", "rename": "x"}]}),
    "alter: no change": ("{t}/alter_columns", {"alterations": [{"path": "id"}]}),
    "alter: a name that is taken": ("{t}/alter_columns", {"alterations": [{"path": "id", "rename": "text"}]}),
    "alter: an empty name": ("{t}/alter_columns", {"alterations": [{"path": "id", "rename": ""}]}),
    "alter: a name of the library's": ("{t}/alter_columns", {"alterations": [{"path": "id", "rename": "_rowid"}]}),
    "alter: no cast": ("{t}/alter_columns", {"alterations": [{"path": "vector", "data_type": {"type": "int64"}}]}),
    "alter: unknown type": ("{t}/alter_columns", {"alterations": [{"path": "id", "data_type": {"type": "int65"}}]}),
    "alter: half a type": ("{t}/alter_columns", {"alterations": [{"path": "id", "data_type": {"type": "fixed_size_list"}}]}),
    "alter: texts as numbers": ("{t}/alter_columns", {"alterations": [{"path": "text", "data_type": {"type": "int32"}}]}),
    "alter: nulls forbidden": ("{t}/alter_columns", {"alterations": [{"path": "group", "nullable": False}]}),
    "drop: nothing": ("{t}/drop_columns", {"columns": []}),
    "drop: unknown column": ("{t}/drop_columns", {"columns": ["nope"]}),
    "drop: all": ("{t}/drop_columns", {"columns": ["id", "vector", "text", "group"]}),
    "drop: a column twice": ("{t}/drop_columns", {"columns": ["id", "id", "nope"]}),
    "fields: nothing": ("{t}/update_field_metadata", {"updates": []}),
    "fields: unknown column": ("{t}/update_field_metadata", {"updates": [{"path": "nope", "metadata": {"a": "b"}}]}),
    "fields: no text": ("{t}/update_field_metadata", {"updates": [{"path": "id", "metadata": {"a": 1}}]}),
    "schema: no text": ("{t}/schema_metadata/update", {"a": 1}),
    "schema: a list": ("{t}/schema_metadata/update", []),
    "drop index: unknown": ("{t}/index/nope/drop", {}),
    "drop index: the library's": ("{t}/index/__lance_frag_reuse/drop", {}),
    "index stats: unknown": ("{t}/index/nope/stats", {}),
    "branch: no name": ("{t}/branches/create", {"name": ""}),
    "branch: main": ("{t}/branches/create", {"name": "main"}),
    "branch: up": ("{t}/branches/create", {"name": "../x"}),
    "branch: from nowhere": ("{t}/branches/create", {"name": "b", "from_branch": "none"}),
    "branch: from an unknown version": ("{t}/branches/create", {"name": "b", "from_version": 9999}),
    "branch: delete what is not there": ("{t}/branches/delete", {"name": "none"}),
    "branch: delete main": ("{t}/branches/delete", {"name": "main"}),
    "count: unknown version": ("{t}/count_rows", {"version": 9999}),
    "count: unknown branch": ("{t}/count_rows", {"branch": "none", "predicate": "true"}),
    "indices: unknown version": ("{t}/index/list", {"version": 9999}),
    "stats: unknown branch": ("{t}/stats", {"branch": "none"}),
    "explain: no query": ("{t}/explain_plan", {}),
    "backfill: unknown column": ("{t}/backfill_column", {"column": "nope"}),
    "view: nothing": ("{new}/create", {}),
}


def _bodies() -> Iterator[tuple[str, str, bytes, str]]:
    asked = [(f"{name}", path, body) for name, (path, body) in CHANGES.items()]
    asked += _predicates()
    for what, query in QUERIES.items():
        asked.append((f"query: {what}", "{t}/query", query))
        asked.append((f"analyze: {what}", "{t}/analyze_plan", query))
        asked.append((f"explain: {what}", "{t}/explain_plan", query if isinstance(query, (bytes, list)) else {"query": query}))
    for what, index in INDICES.items():
        asked.append((f"index: {what}", "{t}/create_index", index))
        asked.append((f"scalar index: {what}", "{t}/create_scalar_index", index))
    for name, path, body in asked:
        yield name, path, body if isinstance(body, bytes) else json.dumps(body).encode(), JSON


CASES = {name: (path, body, kind) for name, path, body, kind in (*_streams(), *_bodies())}


@pytest.fixture(scope="module")
def table(engine_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A table that all cases are about."""
    name = f"bad_{tmp_path_factory.mktemp('bad').name}"
    made = connect(engine_server).create_table(name, sample(0, 60))
    made.create_fts_index("text")
    return made


def _state(server: Server, table: Any) -> tuple[Any, ...]:
    """Return what must not change: which tables there are, and the one's version, branches and number of rows."""
    db = connect(server)
    now = db.open_table(table.name)
    return list(db.table_names(limit=10_000)), now.version, now.count_rows(), now.branches.list(), len(now.list_indices())


@pytest.mark.parametrize("case", CASES)
def test_refused(engine_server: Server, table: Any, case: str) -> None:
    """The caller is told what was wrong, in words that are meant for callers, and nothing has changed."""
    path, body, kind = CASES[case]
    before = _state(engine_server, table)
    status, text = call(engine_server, "/v1/table/" + path.format(t=table.name, new=f"{table.name}_new"), body, kind)
    assert 400 <= status < 500, (status, text)
    answer = json.loads(text)
    assert answer["error"]
    assert not INTERNALS.search(answer["error"])
    assert "Schema {" not in answer["error"]
    assert _state(engine_server, table) == before


def test_vectors_of_nan(engine_server: Server, tmp_path: Path) -> None:
    """Vectors that are near to nothing are rows as others, and no search fails because of them."""
    table = connect(engine_server).create_table(f"nan_{tmp_path.name}", sample(0, 300))
    nan = pa.array([float("nan"), float("inf")] * DIMENSION, pa.float32())
    body = changed("vector", pa.FixedSizeListArray.from_arrays(nan, DIMENSION))
    status, answer = call(engine_server, f"/v1/table/{table.name}/insert", body, STREAM)
    assert (status, '"num_inserted_rows":2' in answer) == (200, True)
    near = {"vector": {"single_vector": ZERO}, "k": 3}
    assert table.count_rows() == 302
    for index in ("IVF_FLAT", "IVF_PQ"):
        made = {"column": "vector", "index_type": index, "num_partitions": 2}
        status, text = call(engine_server, f"/v1/table/{table.name}/create_index", json.dumps(made).encode(), JSON)
        assert status == 200, text
        status, _ = call(engine_server, f"/v1/table/{table.name}/query", json.dumps(near).encode(), JSON)
        assert status == 200
