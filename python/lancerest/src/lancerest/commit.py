"""The commit: publish a batch, tell conflict from loss, move appends or start over.

What may be done again, and why it never applies twice:

* The same batch may be sent any number of times: the catalog knows a replay by its staged manifests and answers as the
  first time.
* After a lost answer a batch is only ever replayed, until the catalog says what became of it. A refusal then counts only
  once the winning version was seen to be another's (`_published_by_us`).
* New manifests are staged only after a definite refusal.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from .errors import (
    CONCURRENT_MODIFICATION,
    SERVICE_UNAVAILABLE,
    THROTTLING,
    CommitUnknownError,
    ConflictError,
    Contended,
    RequestError,
)
from .first_version import OvertakenError
from .staging import Chain, Entry, Place, StagedTable
from .transaction import Transaction
from .wire import AnswerLostError, Head, Wire, refusal

T = TypeVar("T")

FIRST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 1.0
# Replays of one batch whose answer was lost or that the catalog was too busy to take.
REPLAYS: Final = 12
UNKNOWN_STATUSES: Final = frozenset({408, 500, 502, 504})


@dataclass(frozen=True)
class Committed(Generic[T]):
    """A transaction that was published.

    `value` is what the closure returned; `transaction_id` the catalog's id of it (None if nothing was written, or if the
    outcome was learned without its answer); `versions` maps (table, branch) to the version each table has now; `attempts` is 1
    if no other writer got in between.
    """

    value: T
    transaction_id: str | None
    versions: Mapping[tuple[tuple[str, ...], str], int]
    attempts: int


class Deadline:
    """The time a transaction has left."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds left, at least a tenth: a request under way is given a chance."""
        return max(0.1, self._end - time.monotonic())

    def over(self) -> bool:
        """Whether there is no time for another attempt."""
        return time.monotonic() >= self._end

    def pause(self, attempt: int) -> None:
        """Back off before attempt number `attempt` + 1: exponential, with full jitter, within the deadline."""
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1))
        time.sleep(min(random.uniform(0, longest), self.left()))


@dataclass(frozen=True)
class Published:
    """The catalog published the batch."""

    transaction_id: str | None


@dataclass(frozen=True)
class Lost:
    """The catalog refused the batch: others were first."""

    why: str


@dataclass(frozen=True)
class Refused:
    """One sending of a batch that did not end in success: whether the same batch may still succeed, whether it may have
    been applied all the same, and whether others were first.
    """

    problem: Exception
    replayable: bool
    in_doubt: bool = False
    conflict: bool = False


@dataclass(frozen=True)
class Evaluated(Generic[T]):
    """One run of a closure: what it returned and the tables it wrote."""

    value: T
    written: list[StagedTable]


