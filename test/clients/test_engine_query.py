"""What LanceDB's remote SDK finds by the server's engine is what LanceDB finds by itself in the same rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lancedb.query
import numpy as np
import pyarrow as pa
import pytest

from engine import DIMENSION, Pair, sample
from server import Server

Ask = Callable[[Any], Any]

# The fields of these classes have defaults that their types do not show.
fts: Any = lancedb.query

RIVER = fts.MatchQuery("river", "text")
STONE = fts.MatchQuery("stone", "text")

NEAR = [0.5] * DIMENSION
FAR = [0.0, 1.0] * (DIMENSION // 2)


@pytest.fixture(scope="module")
def pair(engine_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Rows of two fragments with a full-text index, which no test changes."""
    pair = Pair(engine_server, tmp_path_factory.mktemp("query"))
    for table in (pair.local, pair.remote):
        table.add(sample(400, 100))
        table.create_fts_index("text", with_position=True, remove_stop_words=False, stem=False)
    return pair


SCANS: dict[str, Ask] = {
    "all": lambda t: sorted(t.search().limit(1000).to_arrow()["id"].to_pylist()),
    "filter": lambda t: t.search().where("id > 17 AND id < 30").limit(100).to_list(),
    "filter on text": lambda t: t.search().where("text LIKE 'river%7'").select(["id"]).limit(1000).to_list(),
    "filter on null": lambda t: t.search().where('"group" IS NULL').select(["id"]).limit(1000).to_list(),
    "nothing": lambda t: t.search().where("id < 0").limit(10).to_arrow(),
    "columns": lambda t: t.search().select(["group", "id"]).where("id < 5").to_list(),
    "computed columns": lambda t: t.search().select({"twice": "id * 2", "word": "upper(text)"}).where("id < 5").to_list(),
    "limit": lambda t: len(t.search().limit(7).to_list()),
    "offset": lambda t: t.search().where("id >= 0").limit(5).offset(10).select(["id"]).to_list(),
    "row ids": lambda t: t.search().where("id < 5").with_row_id(True).select(["id"]).to_list(),
    "head": lambda t: t.head(4),
    "take offsets": lambda t: t.take_offsets([3, 1, 450]).select(["id"]).to_list(),
    "take row ids": lambda t: t.take_row_ids([0, 2]).select(["id"]).to_list(),
    "batches": lambda t: sorted(i for b in t.search().limit(450).to_batches() for i in b["id"].to_pylist())[:3],
    "count": lambda t: t.count_rows(),
    "count of a condition": lambda t: t.count_rows("\"group\" = 'a' OR id % 100 = 7"),
}


@pytest.mark.parametrize("ask", SCANS.values(), ids=SCANS)
def test_scan(pair: Pair, ask: Ask) -> None:
    pair.both(ask)


VECTORS: dict[str, Ask] = {
    "nearest": lambda t: t.search(NEAR).limit(5).to_list(),
    "an array": lambda t: t.search(np.array(FAR, np.float32)).limit(5).to_list(),
    "ten by default": lambda t: len(t.search(NEAR).to_list()),
    "more than there are": lambda t: len(t.search(NEAR).limit(100_000).to_list()),
    "cosine": lambda t: t.search(NEAR).distance_type("cosine").limit(5).to_list(),
    "dot": lambda t: t.search(NEAR).distance_type("dot").limit(5).to_list(),
    "columns": lambda t: t.search(NEAR).select(["id"]).limit(5).to_list(),
    "columns with distance": lambda t: t.search(NEAR).select(["id", "_distance"]).limit(5).to_list(),
    "computed columns": lambda t: t.search(NEAR).select({"n": "id + 1"}).limit(5).to_list(),
    "prefilter": lambda t: t.search(NEAR).where("id > 450", prefilter=True).limit(5).to_list(),
    "postfilter": lambda t: t.search(NEAR).where("id % 3 = 0", prefilter=False).limit(20).to_list(),
    "bounds": lambda t: t.search(NEAR).distance_range(0.1, 0.3).limit(100).to_list(),
    "lower bound": lambda t: t.search(NEAR).distance_range(lower_bound=0.4).limit(5).to_list(),
    "upper bound": lambda t: t.search(NEAR).distance_range(upper_bound=0.2).limit(100).to_list(),
    "offset": lambda t: t.search(NEAR).limit(5).offset(3).select(["id"]).to_list(),
    "row ids": lambda t: t.search(NEAR).with_row_id(True).limit(5).to_list(),
    "without an index": lambda t: t.search(NEAR).bypass_vector_index().limit(5).to_list(),
    "many probes": lambda t: t.search(NEAR).nprobes(20).refine_factor(2).ef(50).limit(5).to_list(),
    "bounds of probes": lambda t: t.search(NEAR).minimum_nprobes(2).maximum_nprobes(30).limit(5).to_list(),
    "the column by name": lambda t: t.search(NEAR, vector_column_name="vector").limit(5).to_list(),
}


