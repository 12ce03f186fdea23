"""Computed columns and their backfills: as LanceDB has them by itself, beside other writers, and when workers die."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import lancedb
import pyarrow as pa
import pytest
from lance_namespace import connect as namespace
from lancedb.index import BTree
from test_engine_server import workers

import engine
from engine import Pair, connect, plain
from lake import together
from server import Server

Call = Callable[[Any], Any]


def rows(first: int, count: int) -> pa.Table:
    """Return rows with null, nested and vector values."""
    ids = list(range(first, first + count))
    return pa.table(
        {
            "id": ids,
            "x": [None if i % 7 == 0 else i / 4 for i in ids],
            "text": [f"word {i}" for i in ids],
            "s": [None if i % 5 == 0 else {"a": i, "l": [float(i), None]} for i in ids],
            "vector": pa.array([[float(i), 1.0] for i in ids], pa.list_(pa.float32(), 2)),
        }
    )


def fill(table: Any, column: str) -> None:
    """Fill a column, and wait for the job where there is one."""
    if isinstance(table, lancedb.table.LanceTable):
        table.refresh_column(column)
    else:
        table.refresh_column_async(column).wait()


@pytest.fixture
def pair(engine_server: Server, tmp_path: Path) -> Pair:
    made = Pair(engine_server, tmp_path, rows(0, 20))
    for table in (made.remote, made.local):
        table.add(rows(20, 10))
    return made


EXPRESSIONS = {
    "numbers": "x * 2",
    "texts": "upper(text)",
    "nested input": "s.a + 1",
    "a whole struct": "s",
    "a list": "s.l",
    "a vector": "vector",
    "a constant": "1",
    "truths": "x > 3 AND text LIKE '%1%'",
    "casts": "CAST(id AS string)",
    "nulls made values": "coalesce(x, -1)",
    "several inputs": "x + id + s.a",
    "quoted names": "`id` + 1",
    "always null": "nullif(id, id)",
}


@pytest.mark.parametrize("what", EXPRESSIONS)
def test_filled_as_by_lancedb(pair: Pair, what: str) -> None:
    """The same expression gives the same type, the same values and the same metadata."""
    both = [pair.remote, pair.local]
    for table in both:
        table.add_columns(computed={"c": EXPRESSIONS[what]})
    pair.same()
    assert pair.remote.count_rows("c IS NULL") == 30
    for table in both:
        fill(table, "c")
    pair.same()
    said = [_declared(table, "c") for table in both]
    assert said[0] == said[1]


def _declared(table: Any, column: str) -> dict[str, Any]:
    metadata = {k.decode(): v.decode() for k, v in (table.schema.field(column).metadata or {}).items()}
    return {k: json.loads(v) if k.endswith("inputs") else v for k, v in metadata.items() if k.startswith("computed_column")}


def test_filled_again(pair: Pair) -> None:
    """Rows that came and rows whose inputs changed get a value by the next backfill, and one without work commits nothing."""
    both = [pair.remote, pair.local]
    for table in both:
        table.add_columns(computed={"c": "x * 2"})
        table.add_columns(computed={"d": "c + 1"})
    changes: list[Call] = [
        lambda t: t.add(rows(30, 5).drop_columns(["s"])),
        lambda t: t.update("id < 4", values={"x": 100.0}),
        lambda t: t.update("id = 6", values_sql={"text": "'other'"}),
        lambda t: t.delete("id % 3 = 0"),
        lambda t: t.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(34, 10)),
    ]
    for change in changes:
        for table in both:
            change(table)
            fill(table, "c")
            fill(table, "d")
        pair.same()
    version = pair.remote.version
    for column in ("c", "d", "c"):
        result = pair.remote.refresh_column_async(column).wait()
        assert result.rows_assigned == 0
    assert pair.remote.version == version


WRONG: dict[str, tuple[Call, str]] = {
    "a column that exists": (lambda t: t.add_columns(computed={"x": "id"}), "exists already"),
    "an unknown input": (lambda t: t.add_columns(computed={"c": "nope + 1"}), "'nope'"),
    "no SQL": (lambda t: t.add_columns(computed={"c": "x +"}), "not valid"),
    "two expressions": (lambda t: t.add_columns(computed={"c": "x, id"}), "not one expression"),
    "a comment": (lambda t: t.add_columns(computed={"c": "x -- id"}), "comment"),
    "what changes": (lambda t: t.add_columns(computed={"c": "random()"}), "not deterministic"),
    "an aggregate": (lambda t: t.add_columns(computed={"c": "sum(x)"}), "aggregates"),
    "an unknown column": (lambda t: t.refresh_column_async("nope").wait(), "no column 'nope'"),
    "a column that is not computed": (lambda t: t.refresh_column_async("x").wait(), "not a computed column"),
    "values in rows": (lambda t: t.add(pa.table({"id": [1], "q": [1.0]})), "'q' is computed"),
    "values in an update": (lambda t: t.update("id = 1", values={"q": 1.0}), "'q' is computed"),
    "values in a merge": (
        lambda t: t.merge_insert("id").when_matched_update_all().execute(pa.table({"id": [1], "q": [1.0]})),
        "'q' is computed",
    ),
    "to drop an input": (lambda t: t.drop_columns(["x"]), "read by computed column 'q'"),
    "to rename an input": (lambda t: t.alter_columns({"path": "x", "rename": "y"}), "read by computed column 'q'"),
    "to cast an input": (lambda t: t.alter_columns({"path": "x", "data_type": pa.float32()}), "read by computed column 'q'"),
    "to cast it": (lambda t: t.alter_columns({"path": "q", "data_type": pa.float32()}), "'q' is computed"),
    "to edit its rule": (
        lambda t: t.update_field_metadata({"path": "q", "metadata": {"computed_column.expression": "id"}}),
        "not edited",
    ),
    "to declare by metadata": (
        lambda t: t.update_field_metadata({"path": "x", "metadata": {"computed_column": "true"}}),
        "not edited",
    ),
}


def _say(table: Any, column: str, key: str, value: str) -> None:
    table.update_field_metadata({"path": column, "metadata": {key: value}})


@pytest.mark.parametrize("what", WRONG)
def test_refused(engine_server: Server, tmp_path: Path, what: str) -> None:
    """What is wrong is said, and changes nothing."""
    table = connect(engine_server).create_table(f"wrong_{tmp_path.name}", rows(0, 5))
    table.add_columns(computed={"q": "x + 1"})
    version = table.version
    call, text = WRONG[what]
    with pytest.raises(Exception, match=text):
        call(table)
    assert connect(engine_server).open_table(table.name).version == version


def test_allowed_afterwards(pair: Pair) -> None:
    """A computed column can be renamed and dropped, and other columns are as free as before."""
    for table in (pair.remote, pair.local):
        table.add_columns(computed={"c": "x * 2"})
        table.alter_columns({"path": "c", "rename": "d"})
        fill(table, "d")
        table.drop_columns(["text"])
        table.alter_columns({"path": "id", "rename": "key"})
    pair.same("key")
    for table in (pair.remote, pair.local):
        table.drop_columns(["d"])
        table.drop_columns(["x"])
    pair.same("key")


def test_a_row_that_fails(engine_server: Server, tmp_path: Path) -> None:
    """An expression that a row's values are beyond fails the job with the reason; after the row is gone, it does not."""
    table = connect(engine_server).create_table(f"fails_{tmp_path.name}", rows(0, 5))
    table.add_columns(computed={"c": "10 / (id - 3)"})
    with pytest.raises(Exception, match="Divide by zero"):
        fill(table, "c")
    assert table.count_rows("c IS NOT NULL") == 0
    table.delete("id = 3")
    fill(table, "c")
    assert table.search().where("id >= 2").to_arrow()["c"].to_pylist() == [-10, 10]