class Committer:
    """Runs closures against one catalog. Safe for use by many threads: all state of a run is its own."""

    def __init__(
        self,
        wire: Wire,
        begin: Callable[[Deadline], Transaction],
        context: Mapping[str, str],
    ) -> None:
        self._wire = wire
        self._begin = begin
        self._context = context

    def run(self, fn: Callable[[Transaction], T], retries: int, deadline: Deadline) -> Committed[T]:
        """Run the closure and publish what it wrote.

        Errors: ConflictError once `retries` further attempts or the time are used up, CommitUnknownError,
        RequestError for a refusal that trying again cannot cure, and whatever the closure raises.
        """
        evaluated: Evaluated[T] | None = None
        for attempt in itertools.count(1):
            try:
                evaluated = evaluated or self._evaluate(fn, deadline)
                outcome = self._publish_all(evaluated.written, deadline)
                if isinstance(outcome, Published):
                    return Committed(evaluated.value, outcome.transaction_id, last_versions(evaluated.written), attempt)
            except OvertakenError as err:
                outcome = Lost(str(err))
            if attempt > retries or deadline.over():
                raise ConflictError(self._contended(evaluated, deadline), attempts=attempt, last=outcome.why)
            deadline.pause(attempt)
            if evaluated and not self._move(evaluated.written, deadline):
                evaluated = None
        raise AssertionError("the loop ends by return or by error")

    def _evaluate(self, fn: Callable[[Transaction], T], deadline: Deadline) -> Evaluated[T]:
        tx = self._begin(deadline)
        value = fn(tx)
        return Evaluated(value, [staged for staged in tx.staged.values() if staged.written])

    def _publish_all(self, written: Sequence[StagedTable], deadline: Deadline) -> Published | Lost:
        if not written:
            return Published(None)
        entries = [entry for staged in written for entry in staged.entries()]
        return self._publish(entries, {staged.place.chain: staged.place for staged in written}, deadline)

    def _contended(self, evaluated: Evaluated[T] | None, deadline: Deadline) -> list[Contended]:
        written = evaluated.written if evaluated else []
        heads = self._heads(written, deadline)
        return [
            Contended(s.place.chain.table, s.place.chain.branch, s.next_version)
            for s in written
            if heads[s.place.chain] != s.head
        ]

    def _heads(self, written: Sequence[StagedTable], deadline: Deadline) -> dict[Chain, Head | None]:
        return {s.place.chain: self._wire.head(s.place.chain.table, s.place.chain.branch, deadline.left()) for s in written}

    def _move(self, written: Sequence[StagedTable], deadline: Deadline) -> bool:
        """Move appends to the newest versions; False if the closure has to run again. Tables that nobody else touched
        keep what was staged, unless none was touched: then the catalog wants manifests that it has not seen yet.
        """
        heads = self._heads(written, deadline)
        moved = [s for s in written if heads[s.place.chain] != s.head]
        return all(s.move_to(heads[s.place.chain]) for s in moved or written)

    def _publish(self, entries: Sequence[Entry], places: Mapping[Chain, Place], deadline: Deadline) -> Published | Lost:
        body: dict[str, Any] = {"entries": [entry.to_json() for entry in entries]}
        if self._context:
            body["context"] = dict(self._context)
        in_doubt = False
        replay = 1
        while True:
            answer = self._send(body, deadline)
            if isinstance(answer, Published):
                return answer
            in_doubt = in_doubt or answer.in_doubt
            if not answer.replayable or replay > REPLAYS or deadline.over():
                break
            deadline.pause(replay)
            replay += 1
        if in_doubt:
            return self._settle_doubt(entries, places, answer.problem)
        if answer.conflict:
            return Lost(str(answer.problem))
        raise answer.problem

    def _send(self, body: Mapping[str, Any], deadline: Deadline) -> Published | Refused:
        try:
            status, answer = self._wire.batch_create(body, deadline.left())
        except AnswerLostError as err:
            return Refused(err, replayable=True, in_doubt=True)
        except RequestError as err:  # it never left
            return Refused(err, replayable=True)
        if status // 100 == 2:
            return Published(answer.get("transaction_id"))
        problem = refusal(status, answer)
        in_doubt = status in UNKNOWN_STATUSES
        return Refused(
            problem,
            replayable=in_doubt or problem.code in (SERVICE_UNAVAILABLE, THROTTLING),
            in_doubt=in_doubt,
            conflict=problem.code == CONCURRENT_MODIFICATION,
        )

    def _settle_doubt(self, entries: Sequence[Entry], places: Mapping[Chain, Place], problem: Exception) -> Published | Lost:
        """Learn from the tables what became of a batch whose answer was lost. All entries share one fate, so the first
        slot that is filled decides for all.
        """
        for entry in entries:
            try:
                mine = self._published_by_us(entry, places[entry.chain])
            except Exception as err:  # the table cannot be looked at either
                problem = err
                continue
            if mine is not None:
                return Published(None) if mine else Lost(str(problem))
        raise CommitUnknownError(
            f"the outcome of the commit could not be learned: {problem}",
            versions={(e.chain.table, e.chain.branch): e.version for e in entries},
            uuids={(e.chain.table, e.chain.branch): e.uuid for e in entries},
        ) from problem

    def _published_by_us(self, entry: Entry, place: Place) -> bool | None:
        """Whether the entry's version carries our Lance transaction; None if there is no such version (yet)."""
        head = self._wire.head(entry.chain.table, entry.chain.branch, timeout=10.0)
        if head is None or head.version < entry.version:
            return None
        found = place.open(entry.version).read_transaction(entry.version)
        return found is not None and found.uuid == entry.uuid


def last_versions(written: Sequence[StagedTable]) -> dict[tuple[tuple[str, ...], str], int]:
    """Return the version that each table has afterwards."""
    return {(e.chain.table, e.chain.branch): e.version for staged in written for e in staged.entries()}
