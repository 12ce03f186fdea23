"""Tables on S3 for clients that know the catalog's address and nothing else: it gives them keys, and new ones in time."""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import lance
import lancedb
import pytest
from lance_namespace import DescribeTableRequest, RegisterTableRequest

import lancerest
from conftest import new_lake
from lake import DIMENSION, Lake, ids, rows, vectors
from server import Server
from storage import Storage, config, s3, serving, vend, without_configuration

SESSION = 10  # seconds that the keys of the long job live


@pytest.fixture(scope="module")
def bucket() -> Iterator[Storage]:
    """An S3 server that the tests of this module share."""
    with s3() as storage:
        yield storage


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is configured on the client."""
    without_configuration(monkeypatch, tmp_path)


@pytest.fixture
def vending(binary: Path, bucket: Storage, tmp_path: Path) -> Iterator[Server]:
    """A server that gives temporary keys."""
    with serving(binary, tmp_path, config(bucket, tmp_path, f"vend{time.time_ns()}", vend(bucket))) as running:
        yield running


def test_pylance_needs_only_the_address(vending: Server) -> None:
    lake = new_lake(vending)
    lake.write("t", rows(0, 3), mode="create")
    lake.write("t", rows(3))
    dataset = lake.open("t")
    dataset.create_scalar_index("id", "BTREE")
    dataset.tags.create("first", 1)
    dataset.delete("id = 1")
    dataset.optimize.compact_files()
    assert ids(lake.open("t")) == [0, 2, 3]
    assert ids(lake.open("t", version="first")) == [0, 1, 2]
    lake.write("t", rows(7), mode="overwrite")
    assert ids(lake.open("t")) == [7]
    lake.open("t").cleanup_old_versions(older_than=None, retain_versions=1, error_if_tagged_old_versions=False)
    assert lake.location("t").startswith("s3://")


def test_lancedb_needs_only_the_address(vending: Server) -> None:
    db = lancedb.connect_namespace("rest", {"uri": vending.url})
    data = vectors(50)
    table = db.create_table("t", data)
    table.add(data)
    opened = db.open_table("t")
    wanted = data.column("vector")[7].values.to_numpy()
    assert len(wanted) == DIMENSION
    assert [r["id"] for r in opened.search(wanted).limit(2).to_list()] == [7, 7]
    opened.update(where="id = 7", values={"id": 700})
    assert opened.count_rows("id = 700") == 2


def test_transactions_need_only_the_address(vending: Server) -> None:
    catalog = lancerest.connect(vending.url)

    def add(tx: lancerest.Transaction) -> None:
        tx.create("a", rows(0, 2))
        tx.create("b", rows(5))

    def correct(tx: lancerest.Transaction) -> None:
        tx.append("a", rows(2))
        tx.delete("b", "id = 5")

    catalog.transaction(add)
    catalog.transaction(correct)
    assert [ids(dataset) for dataset in catalog.snapshot(["a", "b"])] == [[0, 1, 2], []]


def test_keys_are_for_one_table(vending: Server) -> None:
    lake = new_lake(vending)
    for name in ["mine", "theirs"]:
        lake.write(name, rows(0), mode="create")
    options = lake.client.describe_table(DescribeTableRequest(id=lake.id("mine"))).storage_options
    assert options
    assert ids(lance.dataset(lake.location("mine"), storage_options=options)) == [0]
    with pytest.raises((OSError, ValueError), match=r"(?i)denied|403|forbidden"):
        lance.dataset(lake.location("theirs"), storage_options=options)


def test_keys_may_be_for_reading(binary: Path, bucket: Storage, vending: Server, tmp_path: Path) -> None:
    lake = new_lake(vending)
    lake.write("t", rows(0), mode="create")
    location = lake.location("t")
    reading = tmp_path / "reading"
    reading.mkdir()
    prefix = location.removeprefix(f"s3://{bucket.bucket}/").rsplit("/", 1)[0]
    with serving(binary, reading, config(bucket, reading, prefix, vend(bucket, 'grant = "read"'))) as running:
        other = Lake(running.url, "r")
        other.client.register_table(RegisterTableRequest(id=["r"], location=location))
        assert ids(lance.dataset(namespace_client=other.client, table_id=["r"])) == [0]
        with pytest.raises(OSError, match=r"(?i)denied|403|forbidden"):
            lance.write_dataset(rows(1), mode="append", namespace_client=other.client, table_id=["r"])


def test_without_keys_the_client_has_to_have_its_own(
    binary: Path, bucket: Storage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = config(bucket, tmp_path, f"client{time.time_ns()}", 'credentials = "client"')
    with serving(binary, tmp_path, file) as running:
        lake = new_lake(running)
        with pytest.raises(OSError, match=r"(?i)credential"):
            lake.write("t", rows(0), mode="create")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", bucket.key_id)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", bucket.key)
        lake.write("u", rows(0), mode="create")  # endpoint, region and the rest come from the catalog
        assert ids(lake.open("u")) == [0]
        options = lake.client.describe_table(DescribeTableRequest(id=lake.id("u"))).storage_options
        assert options
        assert not any("key" in name or "token" in name for name in options)


def test_the_operators_keys_are_given_where_that_is_said(binary: Path, bucket: Storage, tmp_path: Path) -> None:
    file = config(bucket, tmp_path, f"static{time.time_ns()}", 'credentials = "static"')
    with serving(binary, tmp_path, file) as running:
        lake = new_lake(running)
        lake.write("t", rows(0), mode="create")
        assert ids(lake.open("t")) == [0]


def _expiry(lake: Lake, name: str) -> int:
    """Return when the keys end that the catalog gives now, in milliseconds."""
    options = lake.client.describe_table(DescribeTableRequest(id=lake.id(name))).storage_options
    assert options
    return int(options["expires_at_millis"])


def _described(server: Server) -> int:
    """Return how often the server has described a table."""
    with urllib.request.urlopen(f"{server.url}/metrics") as answer:
        found = re.findall(
            r'^lancerest_request_duration_seconds_count\{.*operation="DescribeTable".*\} (\d+)$',
            answer.read().decode(),
            re.MULTILINE,
        )
    return sum(map(int, found))


def test_a_long_job_outlives_its_keys(binary: Path, tmp_path: Path) -> None:
    """pylance and LanceDB go on writing with handles that they opened before keys ended three times."""
    with s3(session=f"{SESSION}s") as storage:
        file = config(storage, tmp_path, "long", vend(storage, 'duration = "15m"\nmin_life = "6s"\nrefresh_offset = "3s"'))
        with serving(binary, tmp_path, file) as running:
            lake = new_lake(running)
            dataset = lake.write("t", rows(0), mode="create")
            table = lancedb.connect_namespace("rest", {"uri": running.url}).create_table("u", rows(0))
            first, described = _expiry(lake, "t"), _described(running)
            written = 1
            # Until keys have ended three times that were made after the first.
            while time.time() < first / 1000 + 3 * SESSION:
                dataset.insert(rows(written), mode="append")
                table.add(rows(written))
                assert dataset.count_rows() == table.count_rows() == written + 1
                written += 1
                time.sleep(0.5)
            # Each of the two came for new keys three times; neither asks for them with every request.
            assert 6 <= _described(running) - described <= 4 * SESSION // 2
            assert ids(lake.open("t")) == list(range(written))