@pytest.mark.parametrize("ask", VECTORS.values(), ids=VECTORS)
def test_vector(pair: Pair, ask: Ask) -> None:
    pair.both(ask)


def test_several_vectors(pair: Pair) -> None:
    """Several vectors in one request: each has its own neighbours, told apart by query_index."""
    found = pair.remote.search([NEAR, FAR]).limit(3).select(["id"]).to_list()
    for index, vector in enumerate((NEAR, FAR)):
        want = [row["id"] for row in pair.local.search(vector).limit(3).to_list()]
        assert [row["id"] for row in found if row["query_index"] == index] == want


TEXTS: dict[str, Ask] = {
    "one word": lambda t: t.search("river", query_type="fts").limit(200).to_list(),
    "several words": lambda t: t.search("river stone", query_type="fts").limit(20).to_list(),
    "by column": lambda t: t.search("cloud", query_type="fts", fts_columns="text").limit(5).to_list(),
    "with a filter": lambda t: t.search("river", query_type="fts").where("id < 50").limit(100).to_list(),
    "postfilter": lambda t: t.search("river", query_type="fts").where("id < 50", prefilter=False).limit(30).to_list(),
    "columns": lambda t: t.search("river", query_type="fts").select(["id"]).limit(5).to_list(),
    "no hit": lambda t: t.search("ocean", query_type="fts").limit(5).to_list(),
    "match": lambda t: t.search(fts.MatchQuery("winter", "text", boost=2.0)).limit(5).to_list(),
    "misspelt": lambda t: t.search(fts.MatchQuery("wintr", "text", fuzziness=1)).limit(5).to_list(),
    "all words": lambda t: (
        t.search(fts.MatchQuery("river light", "text", operator=fts.FullTextOperator.AND)).limit(100).to_list()
    ),
    "phrase": lambda t: t.search(fts.PhraseQuery("river and river", "text")).limit(100).to_list(),
    "boost": lambda t: t.search(fts.BoostQuery(RIVER, STONE, negative_boost=0.2)).limit(200).to_list(),
    "several columns": lambda t: t.search(fts.MultiMatchQuery("river", ["text"])).limit(5).to_list(),
    "boolean": lambda t: t.search(fts.BooleanQuery([(fts.Occur.MUST, RIVER), (fts.Occur.MUST_NOT, STONE)])).limit(200).to_list(),
}


def _by_score(rows: list[dict[str, Any]]) -> list[tuple[float, int]]:
    """Rows of one score come in any order, so that with a limit only scores can be compared."""
    return sorted((round(row["_score"], 4), 0) for row in rows)


@pytest.mark.parametrize("ask", TEXTS.values(), ids=TEXTS)
def test_text(pair: Pair, ask: Ask) -> None:
    got, want = ask(pair.remote), ask(pair.local)
    assert _by_score(got) == _by_score(want)
    assert [sorted(row) for row in got] == [sorted(row) for row in want]


def test_hybrid(pair: Pair) -> None:
    def ask(table: Any) -> Any:
        found = table.search(query_type="hybrid").vector(NEAR).text("river").limit(5).to_list()
        return [row["_relevance_score"] for row in found]

    pair.both(ask)


def test_versions(engine_server: Server, tmp_path: Path) -> None:
    """A handle that is checked out reads its version, others the latest, and both at once."""
    pair = Pair(engine_server, tmp_path)
    for table in (pair.local, pair.remote):
        table.add(sample(400, 50))
        table.delete("id < 10")
        table.checkout(2)
    assert pair.both(lambda t: t.count_rows()) == 450
    pair.both(lambda t: t.search(NEAR).limit(5).to_list())
    assert pair.remote_db.open_table(pair.name).count_rows() == 440
    for table in (pair.local, pair.remote):
        table.checkout_latest()
    assert pair.both(lambda t: t.count_rows("id < 20")) == 10


