"""The life of one table under pylance: every kind of write, and every way to open what was written."""

from __future__ import annotations

import lance
import pyarrow as pa
import pytest
from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DeregisterTableRequest,
    DescribeTableRequest,
    DropTableRequest,
    ListTablesRequest,
    RegisterTableRequest,
    RenameTableRequest,
)
from lance_namespace.errors import TableAlreadyExistsError, TableNotFoundError, TableVersionNotFoundError

from lake import Lake, ids, rows


def test_create_append_overwrite(lake: Lake) -> None:
    created = lake.write("t", rows(0, 3), mode="create")
    assert (created.version, ids(created)) == (1, [0, 1, 2])

    appended = lake.write("t", rows(3, 2))
    assert (appended.version, ids(appended)) == (2, [0, 1, 2, 3, 4])

    replaced = lake.write("t", pa.table({"id": [9]}), mode="overwrite")
    assert (replaced.version, replaced.schema.names, ids(replaced)) == (3, ["id"], [9])

    assert lake.versions("t") == [1, 2, 3]
    assert ids(lake.open("t")) == [9]


def test_a_managed_table_says_so(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    described = lake.client.describe_table(DescribeTableRequest(id=lake.id("t")))
    assert described.managed_versioning is True
    assert lake.client.list_tables(ListTablesRequest(id=[lake.namespace])).tables == ["t"]


def test_create_refuses_a_name_that_is_taken(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    with pytest.raises(TableAlreadyExistsError, match="t"):
        lake.write("t", rows(1), mode="create")
    assert ids(lake.open("t")) == [0]


def test_a_missing_table_is_not_found(lake: Lake) -> None:
    with pytest.raises(TableNotFoundError, match="nowhere"):
        lake.open("nowhere")
    with pytest.raises(TableNotFoundError, match="nowhere"):
        lake.client.drop_table(DropTableRequest(id=lake.id("nowhere")))


def test_open_by_version(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    lake.write("t", rows(1))
    assert ids(lake.open("t", version=1)) == [0]
    assert ids(lake.open("t", version=2)) == [0, 1]
    with pytest.raises((TableVersionNotFoundError, ValueError, OSError), match="3"):
        lake.open("t", version=3)


def test_open_by_tag(lake: Lake) -> None:
    dataset = lake.write("t", rows(0), mode="create")
    dataset.tags.create("first", 1)
    lake.write("t", rows(1))
    assert ids(lake.open("t", version="first")) == [0]

    dataset.tags.update("first", 2)
    assert ids(lake.open("t", version="first")) == [0, 1]


def test_open_by_branch(lake: Lake) -> None:
    main = lake.write("t", rows(0), mode="create")
    lake.write("t", rows(1))
    branch = lake.open("t").create_branch("exp/one")
    branch.insert(rows(100))

    opened = lake.open("t").checkout_version(("exp/one", None))
    assert (opened.version, ids(opened)) == (3, [0, 1, 100])
    assert ids(lake.open("t").checkout_version(("exp/one", 2))) == [0, 1]
    assert lake.versions("t", branch="exp/one") == [2, 3]

    # Main goes its own way, with numbers of its own.
    lake.write("t", rows(2))
    assert (lake.versions("t"), ids(lake.open("t"))) == ([1, 2, 3], [0, 1, 2])

    # A tag on a branch opens that branch.
    main.tags.create("best", ("exp/one", 3))
    assert ids(lake.open("t", version="best")) == [0, 1, 100]


def test_a_branch_of_an_old_version(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    lake.write("t", rows(1))
    lake.open("t").create_branch("old", 1).insert(rows(50))
    assert ids(lake.open("t").checkout_version(("old", None))) == [0, 50]
    assert lake.versions("t", branch="old") == [1, 2]


def test_update_delete_merge(lake: Lake) -> None:
    dataset = lake.write("t", rows(0, 4), mode="create")
    dataset.update({"text": "'changed'"}, where="id = 1")
    dataset.delete("id = 2")
    stats = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(3, 2, text="merged"))
    assert (stats["num_updated_rows"], stats["num_inserted_rows"]) == (1, 1)

    got = {r["id"]: r["text"] for r in lake.open("t").to_table().to_pylist()}
    assert got == {0: "row 0", 1: "changed", 3: "merged 3", 4: "merged 4"}
    assert lake.versions("t") == [1, 2, 3, 4]


def test_columns_come_and_go(lake: Lake) -> None:
    dataset = lake.write("t", rows(0, 2), mode="create")
    dataset.add_columns({"twice": "id * 2"})
    dataset.alter_columns({"path": "text", "name": "words"})  # type: ignore[dict-item]
    dataset.drop_columns(["id"])
    opened = lake.open("t")
    assert opened.to_table().to_pydict() == {"words": ["row 0", "row 1"], "twice": [0, 2]}
    assert lake.versions("t") == [1, 2, 3, 4]


def test_restore(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    lake.write("t", rows(1))
    lake.open("t", version=1).restore()
    assert (lake.versions("t"), ids(lake.open("t"))) == ([1, 2, 3], [0])

    lake.write("t", rows(7))
    assert ids(lake.open("t")) == [0, 7]


def test_a_declared_table_has_a_place_and_no_version(lake: Lake) -> None:
    declared = lake.client.declare_table(DeclareTableRequest(id=lake.id("t")))
    assert declared.managed_versioning is True
    assert declared.location == lake.location("t")
    assert lake.versions("t") == []
    with pytest.raises(TableAlreadyExistsError):
        lake.client.declare_table(DeclareTableRequest(id=lake.id("t")))
    with pytest.raises((ValueError, OSError, TableNotFoundError)):
        lake.open("t")

    # A crashed create leaves this behind: an append finishes it.
    assert ids(lake.write("t", rows(0))) == [0]
    assert lake.versions("t") == [1]


def test_a_dropped_table_is_gone_and_its_name_free(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    before = lake.location("t")
    lake.client.drop_table(DropTableRequest(id=lake.id("t")))
    with pytest.raises(TableNotFoundError):
        lake.open("t")

    assert lake.write("t", rows(5), mode="create").version == 1
    assert lake.location("t") != before, "a new incarnation must have a directory of its own"
    assert ids(lake.open("t")) == [5]


def test_stable_row_ids(lake: Lake) -> None:
    dataset = lake.write("t", rows(0, 3), mode="create", enable_stable_row_ids=True)
    before = dict(zip(*dataset.to_table(columns=["id"], with_row_id=True).to_pydict().values(), strict=True))
    dataset.update({"text": "'changed'"}, where="id = 1")
    after = dict(zip(*lake.open("t").to_table(columns=["id"], with_row_id=True).to_pydict().values(), strict=True))
    assert after == before


def test_v1_manifest_names(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create", enable_v2_manifest_paths=False)
    lake.write("t", rows(1))
    assert lake.describe_version("t", 2)["manifest_path"].endswith("/_versions/2.manifest")
    assert ids(lake.open("t", version=1)) == [0]
    assert ids(lake.open("t")) == [0, 1]


def test_blank_space_in_a_name(lake: Lake) -> None:
    lake.write("a b+c", rows(0), mode="create")
    lake.write("a b+c", rows(1))
    assert ids(lake.open("a b+c")) == [0, 1]


def test_a_reader_sees_what_it_opened(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    reader = lake.open("t")
    lake.write("t", rows(1))
    assert ids(reader) == [0]
    reader.checkout_latest()
    assert ids(reader) == [0, 1]
    assert isinstance(reader, lance.LanceDataset)


def test_an_existing_dataset_is_registered_with_its_history(lake: Lake) -> None:
    lake.write("seed", rows(0), mode="create")
    location = f"{lake.location('seed').rpartition('/')[0]}/{lake.namespace}_elsewhere.lance"
    lance.write_dataset(rows(0), location)
    lance.write_dataset(rows(1), location, mode="append").tags.create("two", 2)

    lake.client.register_table(RegisterTableRequest(id=lake.id("t"), location=location))
    assert lake.versions("t") == [1, 2]
    assert ids(lake.open("t", version=1)) == [0]
    assert ids(lake.open("t", version="two")) == [0, 1]
    assert lake.write("t", rows(2)).version == 3

    # Deregistering forgets the name and leaves everything where it is.
    lake.client.deregister_table(DeregisterTableRequest(id=lake.id("t")))
    with pytest.raises(TableNotFoundError):
        lake.open("t")
    assert ids(lance.dataset(location)) == [0, 1, 2]
    lake.client.register_table(RegisterTableRequest(id=lake.id("again"), location=location))
    assert (lake.versions("again"), ids(lake.open("again"))) == ([1, 2, 3], [0, 1, 2])


def test_rename_moves_a_table_between_namespaces(lake: Lake) -> None:
    lake.write("t", rows(0), mode="create")
    other = [lake.namespace, "inner"]
    lake.client.create_namespace(CreateNamespaceRequest(id=other))
    opened = lake.open("t")
    lake.client.rename_table(RenameTableRequest(id=lake.id("t"), new_table_name="u", new_namespace_id=other))
    moved = lance.write_dataset(rows(1), mode="append", namespace_client=lake.client, table_id=[*other, "u"])
    assert (moved.version, ids(moved)) == (2, [0, 1])
    with pytest.raises(TableNotFoundError):
        lake.open("t")
    # What was opened under the old name can still be read.
    assert ids(opened) == [0]
