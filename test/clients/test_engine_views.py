"""Materialized views: as LanceDB keeps them by itself, beside other writers, and when workers die."""

from __future__ import annotations

import base64
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa
import pytest
from lancedb.index import BTree
from test_engine_computed import finished, post
from test_engine_server import workers

import engine
from engine import connect, plain
from lake import together
from server import Server
from storage import config, s3, without_configuration

ROW = "__source_row_id"
STABLE = {"new_table_enable_stable_row_ids": "true"}
_numbers = itertools.count(1)


def rows(first: int, count: int) -> pa.Table:
    """Return rows with a column that can be null and a nested one."""
    ids = list(range(first, first + count))
    values = [None if i % 7 == 0 else float(i) for i in ids]
    return pa.table({"id": ids, "x": values, "text": [f"word {i}" for i in ids], "s": [{"a": i, "b": "b"} for i in ids]})


class Pair:
    """A table twice, with names for views of it: on the server, and in a local database by LanceDB itself."""

    def __init__(self, server: Server, directory: Path) -> None:
        n = next(_numbers)
        self.name, self.view = f"t{n}_{directory.name}", f"v{n}_{directory.name}"
        self.remote_db: Any = connect(server)
        self.local_db: Any = lancedb.connect(str(directory / "local"))
        self.remote_db.create_table(self.name, rows(0, 20))
        self.local_db.create_table(self.name, rows(0, 20), storage_options=STABLE)

    def each(self, do: Callable[[Any], Any]) -> list[Any]:
        """Do the same on both databases, and return what they answer: the server first."""
        return [do(self.remote_db), do(self.local_db)]

    def same(self, view: str) -> None:
        """Check that a view is the same on both."""
        remote, local = self.each(lambda db: db.open_materialized_view(view))
        assert remote.definition == local.definition
        assert remote.table.schema == local.table.schema
        assert contents(remote.table) == contents(local.table)


def contents(table: Any) -> list[dict[str, Any]]:
    """Return a view's rows without the ids of the source's rows, which depend on how that was written."""
    found = table.search().limit(100_000).to_arrow().drop_columns([ROW]).to_pylist()
    return sorted(plain(found), key=repr)


@pytest.fixture
def pair(engine_server: Server, tmp_path: Path) -> Pair:
    return Pair(engine_server, tmp_path)


@pytest.fixture
def db(engine_server: Server) -> Any:
    return connect(engine_server)


VIEWS: dict[str, dict[str, Any]] = {
    "all": {},
    "columns": {"select": ["id", "text"]},
    "expressions": {"select": {"id": "id", "twice": "x*2", "word": "upper(text)", "a": "s.a"}},
    "names that need quotes": {"select": [("Key", "id"), ("two words", "x + 1")]},
    "where": {"where": "x > 3 and text <> 'word 5'"},
    "limit": {"select": ["id"], "limit": 7},
    "everything": {"select": {"id": "id", "y": "coalesce(x, -1)"}, "where": "id >= 2", "limit": 5},
    "nothing": {"where": "id < 0"},
    "limit of none": {"limit": 0},
}


@pytest.mark.parametrize("what", VIEWS)
def test_as_lancedb(pair: Pair, what: str) -> None:
    """The same call makes the same view, of the same columns, definition and rows."""
    pair.each(lambda db: db.create_materialized_view(pair.view, pair.name, **VIEWS[what]))
    pair.same(pair.view)


