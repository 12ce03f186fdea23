"""LanceDB's asynchronous SDK for Python on a server with an engine, against itself in a local directory."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import lancedb
import pytest
from lancedb.index import FTS, BTree, IvfFlat

from engine import DIMENSION, plain, sample
from server import Server

NEAR = [0.5] * DIMENSION
Step = Callable[[Any, Any], Awaitable[Any]]


async def _all(table: Any) -> Any:
    return plain((await table.query().limit(1000).to_arrow()).sort_by("id"))


async def _index(db: Any, t: Any) -> Any:
    await t.create_index("id", config=BTree())
    await t.create_index("text", config=FTS(stem=False, remove_stop_words=False))
    await t.create_index("vector", config=IvfFlat(num_partitions=1))
    await t.wait_for_index(["id_idx", "text_idx", "vector_idx"])
    stats = await t.index_stats("vector_idx")
    return sorted((i.name, i.index_type, i.columns) for i in await t.list_indices()), stats.num_indexed_rows


async def _versions(db: Any, t: Any) -> Any:
    await t.checkout(1)
    old = await t.count_rows()
    await t.checkout_latest()
    await t.delete("id < 3")
    now = await t.count_rows()
    await t.restore(1)
    return old, now, await t.count_rows(), len(await t.list_versions())


async def _tags(db: Any, t: Any) -> Any:
    tags = t.tags
    await tags.create("one", 1)
    await tags.update("one", 2)
    found = await tags.get_version("one"), sorted(await tags.list())
    await tags.delete("one")
    return found, sorted(await tags.list())


async def _merge(db: Any, t: Any) -> Any:
    rows = t.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    done = await rows.execute(sample(295, 10))
    return done.num_inserted_rows, done.num_updated_rows, await _all(t)


async def _columns(db: Any, t: Any) -> Any:
    await t.add_columns({"twice": "id * 2"})
    await t.alter_columns({"path": "twice", "rename": "double"})
    names = (await t.schema()).names
    await t.drop_columns(["double"])
    return names, (await t.schema()).names


STEPS: dict[str, Step] = {
    "count": lambda db, t: t.count_rows("id > 7"),
    "all": lambda db, t: _all(t),
    "nearest": lambda db, t: t.query().nearest_to(NEAR).limit(5).to_list(),
    "vector search": lambda db, t: t.vector_search(NEAR).distance_type("cosine").limit(5).to_list(),
    "filter": lambda db, t: t.query().where("id < 5").select(["id", "text"]).to_list(),
    "indices": _index,
    "text": lambda db, t: t.query().nearest_to_text("river").limit(500).select(["id"]).to_list(),
    "columns": _columns,
    "merge": _merge,
    "versions": _versions,
    "tags": _tags,
    "offsets": lambda db, t: t.take_offsets([1, 4]).select(["id"]).to_list(),
    "head": lambda db, t: t.head(3),
}


def test_async(engine_server: Server, tmp_path: Path) -> None:
    """Every step gives the same on both."""
    name = f"async_{uuid.uuid4().hex}"

    async def run() -> None:
        options: Any = {"api_key": "sk_test", "host_override": engine_server.url, "region": "local"}
        remote = await lancedb.connect_async("db://lake", **options)
        local = await lancedb.connect_async(str(tmp_path / "local"))
        tables = [await db.create_table(name, sample(0, 300)) for db in (remote, local)]
        for step, do in STEPS.items():
            got, want = [plain(await do(db, table)) for db, table in zip((remote, local), tables, strict=True)]
            if step == "text":  # rows of one score come in any order
                got, want = (sorted(rows, key=lambda row: (-row["_score"], row["id"])) for rows in (got, want))
            assert got == want, step
        assert name in await remote.table_names(limit=1000)
        await remote.rename_table(name, name + "_new")
        assert await (await remote.open_table(name + "_new")).count_rows() == 300
        await remote.drop_table(name + "_new")
        with pytest.raises(ValueError, match="not found"):
            await remote.open_table(name + "_new")

    asyncio.run(run())
