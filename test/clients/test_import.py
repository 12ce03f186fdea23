"""Catalogs from what lies in storage already: directories of datasets, and the directory catalogs of Lance's own libraries."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import lance
import lancedb
import pytest
from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DescribeNamespaceRequest,
    DescribeTableRequest,
    LanceNamespace,
    ListNamespacesRequest,
    ListTableBranchesRequest,
    ListTablesRequest,
    ListTableTagsRequest,
    ListTableVersionsRequest,
    connect,
)

from lake import ids, rows
from server import ROOT, Server

pytestmark = pytest.mark.skipif("LANCEREST_STATE" in os.environ, reason="the state of an import is that of its flags")


class Import:
    """The command under test, on one data directory, and a server that opens it afterwards."""

    def __init__(self, binary: Path, data: Path) -> None:
        self.binary = binary
        self.data = data

    def run(self, command: str, *arguments: str | Path, code: int = 0) -> list[str]:
        """Run a command on the data directory and return the lines of its report."""
        line = [str(self.binary), command, *map(str, arguments), "--data", str(self.data)]
        done = subprocess.run(line, check=False, capture_output=True, text=True, timeout=120)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout.splitlines() if code == 0 else (done.stdout + done.stderr).splitlines()

    def take(self, *arguments: str | Path, code: int = 0) -> list[str]:
        """Import."""
        return self.run("import", "--python", sys.executable, *arguments, code=code)

    def serve(self, *flags: str | Path) -> Server:
        """Start a server on what was imported."""
        return Server(self.binary, self.data, *map(str, flags)).start()


@pytest.fixture
def importing(binary: Path, tmp_path: Path) -> Import:
    """An import into a new catalog."""
    return Import(binary, tmp_path / "data")


def files(directory: Path) -> dict[str, tuple[int, int]]:
    """Return the size and the time of every file of a tree but the catalog's marker, to see that none was touched."""
    found = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.name != ".lancerest":
            stat = path.stat()
            found[str(path.relative_to(directory))] = (stat.st_size, stat.st_mtime_ns)
    return found


def make_table(location: Path) -> None:
    """Write a dataset with several versions, deletions, a tag and a branch with versions of its own."""
    lance.write_dataset(rows(0, 10), str(location))
    table = lance.write_dataset(rows(10, 5), str(location), mode="append")
    table.delete("id < 3")
    table.tags.create("first", 1)
    branch = table.create_branch("trial", 2)
    lance.write_dataset(rows(100, 2), branch, mode="append")


def described(client: LanceNamespace, table: list[str]) -> tuple[list[int], list[int], dict[str, int], list[str]]:
    """Return the versions of main and of the branch, the tags and the branches that a catalog tells of a table."""
    listed = client.list_table_versions(ListTableVersionsRequest(id=table))
    branched = client.list_table_versions(ListTableVersionsRequest(id=table, branch="trial"))
    tags = client.list_table_tags(ListTableTagsRequest(id=table)).tags
    branches = client.list_table_branches(ListTableBranchesRequest(id=table)).branches
    return (
        sorted(v.version for v in listed.versions),
        sorted(v.version for v in branched.versions),
        {name: tag.version for name, tag in tags.items()},
        sorted(branches),
    )