def test_refreshed(pair: Pair) -> None:
    """After each kind of change, a refresh brings the view to where LanceDB's is."""
    options = {"select": {"id": "id", "y": "x * 2"}, "where": "id % 2 = 0"}
    empty = pair.each(lambda db: db.create_materialized_view(pair.view, pair.name, with_no_data=True, **options))
    assert [view.table.count_rows() for view in empty] == [0, 0]
    assert [view.refresh().rows_written for view in empty] == [10, 10]
    pair.same(pair.view)
    changes: list[Callable[[Any], Any]] = [
        lambda t: t.add(rows(20, 10)),
        lambda t: t.update("id = 4", values={"x": 100.0}),
        lambda t: t.delete("id < 3"),
        lambda t: t.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(25, 10)),
        lambda t: t.add_columns({"more": "id"}),
    ]
    for change in changes:
        for database in (pair.remote_db, pair.local_db):
            change(database.open_table(pair.name))
        results = pair.each(lambda db: db.open_materialized_view(pair.view).refresh())
        assert results[0].mode in ("incremental", "rebuild")
        pair.same(pair.view)
    view = pair.remote_db.open_materialized_view(pair.view)
    again = view.refresh()
    assert (again.mode, again.rows_written, again.source_version) == ("no_op", 0, pair.remote_db.open_table(pair.name).version)
    assert again.version == pair.remote_db.open_table(pair.view).version
    assert view.refresh(full=True).mode == "rebuild"
    pair.same(pair.view)
    pair.each(lambda db: db.open_materialized_view(pair.view).refresh(source_version=1))
    pair.same(pair.view)
    assert view.table.count_rows() == 10


def test_appended(db: Any, tmp_path: Path) -> None:
    """Rows that come are computed alone, and what is there already stays as it is."""
    source = db.create_table(f"t_{tmp_path.name}", rows(0, 10))
    view = db.create_materialized_view(f"v_{tmp_path.name}", source.name, where="x > 2")
    source.add(rows(10, 5))
    result = view.refresh()
    assert (result.mode, result.rows_written) == ("incremental", 4)
    source.add(rows(14, 1))  # which the condition leaves out
    assert view.refresh().rows_written == 0
    assert view.refresh().mode == "no_op"
    assert view.table.count_rows() == source.count_rows("x > 2")


def test_indices_stay(db: Any, tmp_path: Path) -> None:
    """A view's indices are there after a refresh of either kind, and what is found by them is right."""
    source = db.create_table(f"t_{tmp_path.name}", rows(0, 20))
    view = db.create_materialized_view(f"v_{tmp_path.name}", source.name)
    view.table.create_index("id", config=BTree())
    assert view.refresh().mode == "no_op"  # an index is no reason
    source.add(rows(20, 5))
    assert view.refresh().mode == "incremental"
    assert view.table.search().where("id = 21").to_arrow()["x"].to_pylist() == [None]
    source.update("id = 3", values={"x": 33.0})
    assert view.refresh().mode == "rebuild"
    assert view.table.search().where("id = 3").to_arrow()["x"].to_pylist() == [33.0]
    assert [i.name for i in view.table.list_indices()] == ["id_idx"]


def test_listed_and_dropped(db: Any, tmp_path: Path) -> None:
    """Views are tables that say that they are views."""
    source = db.create_table(f"t_{tmp_path.name}", rows(0, 3))
    name = f"v_{tmp_path.name}"
    view = db.create_materialized_view(name, source.name)
    assert name in db.list_materialized_views()
    assert source.name not in db.list_materialized_views()
    assert view.table.search().where("id = 2").to_list()[0]["text"] == "word 2"
    with pytest.raises(Exception, match="not a materialized view"):
        db.open_materialized_view(source.name)
    with pytest.raises(Exception, match="already exists"):
        db.create_materialized_view(name, source.name)
    db.drop_materialized_view(name)
    assert name not in db.list_materialized_views()
    assert name not in list(db.list_tables(limit=10_000).tables)


def test_lancedb_reads(engine_server: Server, db: Any, tmp_path: Path) -> None:
    """LanceDB past the server's engine takes a view for what it is."""
    source = db.create_table(f"t_{tmp_path.name}", rows(0, 5))
    name = f"v_{tmp_path.name}"
    db.create_materialized_view(name, source.name, select={"y": "x*2"})
    past = lancedb.connect_namespace("rest", {"uri": engine_server.url})
    view = past.open_materialized_view(name)
    assert view.definition.query == f"SELECT x * 2 AS y FROM {source.name}"
    assert contents(view.table) == [{"y": 2.0 * i} for i in range(1, 5)] + [{"y": None}]
    with pytest.raises(Exception, match="not a materialized view"):
        past.open_materialized_view(source.name)


