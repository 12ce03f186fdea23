"""Jobs as LanceDB's SDK sees them: followed, listed, canceled, failed, and gone on with when the server stops in the middle."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from lancedb.exceptions import JobCancelledError, JobFailedError, JobNotFoundError
from lancedb.remote.errors import HttpError

import engine
from engine import connect, sample
from server import Server

# One commit each, of so many fragments, makes a backfill last for a while.
FRAGMENTS = 60
PATIENCE = timedelta(seconds=120)


@pytest.fixture
def own(binary: Path, tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own, with one worker."""
    running = engine.serve(binary, tmp_path / "data", "--engine-workers", "1")
    yield running
    code = running.stop()
    assert code == 0, f"the server ended with {code}:\n{running.log}"


def ask(server: Server, path: str, body: dict[str, Any]) -> Any:
    """Post a request of plain HTTP and return the answer."""
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


def fillable(server: Server) -> Any:
    """Return a table of many fragments with a computed column that is empty."""
    table = connect(server).create_table("t", sample(0, 3))
    for i in range(1, FRAGMENTS):
        table.add(sample(3 * i, 3))
    table.add_columns(computed={"twice": "id * 2"})
    return table


def slow_job(server: Server) -> Any:
    """Begin to fill the column, and return the job once it has committed something."""
    table = connect(server).open_table("t")
    before = table.version
    answer = ask(server, "/v1/table/t/backfill_column", {"column": "twice", "commit_granularity": 1})
    job = connect(server).open_job(answer["job_id"])
    until = time.monotonic() + PATIENCE.total_seconds()
    while table.version < before + 3:
        assert time.monotonic() < until, f"nothing was committed: {status(server, job.id)}"
    return job


def status(server: Server, job: str) -> Any:
    """Return what the specification's own operation tells of a job."""
    return ask(server, f"/v1/transaction/{job}/describe", {})


def test_followed(own: Server) -> None:
    """A job is waited for, and tells what it was and what it came to."""
    table = fillable(own)
    job = table.refresh_column_async("twice")
    result = job.wait(PATIENCE)
    assert (result.rows_assigned, result.rows_failed, result.rows_remaining) == (3 * FRAGMENTS, 0, 0)
    assert result.published_version == table.version
    assert job.status() == "finished"
    again = connect(own).open_job(job.id)
    again.refresh()
    assert (again.job_type, again.state, again.spec) == ("refresh_column", "finished", {"table": "t"})
    assert again.result["rows_assigned"] == 3 * FRAGMENTS
    again.cancel()  # it has ended: nothing happens
    assert status(own, job.id)["status"] == "Succeeded"
    assert table.count_rows("twice = id * 2") == 3 * FRAGMENTS


def test_canceled(own: Server) -> None:
    """A job that is canceled in the middle commits nothing more, and what it has committed stays."""
    table = fillable(own)
    job = slow_job(own)
    assert [(j.job_id, j.table, j.state) for j in connect(own).list_jobs()] == [(job.id, "t", "running")]
    job.cancel()
    version, filled = table.version, table.count_rows("twice = id * 2")
    assert 0 < filled < 3 * FRAGMENTS
    with pytest.raises(JobCancelledError):
        job.wait(PATIENCE)
    assert connect(own).list_jobs() == []
    # Long enough for the worker to come to its next commit, had it gone on: another job is through meanwhile.
    table.refresh_column_async("twice").wait(PATIENCE)
    commits = table.version - version
    assert commits <= 3, f"{commits} commits after the cancellation"
    assert table.count_rows("twice = id * 2") == 3 * FRAGMENTS
    assert status(own, job.id)["status"] == "Canceled"


def test_dropped(own: Server) -> None:
    """A job whose table is dropped fails, and says why."""
    fillable(own)
    job = slow_job(own)
    connect(own).drop_table("t")
    with pytest.raises(JobFailedError, match="was dropped"):
        job.wait(PATIENCE)
    assert status(own, job.id)["properties"]["job.error_code"] == "4"


def test_server_stops(own: Server) -> None:
    """A server that is stopped in the middle goes on with its job when it starts again."""
    fillable(own)
    job = slow_job(own)
    assert own.stop() == 0, own.log
    own.start()
    connect(own).open_job(job.id).wait(PATIENCE)
    table = connect(own).open_table("t")
    assert table.count_rows("twice = id * 2") == 3 * FRAGMENTS
    assert status(own, job.id)["properties"]["job.attempts"] == "2"


def test_wrong(own: Server) -> None:
    """What is no job is not found."""
    db = connect(own)
    assert db.cancel_job("none") is False
    with pytest.raises(JobNotFoundError):
        db.open_job("none")
    with pytest.raises(HttpError, match="not offer"):
        db.pause_job("none")
