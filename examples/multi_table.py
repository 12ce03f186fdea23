"""Handwritten digits in three tables that must move together, filled and corrected by several writers at once.

Usage: python examples/multi_table.py [URL]        (needs a running server, lancerest and scikit-learn)
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import lancerest
import numpy as np
import pyarrow as pa
from sklearn.datasets import load_digits

WRITERS, BATCH = 4, 100
catalog = lancerest.connect(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:2333")
pixels, digits = load_digits(return_X_y=True)
IMAGES, LABELS, SPLIT = TABLES = ["digits_images", "digits_labels", "digits_split"]


def rows(ids: np.ndarray, edit: int, brightest: int = 16) -> list[pa.Table]:
    """The rows of some digits for each table. `edit` counts the corrections of a row and must agree across all three."""
    images = pa.FixedSizeListArray.from_arrays(pa.array((pixels[ids] * brightest / 16).ravel(), pa.float32()), 64)
    columns = {"image": images, "label": pa.array(digits[ids]), "part": pa.array(["train"] * len(ids), pa.string())}
    return [pa.table({"id": ids, "edit": np.full(len(ids), edit), name: values}) for name, values in columns.items()]


def fill(ids: np.ndarray) -> lancerest.Committed[list[None]]:
    return catalog.transaction(lambda tx: [tx.append(t, r) for t, r in zip(TABLES, rows(ids, edit=0), strict=True)])


def correct(ids: np.ndarray) -> lancerest.Committed[None]:
    these = f"id BETWEEN {ids[0]} AND {ids[-1]}"

    def change(tx: lancerest.Transaction) -> None:  # rescale the pixels to 0..1, give every fifth digit to the test set
        tx.merge_insert(IMAGES, on="id").when_matched_update_all().execute(rows(ids, edit=1, brightest=1)[0])
        for table in (LABELS, SPLIT):
            tx.update(table, {"edit": "edit + 1"}, where=these)
        tx.update(SPLIT, {"part": "'test'"}, where=f"{these} AND id % 5 = 0")

    return catalog.transaction(change, retries=200)


def look() -> int:
    """Open all three tables as of one moment and compare them row by row; return how many digits they hold."""
    states = [t.to_table(columns=["id", "edit"]).sort_by("id").combine_chunks() for t in catalog.snapshot(TABLES)]
    if not all(state.equals(states[0]) for state in states):
        sys.exit("The three tables are out of step.")
    return states[0].num_rows


catalog.transaction(lambda tx: [tx.create(t, r, mode="overwrite") for t, r in zip(TABLES, rows(np.arange(0), 0), strict=True)])
print(f"Three empty tables stand at {catalog.uri}: {', '.join(TABLES)}.")
batches = [np.arange(i, min(i + BATCH, len(digits))) for i in range(0, len(digits), BATCH)]
looks = 0
with ThreadPoolExecutor(WRITERS) as writers:
    for what, work in {"filled": fill, "corrected": correct}.items():
        jobs = [writers.submit(work, ids) for ids in batches]
        while not all(job.done() for job in jobs):
            looks += look() >= 0
        tries = sum(job.result().attempts for job in jobs)
        print(f"{WRITERS} writers {what} them in {len(jobs)} transactions of three tables each, in {tries} tries.")
print(f"A reader looked {looks} times meanwhile and never saw the three out of step.")
parts = catalog.open(SPLIT).to_table(columns=["part"]).column("part").value_counts().to_pylist()
print(f"They hold {look():,} digits now: " + ", ".join(f"{p['counts']:,} to {p['values']}" for p in parts) + ".")
