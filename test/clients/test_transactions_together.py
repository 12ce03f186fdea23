"""Many transactions at once: whatever the interleaving, all tables of one stay in step, and nothing is lost or doubled."""

from __future__ import annotations

import random
import threading
from collections import Counter

import lance
import pyarrow as pa

import lancerest
from lake import Lake, ids, rows, together

TABLES = ["images", "labels", "split"]
WRITERS = 5
BATCHES = 6
BATCH_ROWS = 7


def batch(number: int) -> pa.Table:
    """Return the rows of one batch, marked with its number."""
    return rows(number * BATCH_ROWS, BATCH_ROWS, text=f"batch {number}:")


def check_in_step(tables: list[lance.LanceDataset]) -> int:
    """Check that all tables hold the same whole batches; return how many rows."""
    held = [ids(table) for table in tables]
    assert held[1:] == held[:-1], "the tables are out of step"
    sizes = Counter(i // BATCH_ROWS for i in held[0])
    assert set(sizes.values()) <= {BATCH_ROWS}, f"half a batch: {sizes}"
    return len(held[0])


def test_batches_over_three_tables_are_never_seen_in_part(lake: Lake) -> None:
    for name in TABLES:
        lake.write(name, batch(0), mode="create")
    done = threading.Event()
    looks: list[int] = []

    def reader() -> None:
        mine = lancerest.connect(lake.url)
        while not done.is_set():
            looks.append(check_in_step(mine.snapshot([lake.id(n) for n in TABLES])))

    def writer(number: int) -> None:
        mine = lancerest.connect(lake.url)
        for i in range(BATCHES):
            data = batch(1 + number * BATCHES + i)
            mine.transaction(lambda tx, d=data: [tx.append(lake.id(n), d) for n in TABLES], retries=200)  # type: ignore[misc]

    def writers() -> None:
        try:
            together([lambda n=n: writer(n) for n in range(WRITERS)])  # type: ignore[misc]
        finally:
            done.set()

    together([reader, writers])
    assert looks == sorted(looks)
    total = (1 + WRITERS * BATCHES) * BATCH_ROWS
    assert check_in_step([lake.open(n) for n in TABLES]) == total
    assert {name: len(lake.versions(name)) for name in TABLES} == dict.fromkeys(TABLES, 1 + WRITERS * BATCHES)


def test_money_moves_and_never_multiplies(lake: Lake) -> None:
    accounts, each = 3, 100
    for i in range(accounts):
        lake.write(f"account{i}", pa.table({"id": [0], "money": [each]}), mode="create")

    def holds(dataset: lance.LanceDataset) -> int:
        return int(dataset.to_table()["money"][0].as_py())

    def mover(seed: int) -> None:
        mine = lancerest.connect(lake.url)
        chance = random.Random(seed)
        for _ in range(5):
            source, target = chance.sample(range(accounts), 2)
            amount = chance.randint(1, 20)

            def move(tx: lancerest.Transaction, s: int = source, t: int = target, a: int = amount) -> None:
                a = min(a, holds(tx.dataset(lake.id(f"account{s}"))))
                tx.update(lake.id(f"account{s}"), {"money": f"money - {a}"})
                tx.update(lake.id(f"account{t}"), {"money": f"money + {a}"})

            mine.transaction(move, retries=200)

    done = threading.Event()

    def auditor() -> None:
        mine = lancerest.connect(lake.url)
        names = [lake.id(f"account{i}") for i in range(accounts)]
        while not done.is_set():
            assert sum(holds(d) for d in mine.snapshot(names)) == accounts * each

    def movers() -> None:
        try:
            together([lambda s=s: mover(s) for s in range(4)])  # type: ignore[misc]
        finally:
            done.set()

    together([auditor, movers])
    final = [holds(lake.open(f"account{i}")) for i in range(accounts)]
    assert sum(final) == accounts * each
    assert min(final) >= 0


def test_one_name_is_created_by_one_transaction(lake: Lake) -> None:
    won: list[int] = []
    codes: list[int] = []

    def creator(number: int) -> None:
        def create(tx: lancerest.Transaction) -> None:
            tx.create(lake.id("a"), rows(number))
            tx.create(lake.id("b"), rows(number))

        try:
            lancerest.connect(lake.url).transaction(create)
            won.append(number)
        except lancerest.RequestError as err:
            codes.append(err.code)

    together([lambda n=n: creator(n) for n in range(4)])  # type: ignore[misc]
    assert codes == [5, 5, 5]
    assert ids(lake.open("a")) == ids(lake.open("b")) == won


def test_transactions_and_plain_writers_share_a_table(lake: Lake) -> None:
    for name in ("a", "b"):
        lake.write(name, rows(0), mode="create")

    def plain(first: int) -> None:
        mine = Lake(lake.url, lake.namespace)
        for i in range(5):
            mine.write("a", rows(first + i))

    def transactional(first: int) -> None:
        mine = lancerest.connect(lake.url)
        for i in range(5):
            mine.transaction(
                lambda tx, i=i: [tx.append(lake.id(n), rows(first + i)) for n in ("a", "b")],  # type: ignore[misc]
                retries=200,
            )

    together([lambda: plain(100), lambda: plain(200), lambda: transactional(300), lambda: transactional(400)])
    assert ids(lake.open("b")) == [0, *range(300, 305), *range(400, 405)]
    assert ids(lake.open("a")) == [0, *range(100, 105), *range(200, 205), *range(300, 305), *range(400, 405)]


def test_a_transaction_builds_on_what_bypassed_the_catalog(lake: Lake) -> None:
    for name in ("a", "b"):
        lake.write(name, rows(0), mode="create")
    lance.write_dataset(rows(1), lake.location("a"), mode="append")
    lake.catalog.transaction(lambda tx: tx.append(lake.id("a"), rows(2)).append(lake.id("b"), rows(2)))
    assert (ids(lake.open("a")), ids(lake.open("b"))) == ([0, 1, 2], [0, 2])
    assert lake.versions("a") == [1, 2, 3]


def test_transactions_and_bypassing_writers_together_lose_nothing(lake: Lake) -> None:
    for name in ("a", "b"):
        lake.write(name, rows(0), mode="create")
    place = lake.location("a")

    def bypassing() -> None:
        for i in range(8):
            lance.write_dataset(rows(100 + i), place, mode="append")

    def transactional(first: int) -> None:
        mine = lancerest.connect(lake.url)
        for i in range(4):
            mine.transaction(
                lambda tx, i=i: tx.append(lake.id("a"), rows(first + i)).append(lake.id("b"), rows(first + i)),  # type: ignore[misc]
                retries=200,
            )

    together([bypassing, lambda: transactional(300), lambda: transactional(400)])
    pairs = [*range(300, 304), *range(400, 404)]
    assert ids(lake.open("b")) == [0, *pairs]
    lake.write("a", rows(1000))  # the catalog learns of bypassing writers at the latest now
    assert ids(lake.open("a")) == [0, *range(100, 108), *pairs, 1000]