def test_directory_listing(importing: Import, tmp_path: Path) -> None:
    """Tables of a flat directory are found, told by a dry run, taken in as they are, and not twice."""
    lake = tmp_path / "lake"
    make_table(lake / "photos.lance")
    lance.write_dataset(rows(0, 3), str(lake / "old.lance"), enable_v2_manifest_paths=False)
    lance.write_dataset(rows(3, 3), str(lake / "old.lance"), mode="append")
    lancedb.connect(lake).create_table("words", rows(0, 7))
    lance.write_dataset(rows(0, 1), str(lake / "gone.lance"))
    (lake / "gone.lance" / ".lance-deregistered").write_text("reserved")
    (lake / "planned.lance").mkdir()
    (lake / "planned.lance" / ".lance-reserved").write_text("reserved")
    (lake / "empty.lance").mkdir()
    lance.write_dataset(rows(0, 1), str(lake / "other"))
    lance.write_dataset(rows(0, 1), str(lake / "dollar$.lance"))
    (lake / "broken.lance" / "_versions").mkdir(parents=True)
    (lake / "broken.lance" / "_versions" / "18446744073709551614.manifest").write_bytes(b"no manifest")
    before = files(lake)
    assert sorted(path.name for path in (lake / "old.lance" / "_versions").glob("*.manifest")) == ["1.manifest", "2.manifest"]

    dry = importing.take(lake, "--allow", lake, "--dry-run")
    assert not importing.data.exists(), "a dry run makes no catalog"
    assert not (lake / ".lancerest").exists(), "a dry run makes no root"
    outcome = {line.split(" at ")[0] for line in dry[:-1]}
    assert outcome == {
        "would import: photos",
        "would import: old",
        "would import: words",
        "would declare: planned",
        "skipped: gone",
        "skipped: empty",
        "skipped: other",
        "skipped: dollar$",
        "skipped: broken",
    }
    assert all(": " in line.split(" at ", 1)[1] for line in dry if line.startswith("skipped")), "no skip without a reason"
    assert dry[-1] == "found 9: 3 would import, 1 would declare, 5 skipped"

    done = importing.take(lake, "--allow", lake)
    assert done[-1] == "found 9: 3 imported, 1 declared, 5 skipped"
    again = importing.take(lake, "--allow", lake)
    assert again[-1] == "found 9: 4 already there, 5 skipped"
    assert importing.take(lake, "--allow", lake, "--dry-run")[-1] == again[-1]
    assert files(lake) == before, "an import touches no file"

    server = importing.serve("--allow", lake)
    client = connect("rest", {"uri": server.url})
    assert client.list_tables(ListTablesRequest(id=[])).tables == ["old", "photos", "planned", "words"]
    assert described(client, ["photos"]) == ([1, 2, 3], [2, 3], {"first": 1}, ["trial"])
    opened = lance.dataset(namespace_client=client, table_id=["photos"])
    assert ids(opened) == list(range(3, 15))
    assert ids(lance.dataset(namespace_client=client, table_id=["photos"], version="first")) == list(range(10))
    assert ids(opened.checkout_version(("trial", None))) == [*range(15), 100, 101]
    assert ids(lance.dataset(namespace_client=client, table_id=["old"])) == list(range(6))
    assert lancedb.connect_namespace("rest", {"uri": server.url}).open_table("words").count_rows() == 7
    for name in ("photos", "old", "planned"):
        lance.write_dataset(rows(1000, 1), mode="append", namespace_client=client, table_id=[name])
        assert 1000 in ids(lance.dataset(str(lake / f"{name}.lance"))), "writes go on where the table lies"
    assert server.stop() == 0


def test_nested_tree(importing: Import, tmp_path: Path) -> None:
    """The directories of a tree become namespaces, below the one that takes them."""
    lake = tmp_path / "lake"
    for place in ("a.lance", "x/b.lance", "x/y/c", "x/y/d.lance"):
        lance.write_dataset(rows(0, 2), str(lake / place))
    (lake / "x" / "loop").symlink_to(lake)
    done = importing.take(lake, "--allow", lake, "--nested", "--into", "from/tree")
    assert sorted(line.split(" at ")[0] for line in done[:-1]) == [
        "imported: from/tree/a",
        "imported: from/tree/x/b",
        "imported: from/tree/x/y/c",
        "imported: from/tree/x/y/d",
    ]
    flat = importing.take(lake, "--allow", lake, "--into", "flat")
    assert flat[0].startswith("skipped: flat/a at"), "a directory has one name"
    one = importing.take(lake / "x" / "y" / "c", "--allow", lake, "--into", "from/tree/x/y")
    assert one[-1] == "found 1: 1 already there"


def test_outside_of_roots(importing: Import, tmp_path: Path) -> None:
    """A table that lies in no root is skipped, and the report says which flag would help."""
    lance.write_dataset(rows(0, 2), str(tmp_path / "lake" / "a.lance"))
    for more in ([], ["--dry-run"]):
        told = importing.take(tmp_path / "lake", *more)
        assert f"--allow file://{tmp_path}/lake" in told[0]
        assert told[-1] == "found 1: 1 skipped"
    assert "no such file or directory" in "".join(importing.take(tmp_path / "none", code=1))


