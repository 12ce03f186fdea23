"""Workers that somebody else runs, on addresses of a network, as docs/engine.md and workers/lance say."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lancedb.remote.errors
import pytest
from test_engine_kills import post

from engine import connect, sample
from server import ROOT, Server

SECRET = "a secret of the network's"


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Worker:
    """A worker that is started by hand, on one address for all its lives."""

    def __init__(self, secret: str = SECRET) -> None:
        self.address = f"127.0.0.1:{_port()}"
        self._secret = secret
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it and return once it listens."""
        command = [sys.executable, "-m", "lancerest_worker", "--stay", "--listen", self.address]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "workers" / "lance"), "LANCEREST_WORKER_SECRET": self._secret}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()


@pytest.fixture
def pair() -> Iterator[list[Worker]]:
    """Two workers."""
    both = [Worker(), Worker()]
    yield both
    for worker in both:
        worker.kill()


@contextlib.contextmanager
def serving(binary: Path, data: Path, *addresses: str, secret: str = SECRET) -> Iterator[Server]:
    """Run a server that is given workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LANCEREST_WORKER_SECRET", secret)
        running = Server(binary, data, "--engine", ",".join(addresses)).start()
    yield running
    assert running.stop() == 0, running.log


def _eventually(do: Any) -> Any:
    """Do what may fail while a worker is gone, until it does not."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return do()
        except (RuntimeError, lancedb.remote.errors.HttpError, lancedb.remote.errors.RetryError):
            assert time.monotonic() < deadline


def test_one_dies_and_comes_back(binary: Path, tmp_path: Path, pair: list[Worker]) -> None:
    """While one of two workers is gone the other one does all work; when it is back either can go."""
    with serving(binary, tmp_path / "data", *(worker.address for worker in pair)) as server:
        table = connect(server).create_table("t", sample(0, 10))
        for n, gone in enumerate([*pair, *pair]):
            gone.kill()
            _eventually(lambda: table.count_rows("id >= 0"))
            for row in range(3):
                table.add(sample(10 + 3 * n + row, 1))
                assert table.count_rows("id >= 0") == 11 + 3 * n + row
            gone.start()
            _back(server, table.name, pair[1] if gone is pair[0] else pair[0])
        assert table.version == 13


def _back(server: Server, name: str, other: Worker) -> None:
    """See that the worker that came back serves alone."""
    other.kill()
    deadline = time.monotonic() + 60
    while post(server, f"/v1/table/{name}/count_rows", {"predicate": "true"})[0] != 200:
        assert time.monotonic() < deadline, server.log
    other.start()


def test_none_is_there(binary: Path, tmp_path: Path) -> None:
    """Without any worker the catalog serves, and an operation on data says what is missing."""
    with serving(binary, tmp_path / "data", f"127.0.0.1:{_port()}") as server:
        assert post(server, "/v1/table/t/declare", {})[0] == 200
        status, text = post(server, "/v1/table/t/create", b"")
        assert (status, b"no worker" in text) == (503, True), text
        assert post(server, "/v1/table/t/describe", {})[0] == 200


def test_another_secret(binary: Path, tmp_path: Path, pair: list[Worker]) -> None:
    """A server with another secret is served nothing, and its log says why."""
    with serving(binary, tmp_path / "data", pair[0].address, secret="another") as server:
        with pytest.raises(lancedb.remote.errors.HttpError):
            connect(server, client_config={"retry_config": {"retries": 0}}).create_table("t", sample(0, 1))
        assert "secret" in server.log
        assert list(connect(server).table_names()) == []
