"""A Lancerest server as a child process: start it, find its address, end it gently or not."""

from __future__ import annotations

import collections
import os
import re
import subprocess
import threading
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 30
STOP_SECONDS = 30
LISTENING = re.compile(r"http://127\.0\.0\.1:(\d+)")


def build(directory: Path) -> Path:
    """Return the binary under test: the one that LANCEREST_BIN names, or a fresh build of this tree."""
    given = os.environ.get("LANCEREST_BIN")
    if given:
        return Path(given).resolve()
    binary = directory / "lancerest"
    subprocess.run(["go", "build", "-o", str(binary), "./cmd/lancerest"], cwd=ROOT, check=True)
    return binary


def flags(data: Path) -> list[str]:
    """Return the flags of a server on a data directory.

    Its state lies there, or in a schema of its own in the PostgreSQL database that LANCEREST_STATE names (see test/withpostgres).
    """
    where = ["--data", str(data), *on_s3()]
    database = os.environ.get("LANCEREST_STATE")
    if not database:
        return where
    schema = f"s{uuid.uuid4().hex}"
    subprocess.run(["psql", "--quiet", "--no-psqlrc", "--command", f"CREATE SCHEMA {schema}", database], check=True)
    return [*where, "--state", f"{database}?search_path={schema}"]


def on_s3() -> list[str]:
    """Return the flags that put tables into a place of their own on the S3 server of the environment (see test/withs3).

    Clients are given keys for each table, so that they need to be told of nothing but the catalog's address.
    """
    bucket = os.environ.get("LANCEREST_TEST_S3_BUCKET")
    if not bucket:
        return []
    return ["--root", f"s3://{bucket}/{uuid.uuid4().hex}", "--sts-role-arn", os.environ["LANCEREST_TEST_STS_ROLE"]]


class Server:
    """One server on one data directory. It keeps its port when it is started again."""

    def __init__(self, binary: Path, data: Path, *more: str) -> None:
        self._binary = binary
        self._flags = [*flags(data), *more] if "--engine" in more else [*flags(data), "--engine", "off", *more]
        self._port = 0
        self._process: subprocess.Popen[str] | None = None
        self._log: collections.deque[str] = collections.deque(maxlen=200)

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def log(self) -> str:
        """The last lines that the server wrote."""
        return "".join(self._log)

    def start(self) -> Server:
        """Start the server and return once it has said where it listens."""
        command = [str(self._binary), "serve", *self._flags, "--listen", f"127.0.0.1:{self._port}"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        listening = threading.Event()
        threading.Thread(target=self._drain, args=(self._process, listening), daemon=True).start()
        if not listening.wait(START_SECONDS) or self._process.poll() is not None:
            self.kill()
            raise RuntimeError(f"{' '.join(command)} did not start:\n{self.log}")
        return self

    def stop(self) -> int:
        """Ask the server to end, as an init system does, and return its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(STOP_SECONDS)

    def kill(self) -> None:
        """End the server at once, in the middle of whatever it does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(STOP_SECONDS)

    def _drain(self, process: subprocess.Popen[str], listening: threading.Event) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._log.append(line)
            found = LISTENING.search(line)
            if found and not listening.is_set():
                self._port = int(found.group(1))
                listening.set()
        listening.set()  # it has ended: whoever waits shall look