@pytest.fixture
def reference(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """The server that ships with pylance, on a directory catalog of its own, and its address."""
    root = tmp_path / "reference"
    command = [sys.executable, str(ROOT / "test" / "wire" / "reference.py"), str(root)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    assert child.stdout is not None
    yield root, child.stdout.readline().strip()
    child.stdin.close()
    child.stdout.close()
    child.wait(30)


def test_directory_catalog(importing: Import, reference: tuple[Path, str]) -> None:
    """A directory catalog with namespaces, as the reference server keeps it, is the same catalog afterwards."""
    root, url = reference
    theirs = connect("rest", {"uri": url})
    theirs.create_namespace(CreateNamespaceRequest(id=["a"], properties={"owner": "anna", "location": "nowhere"}))
    theirs.create_namespace(CreateNamespaceRequest(id=["a", "b"]))
    theirs.create_namespace(CreateNamespaceRequest(id=["void"]))
    for table in (["top"], ["a", "one"], ["a", "b", "two"]):
        lance.write_dataset(rows(0, 4), namespace_client=theirs, table_id=table)
        lance.write_dataset(rows(4, 4), mode="append", namespace_client=theirs, table_id=table)
    theirs.declare_table(DeclareTableRequest(id=["a", "later"], properties={"k": "v"}))
    make_table(root / "beside.lance")
    before = files(root)

    without = importing.run("import", root, "--allow", root, "--python", "no-such-python", code=1)
    assert "--python" in "".join(without)
    bare = importing.run("import", root, "--allow", root, "--python", "/usr/bin/false", code=1)
    assert "pylance could not read" in "".join(bare)
    assert importing.take(root, "--allow", root, "--dry-run")[-1] == "found 5: 4 would import, 1 would declare"
    assert importing.take(root, "--allow", root)[-1] == "found 5: 4 imported, 1 declared"
    assert importing.take(root, "--allow", root)[-1] == "found 5: 5 already there"
    assert files(root) == before

    server = importing.serve("--allow", root)
    ours = connect("rest", {"uri": server.url})
    for space in ([], ["a"], ["a", "b"], ["void"]):
        got = ours.list_tables(ListTablesRequest(id=space)).tables
        want = theirs.list_tables(ListTablesRequest(id=space)).tables
        assert sorted(got) == sorted({*want, "beside"} if not space else want)
        assert sorted(ours.list_namespaces(ListNamespacesRequest(id=space)).namespaces) == sorted(
            theirs.list_namespaces(ListNamespacesRequest(id=space)).namespaces
        )
    assert ours.describe_namespace(DescribeNamespaceRequest(id=["a"])).properties == {"owner": "anna"}
    assert ours.describe_table(DescribeTableRequest(id=["a", "later"])).properties == {"k": "v"}
    for table in (["top"], ["a", "one"], ["a", "b", "two"]):
        here = ours.describe_table(DescribeTableRequest(id=table)).location
        there = theirs.describe_table(DescribeTableRequest(id=table)).location
        assert str(here).removeprefix("file://") == str(there).removeprefix("file://")
        assert ids(lance.dataset(namespace_client=ours, table_id=table, version=1)) == list(range(4))
        assert ids(lance.dataset(namespace_client=ours, table_id=table)) == list(range(8))
    assert described(ours, ["beside"]) == ([1, 2, 3], [2, 3], {"first": 1}, ["trial"])
    lance.write_dataset(rows(0, 1), mode="append", namespace_client=ours, table_id=["a", "later"])
    assert server.stop() == 0


def test_through_a_server(importing: Import, tmp_path: Path) -> None:
    """With an address the import goes through a running server, which is told of tables while it serves."""
    lake = tmp_path / "lake"
    make_table(lake / "photos.lance")
    server = importing.serve("--allow", lake)
    assert "--uri" in "".join(importing.take(lake, "--allow", lake, code=1)), "the state is the server's"
    assert importing.take(lake, "--uri", server.url, "--dry-run")[-1] == "found 1: 1 would import"
    assert importing.take(lake, "--uri", server.url, "--into", "x")[-1] == "found 1: 1 imported"
    assert importing.take(lake, "--uri", server.url, "--into", "x")[-1] == "found 1: 1 already there"
    renamed = importing.take(lake, "--uri", server.url)
    assert renamed[-1] == "found 1: 1 skipped"
    assert "location of another table" in renamed[0]
    client = connect("rest", {"uri": server.url})
    assert described(client, ["x", "photos"]) == ([1, 2, 3], [2, 3], {"first": 1}, ["trial"])
    lance.write_dataset(rows(0, 1), str(tmp_path / "elsewhere" / "t.lance"))
    refused = importing.take(tmp_path / "elsewhere", "--uri", server.url)
    assert "outside the allowed roots" in refused[0]
    assert server.stop() == 0


def test_killed_in_the_middle(importing: Import, tmp_path: Path) -> None:
    """An import that is killed leaves whole tables behind, and the next one brings the rest."""
    lake = tmp_path / "lake"
    count = 400
    for i in range(count):
        lance.write_dataset(rows(i), str(lake / f"t{i}.lance"))
    command = [importing.binary, "import", lake, "--allow", lake, "--data", importing.data]
    # The report is longer than what the pipe holds, so that the import cannot end before it is killed.
    child = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True, pipesize=4096)
    assert child.stdout is not None
    for _ in range(20):
        assert child.stdout.readline().startswith("imported: ")
    child.kill()
    child.wait(30)
    child.stdout.close()
    there = importing.take(lake, "--allow", lake, "--dry-run")
    waiting = sum(line.startswith("would import") for line in there)
    assert 0 < waiting <= count - 20, "it was killed in the middle"
    assert importing.take(lake, "--allow", lake)[-1] == (f"found {count}: {waiting} imported, {count - waiting} already there")
    server = importing.serve("--allow", lake)
    client = connect("rest", {"uri": server.url})
    listed = client.list_tables(ListTablesRequest(id=[], limit=1000, include_declared=False)).tables
    assert sorted(listed) == sorted(f"t{i}" for i in range(count))
    assert all(ids(lance.dataset(namespace_client=client, table_id=[f"t{i}"])) == [i] for i in range(0, count, 37))
    assert server.stop() == 0


def test_export_and_import_again(importing: Import, binary: Path, tmp_path: Path) -> None:
    """A namespace written as a directory is what libraries open, and imported again it is the same namespace."""
    server = importing.serve()
    client = connect("rest", {"uri": server.url})
    client.create_namespace(CreateNamespaceRequest(id=["a"]))
    for table in (["one"], ["two"], ["strange name"], ["a", "three"]):
        lance.write_dataset(rows(0, 4), namespace_client=client, table_id=table)
        lance.write_dataset(rows(4, 4), mode="append", namespace_client=client, table_id=table)
    client.declare_table(DeclareTableRequest(id=["later"]))
    target = tmp_path / "listing"
    dry = importing.run("export-dir", target, "--dry-run")
    assert dry[-1] == "found 5: 2 would link, 3 skipped"
    assert not target.exists()
    told = importing.run("export-dir", target)
    assert told[-1] == "found 5: 2 linked, 3 skipped"
    left_out = {line.split(" at ")[0]: line for line in told if line.startswith("skipped")}
    assert "--from" in left_out["skipped: a/three"]
    assert "declared" in left_out["skipped: later"]
    assert "letters" in left_out["skipped: strange name"]
    assert importing.run("export-dir", target, "--uri", server.url)[-1] == "found 5: 2 already there, 3 skipped"
    assert importing.run("export-dir", tmp_path / "a", "--from", "a")[-1] == "found 1: 1 linked"
    (target / "two.lance").unlink()
    (target / "two.lance").mkdir()
    assert "something else" in "".join(importing.run("export-dir", target, "--quiet"))
    (target / "two.lance").rmdir()
    assert importing.run("export-dir", target)[-1] == "found 5: 1 linked, 1 already there, 3 skipped"

    database = lancedb.connect(target)
    assert sorted(database.list_tables().tables) == ["one", "two"]
    assert database.open_table("one").count_rows() == 8
    directory = connect("dir", {"root": str(target)})
    assert sorted(directory.list_tables(ListTablesRequest(id=[])).tables) == ["one", "two"]
    lance.write_dataset(rows(8, 4), str(target / "one.lance"), mode="append")
    assert ids(lance.dataset(namespace_client=client, table_id=["one"])) == list(range(12)), "it is one table"

    again = Import(binary, tmp_path / "again")
    tables = importing.data / "tables"
    assert again.take(target, "--allow", tables)[-1] == "found 2: 2 imported"
    other = again.serve("--allow", tables)
    theirs = connect("rest", {"uri": other.url})
    for name in ("one", "two"):
        here, there = (c.describe_table(DescribeTableRequest(id=[name])) for c in (client, theirs))
        assert here.location == there.location
        assert [v.version for v in client.list_table_versions(ListTableVersionsRequest(id=[name])).versions] == [
            v.version for v in theirs.list_table_versions(ListTableVersionsRequest(id=[name])).versions
        ]
    assert other.stop() == 0
    assert again.run("export-dir", target)[-1] == "found 2: 2 already there"
    assert server.stop() == 0


def test_export_of_imported_directory(importing: Import, tmp_path: Path) -> None:
    """A directory that was imported is its own listing."""
    lance.write_dataset(rows(0, 2), str(tmp_path / "lake" / "t.lance"))
    importing.take(tmp_path / "lake", "--allow", tmp_path / "lake")
    assert importing.run("export-dir", tmp_path / "lake")[-1] == "found 1: 1 already there"
    assert "inside the table" in "".join(importing.run("export-dir", tmp_path / "lake" / "t.lance" / "x"))
    assert "object store has no links" in "".join(importing.run("export-dir", "s3://bucket/prefix"))
