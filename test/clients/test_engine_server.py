"""A server with an engine when things are not as they should be, and where tables do not lie on its own disk."""

from __future__ import annotations

import contextlib
import http.client
import io
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import lancedb
import lancedb.remote.errors
import pyarrow as pa
import pytest
from lance_namespace import connect as namespace

import engine
from engine import DIMENSION, SCHEMA, connect, sample
from lake import together
from server import Server
from storage import Storage, config, s3, without_configuration


@pytest.fixture
def own(binary: Path, tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own."""
    running = engine.serve(binary, tmp_path / "data", "--engine-workers", "1")
    yield running
    code = running.stop()
    assert code == 0, f"the server ended with {code}:\n{running.log}"


def workers(server: Server) -> list[int]:
    """Return the processes of a server's workers."""
    assert server._process is not None
    parent = str(server._process.pid)
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "stat").read_text().rsplit(")", 1)[1].split()[1] == parent:
                found.append(int(entry.name))
        except OSError:
            continue  # it has ended
    return found


def test_workers_are_killed_under_load(own: Server) -> None:
    """However often workers die, what was acknowledged is there, nothing else is, and the table is sound."""
    db = connect(own)
    db.create_table("t", sample(0, 1))
    stop = threading.Event()
    tried: set[int] = set()
    done: set[int] = {0}

    def write(first: int) -> None:
        table = connect(own).open_table("t")
        for n in range(first, first + 12):
            tried.add(n)
            # Where no answer came it is not known whether the row is there. The SDK tries again by itself, and then gives up.
            with contextlib.suppress(RuntimeError, lancedb.remote.errors.HttpError, lancedb.remote.errors.RetryError):
                table.add(sample(n, 1))
                done.add(n)

    def kill() -> None:
        after = 3
        while not stop.wait(0.01):
            if len(done) > after:  # so that every worker gets somewhere first
                after = len(done) + 3
                for pid in workers(own):
                    os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        together([lambda: write(1000), lambda: write(2000)])
    finally:
        stop.set()
        killer.join()
    ids = db.open_table("t").search().limit(1000).to_arrow()["id"].to_pylist()
    assert done <= set(ids) <= tried | {0}
    assert len(done) > 10
    lance.dataset(namespace_client=namespace("rest", {"uri": own.url}), table_id=["t"]).validate()


