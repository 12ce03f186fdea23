"""Workers that die around a commit, and what LanceDB's SDK makes of it, which sends again what seems to have failed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine import connect, sample
from server import Server

# A Python whose worker dies once, where a file says so: before a commit's request, or after the operation and before its answer.
MORTAL = """#!{python}
import os, sys
if "-m" not in sys.argv:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
sys.argv = sys.argv[sys.argv.index("lancerest_worker"):]
sys.path.insert(0, os.environ["PYTHONPATH"])
from lancerest_worker import operations
from lancerest_worker.__main__ import main

def mortal(perform):
    def one(request):
        if os.path.exists({sign!r} + ".before"):
            os.remove({sign!r} + ".before")
            os._exit(9)
        answer = perform(request)
        if os.path.exists({sign!r} + ".after"):
            os.remove({sign!r} + ".after")
            os._exit(9)
        return answer
    return one

for name, perform in list(operations.OPERATIONS.items()):
    operations.OPERATIONS[name] = mortal(perform)
main()
"""

CHANGES: dict[str, Callable[[Any], Any]] = {
    "add": lambda t: t.add(sample(100, 7)),
    "merge": lambda t: t.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(sample(45, 10)),
    "delete": lambda t: t.delete("id < 3"),
    "add_columns": lambda t: t.add_columns({"more": "id + 1"}),
    "alter_columns": lambda t: t.alter_columns({"path": "group", "rename": "kind"}),
    "drop_columns": lambda t: t.drop_columns(["group"]),
    "restore": lambda t: t.restore(1),
    "update": lambda t: t.update(values_sql={"id": "id + 1000"}),
}


class Mortal:
    """A server with one worker that dies when it is told to."""

    def __init__(self, binary: Path, directory: Path) -> None:
        self._sign = directory / "die"
        python = directory / "python"
        python.write_text(MORTAL.format(python=sys.executable, sign=str(self._sign)))
        python.chmod(0o755)
        self.server = Server(
            binary, directory / "data", "--engine", "auto", "--engine-python", str(python), "--engine-workers", "1"
        ).start()

    def die(self, when: str) -> Path:
        sign = self._sign.with_suffix(f".{when}")
        sign.touch()
        return sign


@pytest.fixture(scope="module")
def mortal(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = Mortal(binary, tmp_path_factory.mktemp("mortal"))
    yield made
    made.server.stop()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", CHANGES)
def test_once(mortal: Mortal, name: str, when: str) -> None:
    """A change whose worker dies is made once, and the SDK's caller is told that it is there."""
    db = connect(mortal.server)
    table = db.create_table(f"{name}_{when}", sample(0, 50))
    table.delete("id >= 40")
    before = table.version
    sign = mortal.die(when)
    if name == "update" and when == "after":
        with pytest.raises(Exception, match=f"was done, as version {before + 1} "):  # how many rows is not known any more
            CHANGES[name](table)
    else:
        done = CHANGES[name](table)
        assert getattr(done, "version", before + 1) == before + 1
    assert not sign.exists(), "no worker has died"
    assert db.open_table(table.name).version == before + 1
    if name == "add":
        assert table.count_rows() == 47
    if name == "update":
        assert table.count_rows("id >= 1000 AND id < 2000") == 40


@pytest.mark.parametrize("when", ["before", "after"])
def test_create(mortal: Mortal, when: str) -> None:
    """A table whose worker dies while it is made is there, or may be made again."""
    db = connect(mortal.server)
    mortal.die(when)
    if when == "before":
        with pytest.raises(Exception, match="nothing was changed"):
            db.create_table(f"made_{when}", sample(0, 50))
        assert f"made_{when}" not in db.table_names()
        db.create_table(f"made_{when}", sample(0, 50))
    else:
        db.create_table(f"made_{when}", sample(0, 50))
    assert db.open_table(f"made_{when}").count_rows() == 50