def post(server: Server, path: str, body: Any) -> tuple[int, Any]:
    """Post JSON as a plain HTTP client."""
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as err:
        return err.code, json.load(err)


def finished(server: Server, job: str) -> dict[str, Any]:
    """Wait until a job has ended, and return its transaction."""
    deadline = time.monotonic() + 120
    while True:
        status, answer = post(server, f"/v1/transaction/{job}/describe", {})
        assert status == 200, answer
        if answer["status"].lower() not in ("queued", "running"):
            return dict(answer)
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)


def test_over_http(engine_server: Server, tmp_path: Path) -> None:
    """The fields of the specification: some rows, some fragments, an earlier version."""
    name = f"http_{tmp_path.name}"
    table = connect(engine_server).create_table(name, rows(0, 10))
    for first in range(10, 50, 10):
        table.add(rows(first, 10))
    status, answer = post(
        engine_server,
        f"/v1/table/{name}/add_columns",
        {"new_columns": [{"name": "c", "computed": "id * 2"}, {"name": "bad", "computed": "100 / (id - 12)"}]},
    )
    assert (status, list(answer)) == (200, ["version"])

    def run(**more: Any) -> dict[str, Any]:
        status, answer = post(engine_server, f"/v1/table/{name}/backfill_column", {"column": "c", **more})
        assert status == 202, answer
        done = finished(engine_server, answer["job_id"])
        assert done["status"].lower() == "succeeded", done
        return done

    run(where="id % 20 = 3")
    assert sorted(table.search().where("c IS NOT NULL").to_arrow()["c"].to_pylist()) == [6, 46, 86]
    run(where="id < 12 AND id > 8", column="bad")  # and does not look at row 12
    assert table.count_rows("bad IS NOT NULL") == 3
    run(num_frags=2)
    assert table.count_rows("c IS NOT NULL") == 22
    version = connect(engine_server).open_table(name).version
    run(commit_granularity=1, read_version=1, concurrency=4, task_size=3)
    assert table.count_rows("c = id * 2") == 50
    assert connect(engine_server).open_table(name).version == version + 4  # three fragments, and that all is right
    wrong = {
        12: {"column": "nope"},
        13: {"column": "c", "where": "id +"},
        11: {"column": "c", "read_version": 10_000},
    }
    for code, body in wrong.items():
        status, answer = post(engine_server, f"/v1/table/{name}/backfill_column", body)
        assert (status // 100, answer["code"]) == (4, code)
    for body in ({"column": "c", "where": "id"}, {"column": "c", "num_frags": 0}, {"column": "id"}):
        status, answer = post(engine_server, f"/v1/table/{name}/backfill_column", body)
        assert (status, answer["code"]) == (400, 13)


def test_indices_stay_right(engine_server: Server, tmp_path: Path) -> None:
    """An index on the column never gives a row by a value that it has no more, and those on other columns stay whole."""
    table = connect(engine_server).create_table(f"indexed_{tmp_path.name}", rows(0, 40))
    table.add_columns(computed={"c": "x * 4"})
    fill(table, "c")
    table.create_index("id", config=BTree())
    table.create_index("c", config=BTree())
    assert table.search().where("c = 8").to_arrow()["id"].to_pylist() == [8]
    table.update("id = 8", values={"x": 50.0})
    fill(table, "c")
    assert table.count_rows("c = 8") == 0
    assert table.search().where("c = 200").to_arrow()["id"].to_pylist() == [8]
    assert table.search().where("id = 9").to_arrow()["c"].to_pylist() == [9]
    assert {i.name for i in table.list_indices()} == {"id_idx", "c_idx"}
    assert table.index_stats("id_idx").num_unindexed_rows == 1  # the row that was updated


def test_on_a_branch(engine_server: Server, tmp_path: Path) -> None:
    """A branch is filled by itself, with files of its own."""
    table = connect(engine_server).create_table(f"branched_{tmp_path.name}", rows(0, 10))
    table.add_columns(computed={"c": "id + 1"})
    branch = table.branches.create("b")
    branch.add(rows(10, 3))
    fill(branch, "c")
    assert (branch.count_rows("c = id + 1"), table.count_rows("c IS NULL")) == (13, 10)
    fill(table, "c")
    assert table.count_rows("c = id + 1") == 10
    version = branch.version
    fill(branch, "c")
    assert branch.version == version


def test_lancedb_goes_on(engine_server: Server, tmp_path: Path) -> None:
    """What the server declares and fills LanceDB understands past it, and the other way round."""
    name = f"shared_{tmp_path.name}"
    table = connect(engine_server).create_table(name, rows(0, 10))
    table.add_columns(computed={"c": "x * 2"})
    past: Any = lancedb.connect_namespace("rest", {"uri": engine_server.url}).open_table(name)
    past.refresh_column("c")
    assert table.refresh_column_async("c").wait().rows_assigned == 0
    past.update("id = 1", values={"x": 7.0})
    assert table.refresh_column_async("c").wait().rows_assigned == 1
    past.checkout_latest()
    past.add_columns(computed={"d": "c + 1"})
    table.checkout_latest()
    fill(table, "d")
    past.checkout_latest()
    past.refresh_column("d")
    assert table.count_rows("d = x * 2 + 1 OR x IS NULL") == 10


def test_beside_other_writers(engine_server: Server, tmp_path: Path) -> None:
    """Appends, updates, deletes and compactions during backfills: in the end every row has the value of its own inputs."""
    name = f"busy_{tmp_path.name}"
    table = connect(engine_server).create_table(name, rows(0, 400))
    for first in range(400, 2000, 400):
        table.add(rows(first, 400))
    table.add_columns(computed={"c": "x * 2"})
    catalog = namespace("rest", {"uri": engine_server.url})
    stop = threading.Event()

    def until_filled(change: Callable[[Any, int], Any]) -> Callable[[], None]:
        def run() -> None:
            mine = connect(engine_server).open_table(name)
            for n in itertools.count():
                if stop.is_set():
                    return
                change(mine, n)

        return run

    def compact(mine: Any, n: int) -> None:
        with contextlib.suppress(OSError):  # it loses against updates, which is nothing to this test
            lance.dataset(namespace_client=catalog, table_id=[name]).optimize.compact_files(target_rows_per_fragment=1000)
        time.sleep(0.1)

    def backfill() -> None:
        try:
            for _ in range(6):
                fill(connect(engine_server).open_table(name), "c")
        finally:
            stop.set()

    together(
        [
            backfill,
            until_filled(lambda t, n: t.add(rows(10_000 + 10 * n, 10))),
            until_filled(lambda t, n: t.update(f"id = {1 + 7 * n}", values={"x": 1000.0 + n})),
            until_filled(lambda t, n: t.delete(f"id = {2 + 7 * n}")),
            until_filled(compact),
        ]
    )
    table = connect(engine_server).open_table(name)
    found = table.search().limit(100_000).to_arrow()
    assert len(set(found["id"].to_pylist())) == found.num_rows
    fill(table, "c")
    assert table.count_rows("x IS NOT NULL AND (c IS NULL OR c <> x * 2)") == 0
    assert table.count_rows("x IS NULL AND c IS NOT NULL") == 0
    version = table.version
    fill(table, "c")
    assert table.version == version


@pytest.fixture
def own(binary: Path, tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own."""
    running = engine.serve(binary, tmp_path / "data", "--engine-workers", "1")
    yield running
    code = running.stop()
    assert code == 0, f"the server ended with {code}:\n{running.log}"


def test_workers_are_killed(own: Server) -> None:
    """A backfill whose workers are killed goes on where it was, and every row gets its value once."""
    table = connect(own).create_table("t", rows(0, 2000))
    for first in range(2000, 40_000, 2000):
        table.add(rows(first, 2000))
    table.add_columns(computed={"c": "x * 2"})
    declared = table.version
    status, answer = post(own, "/v1/table/t/backfill_column", {"column": "c", "commit_granularity": 1})
    assert status == 202
    killed = 0
    deadline = time.monotonic() + 60
    seen = declared
    while killed < 3:
        assert time.monotonic() < deadline
        now = connect(own).open_table("t").version
        if now == declared + 21:
            break  # it was faster
        if now > seen:
            seen = now
            for pid in workers(own):
                os.kill(pid, signal.SIGKILL)
            killed += 1
    assert killed
    assert finished(own, answer["job_id"])["status"].lower() == "succeeded"
    assert table.count_rows("c = x * 2 OR x IS NULL") == 40_000
    assert table.count_rows("x IS NULL AND c IS NOT NULL") == 0
    # One commit for each fragment, none of them twice, and one that says that all is right.
    assert connect(own).open_table("t").version == declared + 21
    assert plain(table.refresh_column_async("c").wait().rows_assigned) == 0