class _Chunks(io.RawIOBase):
    """Rows on their way into a request, one chunk a write."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        if view.nbytes:
            self._connection.send(b"%x\r\n" % view.nbytes + bytes(view) + b"\r\n")
        return view.nbytes


def begin(server: Server, path: str) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
    connection.putrequest("POST", path)
    connection.putheader("Content-Type", "application/vnd.apache.arrow.stream")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    return connection


def test_a_caller_is_cut_off(engine_server: Server, tmp_path: Path) -> None:
    """Rows of a caller whose connection ends before its stream does are not committed; a table that it creates is not there."""
    db = connect(engine_server)
    name = f"cut_{tmp_path.name}"
    db.create_table(name, sample(0, 10))
    for path in (
        f"/v1/table/{name}/insert",
        f"/v1/table/{name}_new/create",
        f"/v1/table/{name}/merge_insert?on=id&when_not_matched_insert_all=true",
    ):
        connection = begin(engine_server, path)
        with pa.ipc.new_stream(_Chunks(connection), SCHEMA) as writer:
            for n in range(20):
                writer.write_table(sample(1000 * n, 400))
        assert connection.sock is not None
        connection.sock.close()  # the stream has its end, the body has not
        connection.close()
    deadline = time.monotonic() + 30
    while f"{name}_new" in list(db.table_names(limit=1000)):
        assert time.monotonic() < deadline, "the table stays declared"
    assert db.open_table(name).count_rows() == 10
    assert db.open_table(name).version == 1
    db.create_table(f"{name}_new", sample(0, 3))


def test_stop_lets_an_insert_end(binary: Path, tmp_path: Path) -> None:
    """A server that is asked to stop goes on with the rows that are being sent, commits them, and then ends."""
    running = engine.serve(binary, tmp_path / "data", "--engine-workers", "1")
    connect(running).create_table("t", sample(0, 10))
    connection = begin(running, "/v1/table/t/insert")
    writer = pa.ipc.new_stream(_Chunks(connection), SCHEMA)
    writer.write_table(sample(10, 10))
    code: list[int] = []
    stopper = threading.Thread(target=lambda: code.append(running.stop()))
    stopper.start()
    refused = http.client.HTTPConnection(running.url.removeprefix("http://"), timeout=60)
    deadline = time.monotonic() + 30
    while True:
        refused.request("GET", "/readyz")
        answer = refused.getresponse()
        answer.read()
        if answer.status == 503:
            break
        assert time.monotonic() < deadline
    writer.write_table(sample(20, 10))
    writer.close()
    connection.send(b"0\r\n\r\n")
    answer = connection.getresponse()
    assert (answer.status, b'"num_inserted_rows":20' in answer.read()) == (200, True)
    stopper.join()
    assert code == [0], running.log
    assert workers(running) == []
    running.start()
    assert connect(running).open_table("t").count_rows() == 30
    assert running.stop() == 0


def test_writers_together(engine_server: Server, tmp_path: Path) -> None:
    """Writers of one table conflict and lose nothing, by the engine and past it."""
    db = connect(engine_server)
    name = f"many_{tmp_path.name}"
    db.create_table(name, sample(0, 10))
    catalog = namespace("rest", {"uri": engine_server.url})

    def add(first: int) -> None:
        table = connect(engine_server).open_table(name)
        for n in range(5):
            table.add(sample(first + n, 1))

    def past() -> None:
        for n in range(5):
            lance.write_dataset(sample(9000 + n, 1), mode="append", namespace_client=catalog, table_id=[name])

    def update() -> None:
        table = connect(engine_server).open_table(name)
        for n in range(5):
            table.update("id < 10", values={"text": f"{n}"})

    together([lambda: add(1000), lambda: add(2000), past, update])
    table = db.open_table(name)
    assert table.count_rows() == 10 + 15
    assert table.count_rows("text = '4'") == 10
    assert table.version == 1 + 15 + 5


def test_a_reader_sees_the_last_commit(engine_server: Server, tmp_path: Path) -> None:
    """Whoever commits, and by which way, the next answer of the engine has it."""
    db = connect(engine_server)
    name = f"fresh_{tmp_path.name}"
    table = db.create_table(name, sample(0, 1))
    catalog = namespace("rest", {"uri": engine_server.url})
    for n in range(1, 15):
        if n % 2:
            table.add(sample(n, 1))
        else:
            lance.write_dataset(sample(n, 1), mode="append", namespace_client=catalog, table_id=[name])
        assert table.count_rows("id >= 0") == n + 1


@pytest.fixture(scope="module")
def bucket() -> Iterator[Storage]:
    with s3() as storage:
        yield storage


@pytest.mark.parametrize("credentials", ["client", "none", "vend"])
def test_tables_on_s3(binary: Path, bucket: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, credentials: str) -> None:
    """Workers reach storage by the server's own keys, whatever clients are given."""
    without_configuration(monkeypatch, tmp_path)
    more = f'[root.vend]\nrole_arn = "{bucket.role}"\n' if credentials == "vend" else f'credentials = "{credentials}"'
    file = config(bucket, tmp_path, f"{credentials}{time.time_ns()}", more)
    running = engine.serve(binary, tmp_path / "data", "--engine-workers", "1", "--config", str(file))
    table = connect(running).create_table("t", sample(0, 300))
    table.add(sample(300, 10))
    table.update("id = 3", values={"text": "changed"})
    table.delete("id < 3")
    table.create_fts_index("text")
    assert table.count_rows("text = 'changed'") == 1
    assert len(table.search([0.5] * DIMENSION).limit(5).to_list()) == 5
    branch = table.branches.create("b")
    branch.add(sample(1000, 1))
    assert (branch.count_rows(), table.count_rows()) == (308, 307)
    code = running.stop()
    assert code == 0, running.log
