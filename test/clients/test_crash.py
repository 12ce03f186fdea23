"""The server is killed in the middle of a load, and stopped in the middle of one: what it acknowledged is there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import lancerest
from conftest import new_lake
from lake import Lake, ids, rows, together
from server import Server

WRITERS = 4
ROUNDS = 3
ACKNOWLEDGED_PER_ROUND = 12


@pytest.fixture
def own_server(binary: Path, tmp_path: Path) -> Iterator[Server]:
    """A server that this test may kill."""
    running = Server(binary, tmp_path / "data").start()
    yield running
    running.kill()


class Load:
    """Writers that append to two tables in step, and keep book of what was acknowledged."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._lock = threading.Condition()
        self._next = 0
        self._stopping = False
        self.acknowledged: list[int] = []

    def run_until(self, enough: int, end: object) -> None:
        """Write until `enough` more batches are acknowledged, call `end` with the load still on, and let the writers finish."""
        assert callable(end)
        self._stopping = False
        target = len(self.acknowledged) + enough
        writers = [threading.Thread(target=self._write) for _ in range(WRITERS)]
        for writer in writers:
            writer.start()
        with self._lock:
            assert self._lock.wait_for(lambda: len(self.acknowledged) >= target, timeout=60), "the load got nowhere"
        end()
        self._stopping = True
        for writer in writers:
            writer.join()

    def _write(self) -> None:
        catalog = lancerest.connect(self._lake.url)
        while not self._stopping:
            with self._lock:
                self._next += 1
                mine = self._next
            try:
                catalog.transaction(
                    lambda tx, i=mine: [tx.append(self._lake.id(n), rows(i)) for n in ("a", "b")],  # type: ignore[misc]
                    retries=100,
                    timeout=5.0,
                )
            except (lancerest.LancerestError, OSError):
                return  # the server is gone: this batch may or may not be there
            with self._lock:
                self.acknowledged.append(mine)
                self._lock.notify_all()


def check(lake: Lake, acknowledged: list[int]) -> None:
    """Check that everything acknowledged is there, once, and that the tables are in step and whole."""
    a, b = ids(lake.open("a")), ids(lake.open("b"))
    assert a == b, "half a transaction is visible"
    assert len(a) == len(set(a)), "a batch was applied twice"
    assert set(acknowledged) <= set(a), f"lost: {sorted(set(acknowledged) - set(a))}"
    for name in ("a", "b"):
        versions = lake.versions(name)
        assert versions == list(range(1, len(versions) + 1))
        assert [lake.open(name, version=v).count_rows() for v in versions] == versions


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(own_server: Server) -> None:
    lake = new_lake(own_server)
    lake.catalog.transaction(lambda tx: [tx.create(lake.id(n), rows(0)) for n in ("a", "b")])
    load = Load(lake)
    for _ in range(ROUNDS):
        load.run_until(ACKNOWLEDGED_PER_ROUND, own_server.kill)
        own_server.start()
        check(lake, load.acknowledged)

    # Life goes on, for plain writers too.
    lake.write("a", rows(10_000))
    lake.catalog.transaction(lambda tx: tx.append(lake.id("b"), rows(10_000)))
    check(lake, [*load.acknowledged, 10_000])


def test_a_server_that_is_asked_to_stop_ends_what_it_began(own_server: Server) -> None:
    lake = new_lake(own_server)
    lake.catalog.transaction(lambda tx: [tx.create(lake.id(n), rows(0)) for n in ("a", "b")])
    load = Load(lake)
    codes: list[int] = []
    load.run_until(ACKNOWLEDGED_PER_ROUND, lambda: codes.append(own_server.stop()))
    assert codes == [0], own_server.log
    own_server.start()
    check(lake, load.acknowledged)


def test_plain_writers_survive_a_restart(own_server: Server) -> None:
    lake = new_lake(own_server)
    lake.write("t", rows(0), mode="create")
    own_server.kill()
    own_server.start()

    def writer(number: int) -> None:
        for i in range(3):
            lake.write("t", rows(1 + number * 3 + i))

    together([lambda n=n: writer(n) for n in range(3)])  # type: ignore[misc]
    assert ids(lake.open("t")) == list(range(10))
