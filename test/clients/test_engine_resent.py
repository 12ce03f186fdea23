"""Changes that LanceDB's SDK sends again because their answer was lost: with the same x-request-id each is made once."""

from __future__ import annotations

import http.client
import json
import uuid
from typing import Any

import pytest

from engine import connect, sample
from server import Server

# What an operation needs before it can be tried, and the operation with its body.
CHANGES: dict[str, tuple[list[tuple[str, Any]], str, Any]] = {
    "update": ([], "update", {"updates": [["id", "id + 1"]]}),
    "delete": ([], "delete", {"predicate": "id < 5"}),
    "restore": ([("delete", {"predicate": "id < 5"})], "restore", {"version": 1}),
    "create_index": ([], "create_index", {"column": "id", "index_type": "BTREE", "name": "mine"}),
    "drop_index": ([("create_index", {"column": "id", "index_type": "BTREE", "name": "mine"})], "index/mine/drop", None),
    "add_columns": ([], "add_columns", {"new_columns": [{"name": "twice", "expression": "id * 2"}]}),
    "alter_columns": ([], "alter_columns", {"alterations": [{"path": "text", "rename": "words"}]}),
    "drop_columns": ([], "drop_columns", {"columns": ["text"]}),
    "field metadata": ([], "update_field_metadata", {"updates": [{"path": "id", "metadata": {"a": "b"}}]}),
    "create_tag": ([], "tags/create", {"tag": "one", "version": 1}),
    "update_tag": (
        [("tags/create", {"tag": "one", "version": 1}), ("delete", {"predicate": "id = 1"})],
        "tags/update",
        {"tag": "one", "version": 2},
    ),
    "delete_tag": ([("tags/create", {"tag": "one", "version": 1})], "tags/delete", {"tag": "one"}),
    "create_branch": ([], "branches/create", {"name": "b", "from_version": 1}),
    "delete_branch": ([("branches/create", {"name": "b", "from_version": 1})], "branches/delete", {"name": "b"}),
}


class Table:
    """A table, asked as the SDK asks."""

    def __init__(self, server: Server, name: str) -> None:
        self._server, self._name = server, name
        connect(server).create_table(name, sample(0, 50))

    def post(self, operation: str, body: Any, request: str | None = None) -> tuple[int, str, str | None]:
        """Send a request; the answer's status, text and version header."""
        connection = http.client.HTTPConnection(self._server.url.removeprefix("http://"), timeout=60)
        headers = {"x-lancedb-database": "lake", "x-api-key": "sk_test", "x-request-id": request or str(uuid.uuid4())}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request("POST", f"/v1/table/{self._name}/{operation}/", None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers.get("x-lancedb-version")

    def version(self) -> int:
        version: int = json.loads(self.post("describe", {"version": None})[1])["version"]
        return version


@pytest.mark.parametrize(("before", "operation", "body"), CHANGES.values(), ids=CHANGES)
def test_sent_again(engine_server: Server, before: list[tuple[str, Any]], operation: str, body: Any) -> None:
    table = Table(engine_server, f"resent_{uuid.uuid4().hex}")
    for earlier, its in before:
        status, text, _ = table.post(earlier, its)
        assert status in (200, 201, 204), text
    request = str(uuid.uuid4())
    first = table.post(operation, body, request)
    assert first[0] in (200, 201, 204), first
    version = table.version()
    assert table.post(operation, body, request) == first
    assert table.version() == version
    if "version" in (answer := json.loads(first[1] or "{}")) and isinstance(answer["version"], int):
        assert first[2] == str(answer["version"])


@pytest.mark.parametrize("name", ["min-version", "min-read-version"])
@pytest.mark.parametrize("minimum", ["1", "99", "none"])
def test_minimum(engine_server: Server, name: str, minimum: str) -> None:
    """Answers are from the latest version, whatever older or later one a caller has seen under that name."""
    table = Table(engine_server, f"minimum_{uuid.uuid4().hex}")
    remote = connect(engine_server, client_config={"extra_headers": {f"x-lancedb-{name}": minimum}})
    opened = remote.open_table(table._name)
    for n in range(3):
        assert table.post("delete", {"predicate": f"id = {n}"})[0] == 200
        assert opened.count_rows("id >= 0") == 49 - n
        assert len(opened.search().limit(100).to_list()) == 49 - n
