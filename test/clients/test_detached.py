"""Detached versions by hand: commit, find again by number, build upon, and attach in one batch."""

from __future__ import annotations

import posixpath

import lance
import pytest
from lance import LanceOperation
from lance.fragment import write_fragments

from lake import Lake, ids, rows


def append_detached(dataset: lance.LanceDataset, first: int) -> lance.LanceDataset:
    """Commit one row detached, through whatever the dataset was opened with."""
    fragments = write_fragments(rows(first), dataset)
    transaction = lance.Transaction(dataset.version, LanceOperation.Append(fragments))
    return lance.LanceDataset.commit(dataset, transaction, detached=True)


def wire_number(dataset: lance.LanceDataset) -> int:
    """Return the number of a detached version as it travels: the u64 read as int64."""
    assert dataset.version >= 2**63
    return dataset.version - 2**64


def detached_path(lake: Lake, name: str, detached: lance.LanceDataset) -> str:
    """Return the store-relative path of a detached manifest of a table's main branch."""
    head = lake.describe_version(name, lake.versions(name)[-1])["manifest_path"]
    return f"{posixpath.dirname(head)}/d{detached.version}.manifest"


def test_a_detached_version_is_found_by_number_and_never_listed(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    first = append_detached(lake.open("t"), 1)
    second = append_detached(first, 2)
    assert (ids(first), ids(second)) == ([0, 1], [0, 1, 2])

    # A client that knows nothing but the number.
    assert ids(lake.open("t", version=second.version)) == [0, 1, 2]
    status, answer = lake.post(
        f"/v1/table/{lake.namespace}%24t/version/describe", {"id": lake.id("t"), "version": wire_number(second)}
    )
    assert status == 200, answer
    assert answer["version"]["manifest_path"].endswith(f"/_versions/d{second.version}.manifest")

    assert lake.versions("t") == [1]
    assert (lake.open("t").version, ids(lake.open("t"))) == (1, [0])
    assert lake.write("t", rows(7)).version == 2


def test_an_unknown_detached_number_is_not_found(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    status, answer = lake.post(f"/v1/table/{lake.namespace}%24t/version/describe", {"version": -(2**63) + 12345})
    assert (status, answer["code"]) == (404, 11)


def test_detached_versions_of_two_tables_are_attached_in_one_batch(lake: Lake) -> None:
    lake.write("a", rows(0), mode="create")
    lake.write("b", rows(0), mode="create")
    a = append_detached(lake.open("a"), 1)
    upon_a = append_detached(a, 2)
    b = append_detached(lake.open("b"), 3)
    entries = [
        {"id": lake.id("a"), "version": 2, "manifest_path": detached_path(lake, "a", a)},
        {"id": lake.id("a"), "version": 3, "manifest_path": detached_path(lake, "a", upon_a)},
        {"id": lake.id("b"), "version": 2, "manifest_path": detached_path(lake, "b", b)},
    ]
    status, answer = lake.post("/v1/table/version/batch-create", {"entries": entries})
    assert status == 200, answer
    assert [v["version"] for v in answer["versions"]] == [2, 3, 2]

    opened = lake.open("a")
    assert (opened.version, ids(opened), ids(lake.open("b"))) == (3, [0, 1, 2], [0, 3])
    assert ids(lake.open("a", version=2)) == [0, 1]
    opened.validate()

    # An attached version is a version like any other.
    opened.insert(rows(5))
    opened.create_scalar_index("id", "BTREE")
    assert (lake.versions("a"), ids(lake.open("a"))) == ([1, 2, 3, 4, 5], [0, 1, 2, 5])

    status, again = lake.post("/v1/table/version/batch-create", {"entries": entries})
    assert (status, again["versions"], again["transaction_id"]) == (200, answer["versions"], answer["transaction_id"])


def test_the_last_of_several_detached_versions_hides_none_of_them(lake: Lake) -> None:
    """Attached alone it carries the changes of all; a writer that began earlier must not undo the one it cannot see."""
    stale = lake.write("t", rows(0, 4), mode="create")
    fragment = stale.get_fragments()[0].delete("id = 1")
    assert fragment is not None
    deletion = lance.Transaction(1, LanceOperation.Delete([fragment], [], "id = 1"))
    last = append_detached(lance.LanceDataset.commit(stale, deletion, detached=True), 9)
    entry = {"id": lake.id("t"), "version": 2, "manifest_path": detached_path(lake, "t", last)}
    status, answer = lake.post("/v1/table/version/batch-create", {"entries": [entry]})
    assert status == 200, answer
    assert ids(lake.open("t")) == [0, 2, 3, 9]

    other = stale.get_fragments()[0].delete("id = 2")
    assert other is not None
    with pytest.raises(OSError, match="onflict"):
        lance.LanceDataset.commit(stale, LanceOperation.Delete([other], [], "id = 2"), read_version=1)
    assert ids(lake.open("t")) == [0, 2, 3, 9]
    lake.open("t").delete("id = 2")
    assert ids(lake.open("t")) == [0, 3, 9]


def test_a_batch_with_one_stale_entry_changes_nothing(lake: Lake) -> None:
    lake.write("a", rows(0), mode="create")
    lake.write("b", rows(0), mode="create")
    a, b = append_detached(lake.open("a"), 1), append_detached(lake.open("b"), 1)
    lake.write("b", rows(2))
    status, answer = lake.post(
        "/v1/table/version/batch-create",
        {
            "entries": [
                {"id": lake.id("a"), "version": 2, "manifest_path": detached_path(lake, "a", a)},
                {"id": lake.id("b"), "version": 2, "manifest_path": detached_path(lake, "b", b)},
            ]
        },
    )
    assert (status, answer["code"]) == (409, 14)
    assert "b" in answer["error"]
    assert lake.versions("a") == [1]
    assert (lake.versions("b"), ids(lake.open("b"))) == ([1, 2], [0, 2])


def test_a_detached_manifest_of_another_table_is_refused(lake: Lake) -> None:
    lake.write("a", rows(0), mode="create")
    lake.write("b", rows(0), mode="create")
    stray = append_detached(lake.open("b"), 1)
    entry = {"id": lake.id("a"), "version": 2, "manifest_path": detached_path(lake, "b", stray)}
    status, answer = lake.post("/v1/table/version/batch-create", {"entries": [entry]})
    assert (status, answer["code"]) == (400, 13)
    assert lake.versions("a") == [1]


@pytest.mark.parametrize("mode", ["overwrite", "delete", "merge"])
def test_what_else_can_be_detached(lake: Lake, mode: str) -> None:
    lake.write("t", rows(0, 3), mode="create")
    dataset = lake.open("t")
    if mode == "overwrite":
        change = lance.Transaction(
            1, LanceOperation.Overwrite(rows(0).schema, write_fragments(rows(8), dataset, mode="overwrite"))
        )
        wanted = [8]
    elif mode == "delete":
        fragment = dataset.get_fragments()[0].delete("id = 1")
        assert fragment is not None
        change = lance.Transaction(1, LanceOperation.Delete([fragment], [], "id = 1"))
        wanted = [0, 2]
    else:
        change, _ = dataset.merge_insert("id").when_not_matched_insert_all().execute_uncommitted(rows(2, 2))
        wanted = [0, 1, 2, 3]
    detached = lance.LanceDataset.commit(dataset, change, detached=True)
    entry = {"id": lake.id("t"), "version": 2, "manifest_path": detached_path(lake, "t", detached)}
    status, answer = lake.post("/v1/table/version/batch-create", {"entries": [entry]})
    assert status == 200, answer
    assert ids(lake.open("t")) == wanted
