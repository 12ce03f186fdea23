"""Many writers of one table: threads, processes, writers that bypass the catalog, writers of a table that was dropped."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor

import lance
import pytest
from lance import LanceOperation
from lance.fragment import write_fragments
from lance_namespace import DropTableRequest
from lance_namespace.errors import LanceNamespaceError

from lake import Lake, ids, rows, together

WRITERS = 6
APPENDS = 5


def check_whole(lake: Lake, name: str, wanted: list[int]) -> None:
    """Check that the table has exactly these rows, in versions without gaps, each of which can be opened."""
    assert ids(lake.open(name)) == wanted
    versions = lake.versions(name)
    assert versions == list(range(1, len(versions) + 1))
    assert lake.open(name, version=versions[len(versions) // 2]).count_rows() > 0


def test_six_threads_append(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")

    def writer(number: int) -> None:
        mine = Lake(lake.url, lake.namespace)
        for i in range(APPENDS):
            mine.write("t", rows(1 + number * APPENDS + i))

    together([lambda n=n: writer(n) for n in range(WRITERS)])  # type: ignore[misc]
    check_whole(lake, "t", list(range(WRITERS * APPENDS + 1)))
    assert len(lake.versions("t")) == WRITERS * APPENDS + 1


def append_in_a_process(url: str, namespace: str, number: int) -> int:
    """What each process of the next test runs: its own client, its own appends."""
    mine = Lake(url, namespace)
    for i in range(APPENDS):
        mine.write("t", rows(1 + number * APPENDS + i))
    return number


def test_six_processes_append(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    with ProcessPoolExecutor(WRITERS, mp_context=multiprocessing.get_context("spawn")) as pool:
        done = [pool.submit(append_in_a_process, lake.url, lake.namespace, n) for n in range(WRITERS)]
        assert sorted(f.result(120) for f in done) == list(range(WRITERS))
    check_whole(lake, "t", list(range(WRITERS * APPENDS + 1)))


def test_six_writers_create_one_table(lake: Lake) -> None:
    won: list[int] = []
    refused: list[int] = []

    def writer(number: int) -> None:
        try:
            Lake(lake.url, lake.namespace).write("t", rows(number), mode="create")
            won.append(number)
        except (LanceNamespaceError, OSError):
            refused.append(number)

    together([lambda n=n: writer(n) for n in range(WRITERS)])  # type: ignore[misc]
    assert (len(won), len(refused)) == (1, WRITERS - 1)
    assert ids(lake.open("t")) == won


def test_a_writer_that_bypasses_the_catalog_is_adopted(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    lance.write_dataset(rows(1), lake.location("t"), mode="append")
    assert ids(lake.open("t", version=2)) == [0, 1], "describe must find a version that storage alone knows"
    lance.write_dataset(rows(2), lake.location("t"), mode="append")

    managed = lake.write("t", rows(3))
    assert (managed.version, ids(managed)) == (4, [0, 1, 2, 3])
    check_whole(lake, "t", [0, 1, 2, 3])


def test_bypassing_and_managed_writers_together_lose_nothing(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    location = lake.location("t")

    def managed(first: int) -> None:
        mine = Lake(lake.url, lake.namespace)
        for i in range(APPENDS):
            mine.write("t", rows(first + i))

    def bypassing(first: int) -> None:
        for i in range(APPENDS):
            lance.write_dataset(rows(first + i), location, mode="append")

    together(
        [
            lambda: managed(1),
            lambda: managed(1 + APPENDS),
            lambda: bypassing(1 + 2 * APPENDS),
            lambda: bypassing(1 + 3 * APPENDS),
        ]
    )
    check_whole(lake, "t", list(range(4 * APPENDS + 1)))


def test_a_dataset_opened_before_others_wrote_can_still_append(lake: Lake) -> None:
    stale = lake.write("t", rows(0), mode="create")
    for i in range(1, 4):
        lake.write("t", rows(i))
    stale.insert(rows(4))
    check_whole(lake, "t", [0, 1, 2, 3, 4])


def test_an_old_writer_cannot_reach_the_table_that_took_its_name(lake: Lake) -> None:
    old = lake.write("t", rows(0), mode="create")
    fragments = write_fragments(rows(1), old)
    lake.client.drop_table(DropTableRequest(id=lake.id("t")))
    lake.write("t", rows(50), mode="create")

    # The old dataset asks for version 2, which would be the next of the new table as well.
    with pytest.raises((OSError, ValueError, LanceNamespaceError)):
        lance.LanceDataset.commit(old, LanceOperation.Append(fragments), read_version=1)
    assert (lake.versions("t"), ids(lake.open("t"))) == ([1], [50])
    lake.write("t", rows(51))
    assert ids(lake.open("t")) == [50, 51]


def test_readers_never_see_a_version_go_back(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    done = threading.Event()
    seen: list[int] = []

    def reader() -> None:
        mine = Lake(lake.url, lake.namespace)
        while not done.is_set():
            dataset = mine.open("t")
            assert dataset.count_rows() == dataset.version, "version n of this table has n rows"
            seen.append(dataset.version)

    def writer() -> None:
        try:
            for i in range(1, 11):
                lake.write("t", rows(i))
        finally:
            done.set()

    together([reader, writer])
    assert seen == sorted(seen)
    assert lake.open("t").version == 11
