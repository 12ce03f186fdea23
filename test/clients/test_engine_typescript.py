"""LanceDB's TypeScript SDK on a server with an engine, against itself in a local directory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from server import ROOT, Server

SCRIPT = Path(__file__).with_name("lancedb.mjs")


def test_typescript(engine_server: Server, tmp_path: Path) -> None:
    sdk = Path(os.environ.get("LANCEREST_NODE_SDK") or ROOT / ".tools" / "lancedb")
    node = shutil.which("node")
    if node is None or not sdk.exists():
        pytest.skip("there is no Node.js with LanceDB's SDK: make check-clients installs that (see NODE_SDK in the Makefile)")
    (tmp_path / "local").mkdir()
    ran = subprocess.run(
        [node, str(SCRIPT), engine_server.url, str(tmp_path / "local"), f"ts_{tmp_path.name}"],
        env={**os.environ, "LANCEREST_NODE_SDK": str(sdk)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    steps = [json.loads(line) for line in ran.stdout.splitlines()]
    differing = [step for step in steps if step["remote"] != step["local"]]
    assert differing == []
    failing = [step for step in steps if "error" in (step["remote"] if isinstance(step["remote"], dict) else {})]
    assert failing == []
    assert len(steps) > 35
