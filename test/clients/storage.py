"""A throw-away S3 server with a token service, and Lancerest servers that give clients keys for their tables on it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from server import ROOT, Server

TELL_AND_WAIT = "import json, os, sys; print(json.dumps(dict(os.environ)), flush=True); sys.stdin.read()"


@dataclass
class Storage:
    """An S3 server: its address, its bucket, the operator's keys, and the role that is assumed for clients."""

    endpoint: str
    region: str
    bucket: str
    key_id: str
    key: str
    role: str


@contextlib.contextmanager
def beside(tool: str, more: dict[str, str]) -> Iterator[dict[str, str]]:
    """Run a storage server by a command of test/, and yield the environment in which clients find it."""
    command = ["go", "run", f"./test/{tool}", sys.executable, "-c", TELL_AND_WAIT]
    env = {**os.environ, **more}
    child = subprocess.Popen(command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        line = child.stdout.readline()
        assert line, f"{' '.join(command)} ended with {child.wait()}"
        yield json.loads(line)
    finally:
        child.stdin.close()
        child.stdout.close()
        child.wait()


@contextlib.contextmanager
def s3(session: str | None = None) -> Iterator[Storage]:
    """Run an S3 server, whose token service makes keys that live for `session` (such as "10s") at most."""
    with beside("withs3", {"LANCEREST_TEST_STS_SESSION": session} if session else {}) as told:
        yield Storage(
            endpoint=told["AWS_ENDPOINT_URL"],
            region=told["AWS_REGION"],
            bucket=told["LANCEREST_TEST_S3_BUCKET"],
            key_id=told["AWS_ACCESS_KEY_ID"],
            key=told["AWS_SECRET_ACCESS_KEY"],
            role=told["LANCEREST_TEST_STS_ROLE"],
        )


def config(storage: Storage, directory: Path, prefix: str, credentials: str) -> Path:
    """Write a configuration file with one root, whose clients are given what the lines say; the operator's keys lie beside it."""
    (directory / "id").write_text(storage.key_id)
    (directory / "key").write_text(storage.key)
    file = directory / "lancerest.toml"
    file.write_text(f"""
[[root]]
location = "s3://{storage.bucket}/{prefix}"
endpoint = "{storage.endpoint}"
region = "{storage.region}"
allow_http = true
access_key_id = "file:{directory}/id"
secret_access_key = "file:{directory}/key"
{credentials}
""")
    return file


def vend(storage: Storage, more: str = "") -> str:
    """Return the lines that give clients temporary keys for their table."""
    return f'[root.vend]\nrole_arn = "{storage.role}"\n{more}'


def without_configuration(patch: pytest.MonkeyPatch, home: Path) -> None:
    """Take from this process whatever could tell a client of S3 where storage is, or give it keys."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            patch.delenv(name)
    patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    patch.setenv("AWS_CONFIG_FILE", str(home / "none"))
    patch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(home / "none"))


@contextlib.contextmanager
def serving(binary: Path, directory: Path, file: Path) -> Iterator[Server]:
    """Run a Lancerest server with a configuration file, and see that it ends well."""
    running = Server(binary, directory / "data", "--config", str(file)).start()
    yield running
    code = running.stop()
    assert code == 0, f"the server ended with {code}:\n{running.log}"
