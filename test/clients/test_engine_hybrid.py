"""Queries that are several searches, over plain HTTP: what LanceDB finds by itself in the same rows, and joins by itself."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import lancedb
import lancedb.query
import pyarrow as pa
import pytest
from lancedb.index import FTS

from engine import DIMENSION, connect, plain, sample
from server import Server

fts: Any = lancedb.query
NEAR = [0.5] * DIMENSION
COLUMNS = ["id", "text"]


def titled(first: int, count: int) -> pa.Table:
    """Rows with a second column of text."""
    table = sample(first, count)
    words = ("river", "meadow", "stone bridge", "rivers and rain")
    return table.append_column("title", pa.array([f"{words[i % 4]} {i}" for i in range(first, first + count)]))


class Both:
    """The same rows on the server, asked by plain HTTP, and in a local directory."""

    def __init__(self, server: Server, directory: Path) -> None:
        self._server = server
        self._name = f"hybrid_{directory.name}"
        remote = connect(server).create_table(self._name, titled(0, 300))
        self.local: Any = lancedb.connect(directory / "local").create_table(self._name, titled(0, 300))
        for table in (remote, self.local):
            for column in ("text", "title"):
                table.create_index(column, config=FTS(with_position=True, stem=False, remove_stop_words=False))

    def post(self, operation: str, body: Any) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self._server.url.removeprefix("http://"), timeout=60)
        headers = {"Content-Type": "application/json"}
        connection.request("POST", f"/v1/table/{self._name}/{operation}", json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def query(self, **body: Any) -> list[dict[str, Any]]:
        status, data = self.post("query", {"vector": {}, "k": 10, "columns": {"column_names": COLUMNS}, **body})
        assert status == 200, data
        rows: list[dict[str, Any]] = plain(pa.ipc.open_file(data).read_all())
        return rows


@pytest.fixture(scope="module")
def both(engine_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return Both(engine_server, tmp_path_factory.mktemp("both"))


def words(text: str, **more: Any) -> dict[str, Any]:
    return {"string_query": {"query": text, **more}}


def tree(**node: Any) -> dict[str, Any]:
    return {"structured_query": {"query": node}}


def local_hybrid(both: Both) -> Any:
    return both.local.search(query_type="hybrid", vector_column_name="vector", fts_columns="text").vector(NEAR).select(COLUMNS)


HYBRID: dict[str, tuple[Any, dict[str, Any]]] = {
    "as it is": (lambda q: q.text("river").limit(7), {"full_text_query": words("river", columns=["text"]), "k": 7}),
    "prefilter": (
        lambda q: q.text("river stone").where("id > 150", prefilter=True).limit(9),
        {"full_text_query": words("river stone", columns=["text"]), "k": 9, "filter": "id > 150", "prefilter": True},
    ),
    "offset": (
        lambda q: q.text("river").limit(5).offset(4),
        {"full_text_query": words("river", columns=["text"]), "k": 5, "offset": 4},
    ),
    "distance type": (
        lambda q: q.text("river").distance_type("cosine").limit(6),
        {"full_text_query": words("river", columns=["text"]), "k": 6, "distance_type": "cosine"},
    ),
    "nothing by the text": (
        lambda q: q.text("zzz").limit(4),
        {"full_text_query": words("zzz", columns=["text"]), "k": 4},
    ),
    "nothing at all": (
        lambda q: q.text("river").where("id < 0", prefilter=True).limit(4),
        {"full_text_query": words("river", columns=["text"]), "k": 4, "filter": "id < 0", "prefilter": True},
    ),
    "row ids": (
        lambda q: q.text("river").with_row_id(True).limit(4),
        {"full_text_query": words("river", columns=["text"]), "k": 4, "with_row_id": True},
    ),
}


@pytest.mark.parametrize(("ask", "body"), HYBRID.values(), ids=HYBRID)
def test_hybrid(both: Both, ask: Any, body: dict[str, Any]) -> None:
    """A vector and a text in one request are joined as LanceDB joins them: columns, scores, and how many."""
    want_table = ask(local_hybrid(both)).to_arrow()
    got = both.query(vector={"single_vector": NEAR}, vector_column="vector", **body)
    want = plain(want_table)
    assert [row["_relevance_score"] for row in got] == [row["_relevance_score"] for row in want]
    assert [list(row) for row in got] == [list(row) for row in want]
    # Rows that only the text has found tie in its scores, so that any of them may come.
    near = {row["id"] for row in plain(both.local.search(NEAR).select(["id"]).limit(3).to_arrow())}
    assert near & {row["id"] for row in got} == near & {row["id"] for row in want}


def test_all_columns(both: Both) -> None:
    """Without a choice of columns there are all of them; an unlimited query gives every row that is found, once."""
    found = both.query(vector={"single_vector": NEAR}, full_text_query=words("river"), columns=None, k=9223372036854775807)
    assert list(found[0]) == ["id", "vector", "text", "group", "title", "_relevance_score"]
    assert sorted(row["id"] for row in found) == list(range(300))


def test_aliases(both: Both) -> None:
    found = both.query(
        vector={"single_vector": NEAR}, full_text_query=words("river"), columns={"column_aliases": {"twice": "id * 2"}}, k=3
    )
    assert [list(row) for row in found] == [["twice", "_relevance_score"]] * 3


def test_plans(both: Both) -> None:
    """Both searches are told of, each by its plan."""
    body = {"vector": {"single_vector": NEAR}, "k": 3, "full_text_query": words("river", columns=["text"])}
    for operation, asked in (("explain_plan", {"query": body}), ("analyze_plan", body)):
        status, text = both.post(operation, asked)
        assert status == 200, text
        assert b"search by vector" in text
        assert b"KNN" in text
        assert b"MatchQuery" in text


def test_several_vectors_and_a_text(both: Both) -> None:
    status, text = both.post("query", {"vector": {"multi_vector": [NEAR, NEAR]}, "k": 3, "full_text_query": words("river")})
    assert (status, b"takes one vector" in text) == (400, True), text


MATCH_ONE = {"terms": "rivr", "column": "text", "fuzziness": 1}
MATCH_TWO = {"terms": "rivr", "column": "title", "fuzziness": 1}
SEVERAL: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "misspelt, in no column by name": (
        tree(match={"terms": "rivr", "fuzziness": 1}),
        [fts.MatchQuery("rivr", "text", fuzziness=1), fts.MatchQuery("rivr", "title", fuzziness=1)],
    ),
    "misspelt, in two columns": (
        tree(multi_match={"match_queries": [MATCH_ONE, MATCH_TWO]}),
        [fts.MatchQuery("rivr", "text", fuzziness=1), fts.MatchQuery("rivr", "title", fuzziness=1)],
    ),
    "different terms": (
        tree(multi_match={"match_queries": [{"terms": "winter", "column": "text"}, {"terms": "meadow", "column": "title"}]}),
        [fts.MatchQuery("winter", "text"), fts.MatchQuery("meadow", "title")],
    ),
    "boosts and fuzziness": (
        tree(multi_match={"match_queries": [{**MATCH_ONE, "boost": 2.0}, MATCH_TWO]}),
        [fts.MatchQuery("rivr", "text", fuzziness=1, boost=2.0), fts.MatchQuery("rivr", "title", fuzziness=1)],
    ),
    "a phrase, in no column by name": (
        tree(phrase={"terms": "stone bridge"}),
        [fts.PhraseQuery("stone bridge", "text"), fts.PhraseQuery("stone bridge", "title")],
    ),
    "the same words": (
        tree(multi_match={"match_queries": [{"terms": "river", "column": "text"}, {"terms": "river", "column": "title"}]}),
        [fts.MultiMatchQuery("river", ["text", "title"])],
    ),
}


@pytest.mark.parametrize(("asked", "alone"), SEVERAL.values(), ids=SEVERAL)
@pytest.mark.parametrize("more", [{}, {"filter": "id % 2 = 0", "prefilter": True}], ids=["all", "filtered"])
def test_several_columns(both: Both, asked: dict[str, Any], alone: list[Any], more: dict[str, Any]) -> None:
    """A row has the best score that LanceDB gives it in any of the columns; the limit and the offset count rows, not hits."""
    best: dict[int, float] = {}
    for query in alone:
        search = both.local.search(query).select(["id"]).limit(1000)
        for row in plain((search.where(more["filter"], prefilter=True) if more else search).to_arrow()):
            best[row["id"]] = max(row["_score"], best.get(row["id"], 0.0))
    got = both.query(full_text_query=asked, k=1000, **more)
    assert {row["id"]: row["_score"] for row in got} == best
    assert [list(row) for row in got] == [["id", "text", "_score"]] * len(got)
    scores = [row["_score"] for row in got]
    assert scores == sorted(scores, reverse=True)
    page = both.query(full_text_query=asked, k=4, offset=3, **more)
    assert [row["_score"] for row in page] == scores[3:7]


def test_inside_a_boolean(both: Both) -> None:
    """Inside another query the same rows are found."""
    got = both.query(
        full_text_query=tree(boolean={"must": [{"phrase": {"terms": "stone bridge"}}], "should": [], "must_not": []}), k=1000
    )
    assert {row["id"] for row in got} == {i for i in range(300) if i % 4 == 2}


def test_hybrid_of_several(both: Both) -> None:
    """The text of a query with a vector may be searched for in several columns."""
    got = both.query(vector={"single_vector": NEAR}, full_text_query=tree(match={"terms": "medow", "fuzziness": 1}), k=5)
    assert len(got) == 5
    assert any(row["id"] % 4 == 1 for row in got)
