"""Give a directory catalog of the reference server more tables.

Usage: python grow.py ROOT NAMESPACE FIRST LAST

Adds the rows of tables FIRST to LAST-1 to the catalog at ROOT in one write: what as many declarations would have left in its
`__manifest` table, without the tables' directories. Through the server, ten thousand take minutes.
"""

import sys

import lance
import pyarrow as pa


def main() -> None:
    root, namespace = sys.argv[1:3]
    numbers = range(int(sys.argv[3]), int(sys.argv[4]))
    catalog = lance.dataset(f"{root}/__manifest")
    names = [f"{namespace}$t{i:07d}" for i in numbers]
    columns = {
        "object_id": names,
        "object_type": ["table"] * len(names),
        "location": [f"{i:08x}_{name}" for i, name in zip(numbers, names, strict=True)],
    }
    catalog.insert(
        pa.Table.from_arrays(
            [
                pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(len(names), field.type)
                for field in catalog.schema
            ],
            schema=catalog.schema,
        )
    )


if __name__ == "__main__":
    main()
