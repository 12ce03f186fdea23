"""One server for each test process, one namespace for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from lance_namespace import CreateNamespaceRequest

import engine
from lake import Lake
from server import Server, build

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The binary under test."""
    return build(tmp_path_factory.mktemp("bin"))


@pytest.fixture(scope="session")
def server(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that all tests of this process share. It must still be there, and end well, after the last one."""
    running = Server(binary, tmp_path_factory.mktemp("data")).start()
    yield running
    code = running.stop()
    assert code == 0, f"the server ended with {code}:\n{running.log}"


@pytest.fixture(scope="session")
def engine_server(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with an engine of two workers, for all tests of this process that need one."""
    running = engine.serve(binary, tmp_path_factory.mktemp("data"), "--engine-workers", "2")
    yield running
    code = running.stop()
    assert code == 0, f"the server ended with {code}:\n{running.log}"


@pytest.fixture
def lake(server: Server) -> Lake:
    """A namespace that no other test uses."""
    return new_lake(server)


def new_lake(server: Server) -> Lake:
    """Make a namespace on a server."""
    made = Lake(server.url, f"ns{next(_numbers)}")
    made.client.create_namespace(CreateNamespaceRequest(id=[made.namespace]))
    return made
