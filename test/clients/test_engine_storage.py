"""The engine wherever tables and the state lie, and through more than one server."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lancedb.index import FTS, BTree, IvfFlat
from test_clouds import AZURE, GOOGLE

import engine
from engine import DIMENSION, Pair, connect, sample
from server import Server
from storage import beside

S3 = """
[[root]]
location = "s3://{LANCEREST_TEST_S3_BUCKET}/{place}"
endpoint = "{AWS_ENDPOINT_URL}"
region = "{AWS_REGION}"
allow_http = true
access_key_id = "file:{directory}/id"
secret_access_key = "file:{directory}/key"
"""

# What clients are given is nothing to the workers: they have the server's own keys.
ROOTS = {
    "S3, static": ("withs3", S3 + 'credentials = "static"'),
    "Google, none": ("withgcs", GOOGLE + 'credentials = "none"'),
    "Google, client": ("withgcs", GOOGLE),
    "Azure, none": ("withazure", AZURE + 'credentials = "none"'),
    "Azure, client": ("withazure", AZURE + 'credentials = "client"'),
    "Azure, static": ("withazure", AZURE + 'credentials = "static"'),
    "Azure, vend": ("withazure", AZURE + 'credentials = "vend"\n[root.vend]\ncontainer_wide = true'),
}


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the servers of these tests know they have from their own configuration."""
    for name in list(os.environ):
        if name.startswith(("AZURE_", "AZURITE_", "GOOGLE_", "STORAGE_EMULATOR_HOST", "AWS_", "LANCEREST_TEST_S3")):
            monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def emulators() -> Iterator[dict[str, dict[str, str]]]:
    """The environments of the storage servers, each started when it is first asked for."""
    with Started() as started:
        yield started


class Started(dict[str, dict[str, str]]):
    """Commands of test/ that run, by their names."""

    def __enter__(self) -> Started:
        self._running: list[Any] = []
        return self

    def __missing__(self, tool: str) -> dict[str, str]:
        one = beside(tool, {})
        self[tool] = one.__enter__()
        self._running.append(one)
        return self[tool]

    def __exit__(self, *_: object) -> None:
        for one in self._running:
            one.__exit__(None, None, None)


def _all_kinds(server: Server, directory: Path) -> None:
    """Do at least one of each kind of operation, and compare with LanceDB on the same rows in a local directory."""
    pair = Pair(server, directory, sample(0, 300))
    near = [0.5] * DIMENSION
    pair.both(lambda t: t.add(sample(300, 10)).version)
    pair.both(lambda t: t.update("id = 3", values={"text": "changed"}).rows_updated)
    pair.both(lambda t: t.delete("id < 3").version)
    merged = sample(305, 10).set_column(2, "text", pa.array(["merged"] * 10))
    pair.both(lambda t: t.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(merged).version)
    pair.both(lambda t: t.add_columns({"twice": "id * 2"}).version)
    pair.both(lambda t: t.alter_columns({"path": "twice", "rename": "double"}).version)
    pair.both(lambda t: t.create_index("id", config=BTree()))
    pair.both(lambda t: t.create_index("text", config=FTS()))
    pair.both(lambda t: t.create_index("vector", config=IvfFlat(num_partitions=1)))
    pair.both(lambda t: sorted(index.name for index in t.list_indices()))
    pair.both(lambda t: t.count_rows("double > 100"))
    pair.both(lambda t: t.search(near).where("id > 50").limit(5).to_list())
    pair.both(lambda t: [row["id"] for row in t.search("merged", query_type="fts").limit(20).to_list()])
    pair.both(lambda t: t.drop_columns(["double"]).version)
    pair.same()
    branch = pair.remote.branches.create("b")
    branch.add(sample(1000, 1))
    assert (branch.count_rows(), pair.remote.count_rows()) == (313, 312)
    pair.both(lambda t: t.restore(1))
    assert pair.remote.count_rows() == 300
    pair.remote_db.create_table(pair.name, sample(0, 7), mode="overwrite")
    assert connect(server).open_table(pair.name).count_rows() == 7


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.usefixtures("bare")
def test_storage(root: str, emulators: dict[str, dict[str, str]], binary: Path, tmp_path: Path) -> None:
    """All kinds of operations work on every storage, whatever its clients are given."""
    tool, text = ROOTS[root]
    told = emulators[tool]
    (tmp_path / "id").write_text(told.get("AWS_ACCESS_KEY_ID", ""))
    (tmp_path / "key").write_text(told.get("AWS_SECRET_ACCESS_KEY", told.get("AZURE_STORAGE_ACCOUNT_KEY", "")))
    file = tmp_path / "lancerest.toml"
    file.write_text(text.format(directory=tmp_path, place=uuid.uuid4().hex, **told))
    running = engine.serve(binary, tmp_path / "data", "--engine-workers", "1", "--config", str(file))
    _all_kinds(running, tmp_path)
    assert running.stop() == 0, running.log


def test_here(engine_server: Server, tmp_path: Path) -> None:
    """The same where the environment of the tests says: PostgreSQL by test/withpostgres, S3 by test/withs3, or else this disk."""
    _all_kinds(engine_server, tmp_path)


def test_two_servers_of_one_state(binary: Path, tmp_path: Path) -> None:
    """What one server has acknowledged the other one's next answer has, whichever of them wrote."""
    with beside("withpostgres", {}) as told:
        schema, state = f"s{uuid.uuid4().hex}", told["LANCEREST_STATE"]
        subprocess.run(["psql", "--quiet", "--no-psqlrc", "--command", f"CREATE SCHEMA {schema}", state], check=True, env=told)
        shared = ("--state", f"{state}?search_path={schema}", "--root", str(tmp_path / "tables"), "--engine-workers", "1")
        servers = [engine.serve(binary, tmp_path / name, *shared) for name in ("a", "b")]
        tables = [connect(servers[0]).create_table("t", sample(0, 1)), connect(servers[1]).open_table("t")]
        for n in range(1, 21):
            writer, reader = tables[n % 2], tables[1 - n % 2]
            writer.add(sample(n, 1))
            assert reader.count_rows("id >= 0") == n + 1
            assert [row["id"] for row in reader.search().where(f"id = {n}").to_list()] == [n]
            assert reader.version == n + 1
        tables[0].create_index("id", config=BTree())
        assert [index.name for index in tables[1].list_indices()] == ["id_idx"]
        tables[1].delete("id > 10")
        assert tables[0].count_rows("true") == 11
        assert [server.stop() for server in servers] == [0, 0]
