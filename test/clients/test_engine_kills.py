"""Workers that are killed in the middle of each operation, queries over their time, and callers who do not wait."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from test_engine_server import begin, workers

import engine
from engine import DIMENSION, SCHEMA, connect, sample
from server import Server

JSON = "application/json"
STREAM = "application/vnd.apache.arrow.stream"
NEAR = {"vector": {"single_vector": [0.5] * DIMENSION}, "k": 3}
# No row is so, which is much work to find out.
SLOW = " + ".join(f"length(regexp_replace(text, '[a-z]+{n}?', 'xy', 'g'))" for n in range(60)) + " > 10000000"


def rows(first: int, count: int) -> bytes:
    """Write rows as an Arrow IPC stream."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_table(sample(first, count))
    return sink.getvalue()


def post(server: Server, path: str, body: Any, seconds: float = 60) -> tuple[int, bytes]:
    """Send one request and return its answer, which is there in time."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=seconds)
    with contextlib.closing(connection):
        connection.request("POST", path, data, {"Content-Type": STREAM if isinstance(body, bytes) else JSON})
        answer = connection.getresponse()
        return answer.status, answer.read()


@pytest.fixture(scope="module")
def own(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with one worker, and little time for what changes nothing."""
    running = engine.serve(binary, tmp_path_factory.mktemp("kills"), "--engine-workers", "1", "--limits-read-time", "3s")
    yield running
    code = running.stop()
    assert code == 0, f"the server ended with {code}:\n{running.log}"


# What each operation is asked, and whether it may change the table.
OPERATIONS: dict[str, tuple[str, Any, bool]] = {
    "insert": ("insert", rows(900, 5), True),
    "overwrite": ("insert?mode=overwrite", rows(900, 5), True),
    "merge": ("merge_insert?on=id&when_matched_update_all=true&when_not_matched_insert_all=true", rows(50, 20), True),
    "update": ("update", {"updates": [["text", "'new'"]]}, True),
    "delete": ("delete", {"predicate": "id < 5"}, True),
    "restore": ("restore", {"version": 1}, True),
    "index": ("create_index", {"column": "vector", "index_type": "IVF_FLAT"}, True),
    "scalar index": ("create_scalar_index", {"column": "id", "index_type": "BTREE"}, True),
    "drop index": ("index/text_idx/drop", {}, True),
    "add columns": ("add_columns", {"new_columns": [{"name": "more", "expression": "id + 1"}]}, True),
    "alter columns": ("alter_columns", {"alterations": [{"path": "group", "rename": "kind"}]}, True),
    "drop columns": ("drop_columns", {"columns": ["group"]}, True),
    "field metadata": ("update_field_metadata", {"updates": [{"path": "id", "metadata": {"a": "b"}}]}, True),
    "schema metadata": ("schema_metadata/update", {"a": "b"}, True),
    "branch": ("branches/create", {"name": "b"}, True),
    "query": ("query", NEAR, False),
    "count": ("count_rows", {"predicate": "id > 3"}, False),
    "explain": ("explain_plan", {"query": NEAR}, False),
    "analyze": ("analyze_plan", NEAR, False),
}


def stopped(server: Server) -> int:
    """Stop the only worker as it is, so that the next request is in its hands and goes no further."""
    deadline = time.monotonic() + 30
    while not (found := workers(server)):
        assert time.monotonic() < deadline, "there is no worker"
        time.sleep(0.05)
    os.kill(found[0], signal.SIGSTOP)
    return found[0]


