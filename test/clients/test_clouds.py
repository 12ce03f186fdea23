"""Tables on the emulators of Google Cloud Storage and Azure Blob Storage, for clients that know the catalog's address alone.

The emulator of Google's storage asks for no credentials, and takes no upload in parts, so that files are small here. That of
Azure's has a flat account: its temporary keys reach the whole container.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import lancedb
import pytest

import lancerest
from conftest import new_lake
from lake import ids, rows, together, vectors
from server import Server
from storage import beside, serving

LIFE = 10  # seconds that the signatures of the long job live

AZURE = """
[[root]]
location = "az://{LANCEREST_TEST_AZURE_CONTAINER}/{place}"
endpoint = "{AZURE_STORAGE_ENDPOINT}"
allow_http = true
account = "{AZURE_STORAGE_ACCOUNT_NAME}"
account_key = "file:{directory}/key"
"""

GOOGLE = """
[[root]]
location = "gs://{LANCEREST_TEST_GCS_BUCKET}/{place}"
endpoint = "{STORAGE_EMULATOR_HOST}"
allow_http = true
"""

ROOTS = {
    "Google": ("withgcs", GOOGLE),
    "Azure, with the account's key": ("withazure", AZURE + 'credentials = "static"'),
    "Azure, with keys for the container": ("withazure", AZURE + 'credentials = "vend"\n[root.vend]\ncontainer_wide = true'),
}


@pytest.fixture(scope="module", params=ROOTS)
def cloud(request: pytest.FixtureRequest, binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose tables lie on an emulator."""
    tool, text = ROOTS[request.param]
    directory = tmp_path_factory.mktemp("cloud")
    with beside(tool, {}) as told:
        (directory / "key").write_text(told.get("AZURE_STORAGE_ACCOUNT_KEY", ""))
        file = directory / "lancerest.toml"
        file.write_text(text.format(directory=directory, place="some/where", **told))
        with serving(binary, directory, file) as running:
            yield running


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is configured on the client."""
    for name in list(os.environ):
        if name.startswith(("AZURE_", "AZURITE_", "GOOGLE_", "STORAGE_EMULATOR_HOST")):
            monkeypatch.delenv(name)


def test_pylance_needs_only_the_address(cloud: Server) -> None:
    lake = new_lake(cloud)
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


def test_writers_of_one_table(cloud: Server) -> None:
    lake = new_lake(cloud)
    lake.write("t", rows(0), mode="create")

    def writer(number: int) -> Callable[[], None]:
        def write() -> None:
            for i in range(3):
                lake.write("t", rows(10 * number + i))

        return write

    together([writer(number) for number in range(1, 5)])
    assert ids(lake.open("t")) == sorted([0, *(10 * number + i for number in range(1, 5) for i in range(3))])
    assert lake.versions("t") == list(range(1, 14))


def test_lancedb_needs_only_the_address(cloud: Server) -> None:
    db = lancedb.connect_namespace("rest", {"uri": cloud.url})
    data = vectors(50)
    table = db.create_table("vectors", data)
    table.add(data)
    opened = db.open_table("vectors")
    wanted = data.column("vector")[7].values.to_numpy()
    assert [r["id"] for r in opened.search(wanted).limit(2).to_list()] == [7, 7]


def test_transactions_need_only_the_address(cloud: Server) -> None:
    catalog = lancerest.connect(cloud.url)

    def add(tx: lancerest.Transaction) -> None:
        tx.create("a", rows(0, 2))
        tx.create("b", rows(5))

    def correct(tx: lancerest.Transaction) -> None:
        tx.append("a", rows(2))
        tx.delete("b", "id = 5")

    catalog.transaction(add)
    catalog.transaction(correct)
    assert [ids(dataset) for dataset in catalog.snapshot(["a", "b"])] == [[0, 1, 2], []]


def test_a_long_job_outlives_its_signatures(binary: Path, tmp_path: Path) -> None:
    """pylance and LanceDB go on writing to Azure with handles that they opened before signatures ended three times."""
    with beside("withazure", {}) as told:
        (tmp_path / "key").write_text(told["AZURE_STORAGE_ACCOUNT_KEY"])
        file = tmp_path / "lancerest.toml"
        short = f'duration = "{LIFE}s"\nmin_life = "6s"\nrefresh_offset = "3s"\n'
        text = AZURE + 'credentials = "vend"\n[root.vend]\ncontainer_wide = true\n' + short
        file.write_text(text.format(directory=tmp_path, place="long", **told))
        with serving(binary, tmp_path, file) as running:
            lake = new_lake(running)
            dataset = lake.write("t", rows(0), mode="create")
            table = lancedb.connect_namespace("rest", {"uri": running.url}).create_table("u", rows(0))
            begun, written = time.monotonic(), 1
            while time.monotonic() < begun + 3.5 * LIFE:
                dataset.insert(rows(written), mode="append")
                table.add(rows(written))
                assert dataset.count_rows() == table.count_rows() == written + 1
                written += 1
                time.sleep(0.5)
            assert ids(lake.open("t")) == list(range(written))
