"""The example that the README shows, run as a user would: twice, on one server."""

from __future__ import annotations

import os
import subprocess
import sys

from server import ROOT, Server


def test_multi_table_example(server: Server) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python" / "lancerest" / "src")}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(ROOT / "examples" / "multi_table.py"), server.url],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "never saw the three out of step" in done.stdout
        assert "1,797 digits now: 1,437 to train, 360 to test" in done.stdout