@pytest.mark.parametrize("name", OPERATIONS)
def test_killed(own: Server, tmp_path: Path, name: str) -> None:
    """A worker dies with the request in its hands: an answer comes, and the table is one that somebody asked for."""
    path, body, changes = OPERATIONS[name]
    table = connect(own).create_table(f"k_{tmp_path.name}", sample(0, 60))
    table.create_fts_index("text")
    before = table.version
    pid = stopped(own)
    answers: list[tuple[int, bytes]] = []
    caller = threading.Thread(target=lambda: answers.append(post(own, f"/v1/table/{table.name}/{path}", body)))
    caller.start()
    caller.join(0.3)  # the request is on its way; where it has not arrived the next worker has it
    os.kill(pid, signal.SIGKILL)
    caller.join(60)
    assert answers, "no answer"
    status, text = answers[0]
    assert status in (200, 202, 500, 503), text
    if status == 503 or not changes:
        assert connect(own).open_table(table.name).version == before
    if status == 500:
        assert changes
        assert b"look at its latest version" in text
    _serves(own, table.name)
    connect(own).open_table(table.name).add(sample(2000, 1).select(["id"]))


def _serves(server: Server, name: str) -> None:
    """See that a worker answers for a table: a request that the dead one was given may still say that it is dead."""
    deadline = time.monotonic() + 30
    while (got := post(server, f"/v1/table/{name}/count_rows", {"predicate": "true"}))[0] != 200:
        assert got[0] == 503, got
        assert time.monotonic() < deadline, got


def test_killed_while_creating(own: Server, tmp_path: Path) -> None:
    """A name that was taken for a table whose rows never came is free again."""
    connect(own).create_table(f"any_{tmp_path.name}", sample(0, 3))
    name = f"new_{tmp_path.name}"
    connection = begin(own, f"/v1/table/{name}/create")
    body = rows(0, 500)
    connection.send(b"%x\r\n" % len(body) + body + b"\r\n")
    deadline = time.monotonic() + 30
    while name not in list(connect(own).table_names(limit=1000)):
        assert time.monotonic() < deadline, "the name is not taken"
    (killed,) = workers(own)
    os.kill(killed, signal.SIGKILL)
    while killed in workers(own):
        assert time.monotonic() < deadline, "the dead worker is still there"
    assert connection.sock is not None
    connection.sock.shutdown(socket.SHUT_WR)  # an error waits for the rest of what is sent
    answer = connection.getresponse()
    assert (answer.status, b"nothing was changed" in answer.read()) == (503, True)
    connection.close()
    assert name not in list(connect(own).table_names(limit=1000))
    assert connect(own).create_table(name, sample(0, 4)).count_rows() == 4


@pytest.fixture(scope="module")
def large(own: Server) -> Any:
    """A table with which much work can be made."""
    words = pa.array(["river stone cloud light winter " * 20] * 100_000)
    table = connect(own).create_table("large", pa.table({"id": pa.array(range(len(words)), pa.int64()), "text": words}))
    return table


@pytest.mark.parametrize("operation", ["count_rows", "query", "analyze_plan"])
def test_over_its_time(own: Server, large: Any, operation: str) -> None:
    """A query over its time is stopped with a sentence that says so, and the worker is free for others."""
    asked = {"predicate": SLOW} if operation == "count_rows" else {"vector": {}, "k": 200_000, "filter": SLOW}
    began = time.monotonic()
    status, text = post(own, f"/v1/table/{large.name}/{operation}", asked)
    assert (status, b"took too long" in text) == (503, True), text
    assert time.monotonic() - began < 15
    _is_free(own, large)


def test_nobody_waits(own: Server, large: Any) -> None:
    """What nobody waits for any more is given up."""
    for _ in range(3):
        with pytest.raises(TimeoutError):
            post(own, f"/v1/table/{large.name}/count_rows", {"predicate": SLOW}, 0.5)
    _is_free(own, large)


def _is_free(server: Server, table: Any) -> None:
    """See that soon no work is left behind: the worker's processor time stands still."""
    deadline = time.monotonic() + 30
    while True:
        status, text = post(server, f"/v1/table/{table.name}/count_rows", {"predicate": "id < 10"})
        used = _ticks(workers(server))
        time.sleep(0.3)
        if status == 200 and _ticks(workers(server)) - used <= 3:
            assert text.strip() == b"10"
            return
        assert time.monotonic() < deadline, f"the worker goes on: {status} {text!r}"


def _ticks(pids: list[int]) -> int:
    """Return the processor time of processes, in hundredths of a second."""
    return sum(sum(map(int, Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13])) for pid in pids)