def test_lancedb_goes_on(engine_server: Server, db: Any, tmp_path: Path) -> None:
    """A view that LanceDB has made the server refreshes, and the other way round, each from where the other stopped."""
    past: Any = lancedb.connect_namespace("rest", {"uri": engine_server.url})
    source = past.create_table(f"t_{tmp_path.name}", rows(0, 5), storage_options=STABLE)
    names = [f"{maker}_{tmp_path.name}" for maker in ("past", "server")]
    past.create_materialized_view(names[0], source.name, select={"id": "id", "y": "x*2"})
    db.create_materialized_view(names[1], source.name, select={"id": "id", "y": "x*2"})
    for n, refresher in enumerate((db, past, db, db, past, past, db)):
        db.open_table(source.name).add(rows(5 + 5 * n, 5))
        if n == 4:
            db.open_table(source.name).update("id = 1", values={"x": 50.0})
        views = [refresher.open_materialized_view(name) for name in names]
        assert all(view.refresh().mode in ("incremental", "rebuild") for view in views)
        assert [db.open_materialized_view(name).refresh().mode for name in names] == ["no_op", "no_op"]
        found = [contents(db.open_table(name)) for name in names]
        assert found[0] == found[1]
        assert len(found[0]) == 10 + 5 * n


def encoded(schema: pa.Schema) -> str:
    """Return a schema as the specification has it in JSON."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


ID = encoded(pa.schema([("id", pa.int64())]))
WRONG: dict[str, tuple[int, int, dict[str, Any]]] = {
    "no kind": (400, 13, {"kind": "table"}),
    "a function": (406, 0, {"kind": "udtf"}),
    "a chunker": (406, 0, {"kind": "chunker"}),
    "another schema": (400, 13, {"output_schema": encoded(pa.schema([("id", pa.int32())]))}),
    "another name": (400, 13, {"output_schema": encoded(pa.schema([("key", pa.int64())]))}),
    "no schema": (400, 13, {"output_schema": "!"}),
    "no SQL": (400, 13, {"source_query": "SELEC id FROM {t}"}),
    "no source": (404, 4, {"source_query": "SELECT id FROM nothing"}),
    "no column": (404, 12, {"source_query": "SELECT nothing AS id FROM {t}"}),
    "no condition": (400, 13, {"source_query": "SELECT id FROM {t} WHERE id"}),
    "no limit": (400, 13, {"source_query": "SELECT id FROM {t} LIMIT all"}),
    "groups": (406, 0, {"source_query": "SELECT id FROM {t} GROUP BY id"}),
    "order": (406, 0, {"source_query": "SELECT id FROM {t} ORDER BY id"}),
    "a join": (406, 0, {"source_query": "SELECT id FROM {t} JOIN u ON true"}),
    "two sources": (406, 0, {"source_query": "SELECT id FROM {t}, u"}),
    "a function as source": (406, 0, {"source_query": "SELECT id FROM f({t})"}),
    "unnested lists": (406, 0, {"source_query": "SELECT id FROM {t}, UNNEST(l) AS e"}),
    "a query within": (406, 0, {"source_query": "SELECT (SELECT 1) AS id FROM {t}"}),
    "an aggregate": (400, 13, {"source_query": "SELECT sum(id) AS id FROM {t}"}),
    "what changes": (400, 13, {"source_query": "SELECT random() AS id FROM {t}"}),
    "a second statement": (400, 13, {"source_query": "SELECT id FROM {t} WHERE true; DROP TABLE {t}"}),
    "a comment": (400, 13, {"source_query": "SELECT id FROM {t} -- WHERE"}),
    "no name": (400, 13, {"source_query": "SELECT id + 1 FROM {t}"}),
    "a name twice": (400, 13, {"source_query": "SELECT id, id FROM {t}"}),
    "a later format": (406, 0, {"source_query": '{{"format": 9, "query": "SELECT id FROM {t}"}}'}),
    "no JSON": (400, 13, {"source_query": "{{"}),
    "itself": (400, 13, {"source_query": "SELECT id FROM {v}"}),
}


@pytest.mark.parametrize("what", WRONG)
def test_refused(engine_server: Server, db: Any, tmp_path: Path, what: str) -> None:
    """What is wrong is said at once, and the name stays free."""
    names = {"t": f"t_{tmp_path.name}", "v": f"v_{tmp_path.name}"}
    db.create_table(names["t"], rows(0, 3))
    status, code, change = WRONG[what]
    body = {"kind": "query", "source_query": "SELECT id FROM {t}", "output_schema": ID, **change}
    body["source_query"] = body["source_query"].format(**names)
    got, answer = post(engine_server, f"/v1/materialized_view/{names['v']}/create", body)
    assert (got, answer["code"]) == (status, code), answer
    assert names["v"] not in list(db.list_tables(limit=10_000).tables)


FORMS = [
    "SELECT id FROM {t}",
    'select `id` as "id" from "{t}" where id >= 0;',
    '{{"format":1,"query":"SELECT id FROM {t}"}}',
    '{{"kind":"select","source_table":"{t}","projections":[{{"output":"id","expression":"id"}}],"inputs":["id"]}}',
]


@pytest.mark.parametrize("form", FORMS)
def test_by_the_specification(engine_server: Server, db: Any, tmp_path: Path, form: str) -> None:
    """Over plain HTTP, with the schema that the client gives: 201 with the version, then 202 with a job."""
    source = db.create_table(f"t_{tmp_path.name}", rows(0, 3))
    name = f"v_{tmp_path.name}"
    body = {"kind": "query", "source_query": form.format(t=source.name), "output_schema": ID}
    status, answer = post(engine_server, f"/v1/materialized_view/{name}/create", body)
    assert (status, answer["version"], answer.get("job_id")) == (201, 1, None)
    table = db.open_table(name)
    assert (table.schema.names, table.count_rows()) == (["id"], 0)
    status, answer = post(engine_server, f"/v1/materialized_view/{name}/refresh", {"max_rows_per_fragment": 2})
    assert status == 202
    assert finished(engine_server, answer["job_id"])["status"].lower() == "succeeded"
    table.checkout_latest()
    assert (table.count_rows(), table.stats()["fragment_stats"]["num_fragments"]) == (3, 2)
    for fields, code in (({"output_limit": 1}, 13), ({"src_version": 99}, 11), ({"max_rows_per_fragment": 0}, 13)):
        status, answer = post(engine_server, f"/v1/materialized_view/{name}/refresh", fields)
        assert (status // 100, answer["code"]) == (4, code)
    status, answer = post(engine_server, f"/v1/materialized_view/{source.name}/refresh", {})
    assert (status, answer["code"]) == (400, 13)


def test_source_goes_away(db: Any, tmp_path: Path) -> None:
    """Without its source a view stays as it is and says why; of a new table of that name all is computed anew."""
    source = db.create_table(f"t_{tmp_path.name}", rows(0, 3))
    view = db.create_materialized_view(f"v_{tmp_path.name}", source.name, select=["id"])
    db.drop_table(source.name)
    with pytest.raises(Exception, match="does not exist any more"):
        view.refresh()
    assert view.table.count_rows() == 3
    db.create_table(source.name, rows(100, 5))
    result = view.refresh()
    assert (result.mode, result.source_version) == ("rebuild", 1)
    assert sorted(view.table.search().limit(10).to_arrow()["id"].to_pylist()) == list(range(100, 105))
    db.create_table(source.name, pa.table({"other": [1]}), mode="overwrite")
    with pytest.raises(Exception, match="no column 'id'"):
        view.refresh()


def test_written_by_others(db: Any, tmp_path: Path) -> None:
    """What somebody writes into a view is gone after the next refresh."""
    source = db.create_table(f"t_{tmp_path.name}", rows(0, 10))
    view = db.create_materialized_view(f"v_{tmp_path.name}", source.name, select=["id"])
    view.table.delete("id < 5")
    assert view.refresh().mode == "rebuild"
    assert view.table.count_rows() == 10


def test_of_a_computed_column(db: Any, tmp_path: Path) -> None:
    """A view of a computed column is an ordinary column there, and a backfill is a change like others."""
    source = db.create_table(f"t_{tmp_path.name}", rows(0, 10))
    source.add_columns(computed={"c": "id + 1"})
    view = db.create_materialized_view(f"v_{tmp_path.name}", source.name, select=["c"])
    source.refresh_column_async("c").wait()
    assert view.refresh().mode == "rebuild"
    assert sorted(view.table.search().limit(20).to_arrow()["c"].to_pylist()) == list(range(1, 11))
    assert not view.table.schema.field("c").metadata


def test_many_refreshes_together(engine_server: Server, db: Any, tmp_path: Path) -> None:
    """Refreshes at a time, beside writers of the source: no reader ever sees a row twice, and in the end all are there."""
    source = db.create_table(f"t_{tmp_path.name}", rows(0, 100))
    name = f"v_{tmp_path.name}"
    db.create_materialized_view(name, source.name, select=["id"], where="id >= 0")
    stop = threading.Event()

    def write() -> None:
        mine = connect(engine_server).open_table(source.name)
        for n in range(8):
            mine.add(rows(1000 + 10 * n, 10))
            mine.delete(f"id = {n}")

    def refresh() -> None:
        view = connect(engine_server).open_materialized_view(name)
        for n in range(5):
            view.refresh(full=n == 3)

    def read() -> None:
        mine = connect(engine_server).open_table(name)
        while not stop.is_set():
            mine.checkout_latest()
            seen = mine.search().limit(100_000).to_arrow()["id"].to_pylist()
            assert len(set(seen)) == len(seen)
            assert len(seen) >= 92

    reader = threading.Thread(target=lambda: failures.append(_failure(read)))
    failures: list[BaseException | None] = []
    reader.start()
    try:
        together([write, refresh, refresh, refresh])
    finally:
        stop.set()
        reader.join()
    assert failures == [None]
    view = db.open_materialized_view(name)
    view.refresh()
    wanted = sorted(source.search().limit(100_000).to_arrow()["id"].to_pylist())
    assert sorted(view.table.search().limit(100_000).to_arrow()["id"].to_pylist()) == wanted


def _failure(run: Callable[[], None]) -> BaseException | None:
    try:
        run()
    except BaseException as err:  # it is told by the test's own thread
        return err
    return None


def test_on_s3(binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column is filled, also on a branch, and a view is refreshed in each way, where tables have keys of their own."""
    without_configuration(monkeypatch, tmp_path)
    with s3() as storage:
        file = config(storage, tmp_path, "views", f'[root.vend]\nrole_arn = "{storage.role}"\n')
        running = engine.serve(binary, tmp_path / "data", "--engine-workers", "1", "--config", str(file))
        db = connect(running)
        source = db.create_table("t", rows(0, 20))
        source.add_columns(computed={"c": "id + 1"})
        branch = source.branches.create("b")
        for table in (source, branch):
            table.refresh_column_async("c").wait()
            assert table.count_rows("c = id + 1") == 20
        view = db.create_materialized_view("v", "t", select=["id", "c"])
        source.add(rows(20, 5))
        assert view.refresh().mode == "incremental"
        view.table.create_index("id", config=BTree())
        source.refresh_column_async("c").wait()
        assert view.refresh().mode == "rebuild"
        assert view.table.count_rows("c = id + 1") == 25
        code = running.stop()
        assert code == 0, running.log


@pytest.fixture
def own(binary: Path, tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own."""
    running = engine.serve(binary, tmp_path / "data", "--engine-workers", "1")
    yield running
    code = running.stop()
    assert code == 0, f"the server ended with {code}:\n{running.log}"


def test_workers_are_killed(own: Server) -> None:
    """A refresh whose worker is killed is made again: the view has every row once, and before that those that it had."""
    db = connect(own)
    source = db.create_table("t", rows(0, 100_000))
    view = db.create_materialized_view("v", "t", select=["id", "text"])
    source.update("id < 50000", values_sql={"text": "'changed'"})
    for kill in range(3):
        _, answer = post(own, "/v1/materialized_view/v/refresh", {})
        time.sleep(0.03 * kill)  # at different places of the refresh
        for pid in workers(own):
            os.kill(pid, signal.SIGKILL)
        assert finished(own, answer["job_id"])["status"].lower() == "succeeded"
        found = db.open_table("v").search().limit(200_000).to_arrow()
        assert len(set(found["id"].to_pylist())) == found.num_rows == 100_000
        assert db.open_table("v").count_rows("text = 'changed'") == 50_000
        source.update("id < 50000", values_sql={"text": "'changed'"})
    assert view.refresh().mode == "rebuild"
