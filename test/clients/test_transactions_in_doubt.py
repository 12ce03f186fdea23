"""Transactions whose request or answer is lost: applied once, never twice, and never reported as what they are not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import lancerest
from lake import Lake, ids, rows
from proxy import Fate, proxy_to

TABLES = ("a", "b")


@pytest.fixture
def tables(lake: Lake) -> Lake:
    """A namespace with two tables of one row."""
    for name in TABLES:
        lake.write(name, rows(0), mode="create")
    return lake


def appending(lake: Lake) -> Callable[[lancerest.Transaction], object]:
    """A closure that adds one row to each table."""
    return lambda tx: tx.append(lake.id("a"), rows(1)).append(lake.id("b"), rows(1))


def check_applied_once(lake: Lake) -> None:
    """Check that each table has exactly one version more, with the new row once."""
    for name in TABLES:
        assert (lake.versions(name), ids(lake.open(name))) == ([1, 2], [0, 1])


def check_not_applied(lake: Lake) -> None:
    """Check that no table has a new version."""
    for name in TABLES:
        assert lake.versions(name) == [1]


@pytest.mark.parametrize("fate", [Fate.LOSE_REQUEST, Fate.LOSE_ANSWER, Fate.HIDE_ANSWER, Fate.REFUSE])
def test_one_loss_is_healed_by_sending_the_same_again(tables: Lake, fate: Fate) -> None:
    with proxy_to(tables.url) as proxy:
        proxy.decide = lambda number: fate if number == 1 else Fate.PASS
        done = lancerest.connect(proxy.url).transaction(appending(tables))
    assert (proxy.batches, done.attempts) == (2, 1)
    assert done.transaction_id
    check_applied_once(tables)


def test_an_answer_that_never_comes_is_read_off_the_tables(tables: Lake) -> None:
    with proxy_to(tables.url) as proxy:
        proxy.decide = lambda _: Fate.LOSE_ANSWER
        done = lancerest.connect(proxy.url).transaction(appending(tables), timeout=1.0)
    assert proxy.batches > 1
    assert done.transaction_id is None
    assert set(done.versions.values()) == {2}
    check_applied_once(tables)


def test_what_cannot_be_learned_is_called_unknown(tables: Lake) -> None:
    with proxy_to(tables.url) as proxy:
        proxy.decide = lambda _: Fate.LOSE_REQUEST
        with pytest.raises(lancerest.CommitUnknownError) as caught:
            lancerest.connect(proxy.url).transaction(appending(tables), timeout=1.0)
    assert caught.value.versions == {(tuple(tables.id(name)), ""): 2 for name in TABLES}
    assert len(set(caught.value.uuids.values())) == 2
    check_not_applied(tables)


def test_a_refusal_without_any_effect_is_not_called_unknown(tables: Lake) -> None:
    with proxy_to(tables.url) as proxy:
        proxy.decide = lambda _: Fate.REFUSE
        with pytest.raises(lancerest.RequestError) as caught:
            lancerest.connect(proxy.url).transaction(appending(tables), timeout=1.0)
    assert (caught.value.code, caught.value.status) == (17, 503)
    check_not_applied(tables)


def test_a_lost_answer_is_told_from_the_conflict_that_follows_it(tables: Lake) -> None:
    """The batch was applied, its answer lost, and others wrote on: the replay must not count as a conflict."""

    def decide(number: int) -> Fate:
        if number == 1:
            return Fate.LOSE_ANSWER
        tables.write("a", rows(number * 100))
        return Fate.PASS

    with proxy_to(tables.url) as proxy:
        proxy.decide = decide
        done = lancerest.connect(proxy.url).transaction(appending(tables))
    assert done.attempts == 1
    assert ids(tables.open("a")) == [0, 1, 200]
    assert ids(tables.open("b")) == [0, 1]


def test_a_lost_request_whose_slot_others_took_is_applied_once(tables: Lake) -> None:
    """The batch never arrived; its replay meets a real conflict, and the appends move on."""

    def decide(number: int) -> Fate:
        if number == 1:
            tables.write("a", rows(100))
            return Fate.LOSE_REQUEST
        return Fate.PASS

    with proxy_to(tables.url) as proxy:
        proxy.decide = decide
        done = lancerest.connect(proxy.url).transaction(appending(tables))
    assert done.attempts == 2
    assert ids(tables.open("a")) == [0, 1, 100]
    assert ids(tables.open("b")) == [0, 1]


def test_a_server_that_is_not_there_is_said_at_once(tables: Lake) -> None:
    with proxy_to(tables.url) as proxy:
        gone = proxy.url
    with pytest.raises(lancerest.RequestError, match="cannot reach") as caught:
        lancerest.connect(gone).transaction(appending(tables))
    assert caught.value.code == 17
