"""Pieces of SQL in requests: all of a piece counts, or the request is refused and has changed nothing."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import pytest

from engine import DIMENSION, connect, sample
from server import Server

NEAR = [0.5] * DIMENSION


class Asked:
    """A table of 300 rows, and plain HTTP to it."""

    def __init__(self, server: Server, name: str) -> None:
        self._server, self._name = server, name
        connect(server).create_table(name, sample(0, 300))

    def post(self, operation: str, body: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self._server.url.removeprefix("http://"), timeout=60)
        connection.request("POST", f"/v1/table/{self._name}/{operation}", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode("latin-1")

    def version(self) -> int:
        version: int = json.loads(self.post("describe", '{"load_detailed_metadata": true}')[1])["version"]
        return version

    def refused(self, operation: str, body: Any) -> None:
        before = self.version()
        status, text = self.post(operation, body if isinstance(body, str) else json.dumps(body))
        assert status == 400, (status, text[:300])
        assert ".rs" not in text
        assert self.version() == before


@pytest.fixture(scope="module")
def asked(engine_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    return Asked(engine_server, f"sql_{Path(tmp_path_factory.mktemp('sql')).name}")


BEYOND = [
    "id = 1; DROP TABLE t",
    "id = 1;",
    "id = 1 LIMIT 1",
    "id = 1 ORDER BY id",
    "id = 1 id = 2",
    "id = 1 GROUP BY id",
    "id = 1 UNION SELECT 1",
    "id = 1) OR (id = 2",
    "id = 1) id = 2 (id = 3",
    "(id = 1",
    "id = 1)",
    "-- all",
    "id = 1 /* all",
    "id = 'x",
]


@pytest.mark.parametrize("condition", BEYOND)
def test_more_than_a_condition(asked: Asked, condition: str) -> None:
    """The library alone would read the beginning, and do to its rows what was meant for others."""
    asked.refused("delete", {"predicate": condition})
    asked.refused("update", {"updates": [["group", "'c'"]], "predicate": condition})
    asked.refused("update", {"updates": [["id", condition]]})
    asked.refused("count_rows", {"predicate": condition})
    asked.refused("query", {"vector": {}, "k": 5, "filter": condition})
    asked.refused("explain_plan", {"query": {"vector": {}, "k": 5, "filter": condition}})
    asked.refused("query", {"vector": {}, "k": 5, "columns": {"column_aliases": {"a": condition}}})
    asked.refused("add_columns", {"new_columns": [{"name": "a", "expression": condition}]})
    asked.refused("add_columns", {"new_columns": [{"name": "a", "computed": condition}]})


CONDITIONS = {
    "id IN (1, 2, 3)": 3,
    "(id = 1) OR (id = 2)": 2,
    "text = ')' OR text = '(' OR id = 4": 1,
    "text LIKE '%;%' OR id = 5": 1,
    "`id` = 6 -- the sixth": 1,
    "id = 7 /* or 8 */": 1,
    "text = 'it''s (' OR id < 2": 2,
    " id >= 298 \n": 2,
    f"id IN ({', '.join(map(str, range(20_000)))})": 300,
}


@pytest.mark.parametrize(("condition", "rows"), CONDITIONS.items(), ids=[c[:30] for c in CONDITIONS])
def test_a_condition(asked: Asked, condition: str, rows: int) -> None:
    """Brackets and signs in texts, comments and long lists are as they always were."""
    assert asked.post("count_rows", json.dumps({"predicate": condition})) == (200, str(rows))


def test_a_column_that_is_missing(asked: Asked) -> None:
    asked.refused("add_columns", {"new_columns": [{"name": "a", "expression": "nobody"}]})


@pytest.mark.parametrize(
    "vector",
    [
        {"single_vector": NEAR, "multi_vector": [NEAR]},
        {"single_vector": [None, *NEAR[1:]]},
        {"multi_vector": [NEAR, [None] * DIMENSION]},
        [None] * DIMENSION,
        [NEAR, [*NEAR[1:], None]],
    ],
)
def test_vectors_that_are_none(asked: Asked, vector: Any) -> None:
    """A null is no number, and not 0."""
    asked.refused("query", {"vector": vector, "k": 3})


def test_a_text_that_is_none(asked: Asked) -> None:
    asked.refused("query", {"vector": {}, "k": 3, "full_text_query": {}})
