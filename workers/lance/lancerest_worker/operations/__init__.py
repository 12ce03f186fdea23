"""The operations, by their names in the specification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ..request import Request
from . import backfill, branches, columns, data, indices, metadata, query, views

Operation = Callable[[Request], "dict[str, Any] | int | str | pa.RecordBatchReader"]

OPERATIONS: dict[str, Operation] = {
    "CreateTable": data.create,
    "InsertIntoTable": data.insert,
    "MergeInsertIntoTable": data.merge_insert,
    "UpdateTable": data.update,
    "DeleteFromTable": data.delete,
    "CountTableRows": data.count,
    "RestoreTable": data.restore,
    "QueryTable": query.query,
    "ExplainTableQueryPlan": query.explain,
    "AnalyzeTableQueryPlan": query.analyze,
    "CreateTableIndex": indices.create,
    "CreateTableScalarIndex": indices.create_scalar,
    "DropTableIndex": indices.drop,
    "AlterTableAddColumns": columns.add,
    "AlterTableBackfillColumns": backfill.backfill,
    "AlterTableAlterColumns": columns.alter,
    "AlterTableDropColumns": columns.drop,
    "UpdateTableSchemaMetadata": metadata.update_schema,
    "UpdateFieldMetadata": metadata.update_fields,
    "CreateMaterializedView": views.create,
    "RefreshMaterializedView": views.refresh,
    "CreateTableBranch": branches.create,
    "DeleteTableBranch": branches.delete,
}