@pytest.fixture(scope="module")
def indexed(engine_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return Pair(engine_server, tmp_path_factory.mktemp("indexed"))


INDICES = {
    "IVF_FLAT": {"num_partitions": 4},
    "IVF_PQ": {"num_partitions": 2, "num_sub_vectors": 4},
    "IVF_SQ": {"num_partitions": 2},
    "IVF_RQ": {"num_partitions": 2},
    "IVF_HNSW_FLAT": {"num_partitions": 1},
    "IVF_HNSW_SQ": {"num_partitions": 1},
}


@pytest.mark.parametrize("kind", INDICES)
def test_search_by_index(indexed: Pair, kind: str) -> None:
    """With all partitions searched and candidates refined, an index finds nearly what a full search finds."""
    from lancedb.index import HnswFlat, HnswSq, IvfFlat, IvfPq, IvfRq, IvfSq

    configs: dict[str, Any] = {
        "IVF_FLAT": IvfFlat, "IVF_PQ": IvfPq, "IVF_SQ": IvfSq, "IVF_RQ": IvfRq, "IVF_HNSW_FLAT": HnswFlat, "IVF_HNSW_SQ": HnswSq,
    }  # fmt: skip
    indexed.remote.create_index("vector", config=configs[kind](**INDICES[kind]))
    listed = {i.name: i for i in indexed.remote.list_indices()}["vector_idx"]
    assert listed.columns == ["vector"]
    assert listed.index_type.upper().replace("_", "") == kind.replace("_", "")
    assert indexed.remote.index_stats("vector_idx").num_indexed_rows == 400
    plan = indexed.remote.search(NEAR).nprobes(4).refine_factor(20).limit(10).explain_plan()
    assert "ANNSubIndex" in plan or "ANNIvf" in plan
    got = {row["id"] for row in indexed.remote.search(NEAR).nprobes(4).refine_factor(20).limit(10).to_list()}
    want = {row["id"] for row in indexed.local.search(NEAR).limit(10).to_list()}
    assert len(got & want) >= 8


def test_plans(pair: Pair) -> None:
    query = pair.remote.search(NEAR).where("id > 3").limit(3)
    assert "KNNVectorDistance" in query.explain_plan(verbose=True)
    analysis = query.analyze_plan()
    assert "output_rows" in analysis
    assert "elapsed" in analysis


def test_multivector_column(engine_server: Server, tmp_path: Path) -> None:
    """A column of lists of vectors takes a list of vectors as one query."""
    kind = pa.list_(pa.list_(pa.float32(), DIMENSION))
    rng = np.random.default_rng(3)
    rows = [[rng.random(DIMENSION).tolist() for _ in range(1 + i % 3)] for i in range(50)]
    pair = Pair(engine_server, tmp_path, pa.table({"id": range(50), "vector": pa.array(rows, kind)}))
    got = pair.remote.search([NEAR, FAR]).distance_type("cosine").limit(5).to_list()
    want = pair.local.search([NEAR, FAR]).distance_type("cosine").limit(5).to_list()
    assert [row["id"] for row in got] == [row["id"] for row in want]


MISTAKES: dict[str, tuple[Ask, str]] = {
    "an unknown column in a filter": (lambda t: t.search().where("none = 1").to_list(), "none"),
    "a filter that is no SQL": (lambda t: t.search().where("id = = 1").to_list(), "id = ="),
    "an unknown column": (lambda t: t.search().select(["none"]).to_list(), "none"),
    "a vector of another dimension": (lambda t: t.search([1.0, 2.0]).limit(1).to_list(), "size 2"),
    "an unknown vector column": (lambda t: t.search(NEAR, vector_column_name="none").limit(1).to_list(), "none"),
    "a column that holds no vectors": (lambda t: t.search(NEAR, vector_column_name="id").limit(1).to_list(), "id"),
    "a count by an unknown column": (lambda t: t.count_rows("none > 1"), "none"),
}


@pytest.mark.parametrize(("ask", "word"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes(pair: Pair, ask: Ask, word: str) -> None:
    """What is wrong is answered 400, with Lance's words and without its files; 404 would mean that the table is missing."""
    with pytest.raises(Exception, match=word) as failed:
        ask(pair.remote)
    assert "400" in str(failed.value)
    assert ".rs" not in str(failed.value)
