package api

import "slices"

// BodyKind says what the body of a request is.
type BodyKind int

// The kinds of body. A request without a body may carry one all the same, which is ignored (client contract, fact 7).
const (
	NoBody           BodyKind = iota // none; the request's fields are in path and query
	JSONBody                         // the request struct as JSON
	OptionalJSONBody                 // the same, or nothing
	ArrowBody                        // an Arrow IPC stream, in the embedded ArrowStream
)

// ReturnKind says what the body of a successful answer is.
type ReturnKind int

// The kinds of answer.
const (
	ReturnsJSON    ReturnKind = iota // the response struct as JSON
	ReturnsNothing                   // no body: the status says all
	ReturnsArrow                     // an Arrow IPC file, in QueryTableResponse.Data
)

// Media types of the bodies.
const (
	JSONType        = "application/json"
	ArrowStreamType = "application/vnd.apache.arrow.stream"
	ArrowFileType   = "application/vnd.apache.arrow.file"
)

// Operation is one operation as data: a row of the one table that the router, the client and the published document are built from.
type Operation struct {
	Name    string // as in the specification, unique
	Method  string // GET or POST
	Path    string // with {id} and {index_name}, each a single segment
	Success int    // the status of success
	// Query lists the parameters beside delimiter, which every operation takes; each is a field of Request with that query tag.
	Query   []string
	Body    BodyKind
	Returns ReturnKind
	// Request and Response are zero values of the structs, for reflection.
	Request, Response any
	// Codes are the error codes that the operation may answer, in ascending order, those common to all operations included.
	Codes []Code
}

// Operations returns the 54 operations in the order of the specification. The slice and all in it is new at each call.
func Operations() []Operation {
	all := slices.Concat(
		catalogOperations(), versionOperations(), columnOperations(), dataOperations(), structureOperations(), referenceOperations(),
	)
	for i := range all {
		all[i].Codes = append(commonCodes(), all[i].Codes...)
		slices.Sort(all[i].Codes)
	}
	return all
}

// commonCodes are the codes that any operation may answer.
func commonCodes() []Code {
	return []Code{
		CodeUnsupported, CodeInvalidInput, CodePermissionDenied, CodeUnauthenticated, CodeServiceUnavailable, CodeInternal, CodeThrottling,
	}
}

// catalogOperations are those on names: of namespaces and of tables.
func catalogOperations() []Operation {
	return []Operation{
		{
			Name: "CreateNamespace", Method: "POST", Path: "/v1/namespace/{id}/create", Success: 200,
			Body: JSONBody, Request: CreateNamespaceRequest{}, Response: CreateNamespaceResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeNamespaceAlreadyExists, CodeConcurrentModification, CodeNamespaceNotEmpty},
		},
		{
			Name: "ListNamespaces", Method: "GET", Path: "/v1/namespace/{id}/list", Success: 200,
			Query:   []string{"limit", "page_token"},
			Request: ListNamespacesRequest{}, Response: ListNamespacesResponse{},
			Codes: []Code{CodeNamespaceNotFound},
		},
		{
			Name: "DescribeNamespace", Method: "POST", Path: "/v1/namespace/{id}/describe", Success: 200,
			Body: JSONBody, Request: DescribeNamespaceRequest{}, Response: DescribeNamespaceResponse{},
			Codes: []Code{CodeNamespaceNotFound},
		},
		{
			Name: "DropNamespace", Method: "POST", Path: "/v1/namespace/{id}/drop", Success: 200,
			Body: JSONBody, Request: DropNamespaceRequest{}, Response: DropNamespaceResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeNamespaceNotEmpty, CodeConcurrentModification, CodeInvalidTableState},
		},
		{
			Name: "NamespaceExists", Method: "POST", Path: "/v1/namespace/{id}/exists", Success: 200,
			Body: JSONBody, Returns: ReturnsNothing, Request: NamespaceExistsRequest{}, Response: NamespaceExistsResponse{},
			Codes: []Code{CodeNamespaceNotFound},
		},
		{
			Name: "ListTables", Method: "GET", Path: "/v1/namespace/{id}/table/list", Success: 200,
			Query:   []string{"include_declared", "limit", "page_token"},
			Request: ListTablesRequest{}, Response: ListTablesResponse{},
			Codes: []Code{CodeNamespaceNotFound},
		},
		{
			Name: "ListAllTables", Method: "GET", Path: "/v1/table", Success: 200,
			Query:   []string{"include_declared", "limit", "page_token"},
			Request: ListTablesRequest{}, Response: ListTablesResponse{},
		},
		{
			Name: "RegisterTable", Method: "POST", Path: "/v1/table/{id}/register", Success: 200,
			Body: JSONBody, Request: RegisterTableRequest{}, Response: RegisterTableResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableAlreadyExists, CodeConcurrentModification},
		},
		{
			Name: "DescribeTable", Method: "POST", Path: "/v1/table/{id}/describe", Success: 200,
			Query: []string{"check_declared", "load_detailed_metadata", "with_table_uri"},
			Body:  JSONBody, Request: DescribeTableRequest{}, Response: DescribeTableResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableNotFound, CodeTableTagNotFound, CodeTableVersionNotFound, CodeInvalidTableState, CodeTableBranchNotFound},
		},
		{
			Name: "TableExists", Method: "POST", Path: "/v1/table/{id}/exists", Success: 200,
			Body: JSONBody, Returns: ReturnsNothing, Request: TableExistsRequest{}, Response: TableExistsResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableNotFound, CodeTableVersionNotFound},
		},
		{
			Name: "DropTable", Method: "POST", Path: "/v1/table/{id}/drop", Success: 200,
			Request: DropTableRequest{}, Response: DropTableResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableNotFound, CodeInvalidTableState},
		},
		{
			Name: "DeregisterTable", Method: "POST", Path: "/v1/table/{id}/deregister", Success: 200,
			Body: JSONBody, Request: DeregisterTableRequest{}, Response: DeregisterTableResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableNotFound},
		},
	}
}

// versionOperations are those on the versions and the whole of a table, alone and in batches.
func versionOperations() []Operation {
	return []Operation{
		{
			Name: "RestoreTable", Method: "POST", Path: "/v1/table/{id}/restore", Success: 200,
			Body: JSONBody, Request: RestoreTableRequest{}, Response: RestoreTableResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeTableVersionNotFound, CodeConcurrentModification,
				CodeTableBranchNotFound,
			},
		},
		{
			Name: "RenameTable", Method: "POST", Path: "/v1/table/{id}/rename", Success: 200,
			Body: JSONBody, Request: RenameTableRequest{}, Response: RenameTableResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableNotFound, CodeTableAlreadyExists, CodeConcurrentModification},
		},
		{
			Name: "UpdateTableSchemaMetadata", Method: "POST", Path: "/v1/table/{id}/schema_metadata/update", Success: 200,
			Query: []string{"branch"},
			Body:  JSONBody, Request: UpdateTableSchemaMetadataRequest{}, Response: UpdateTableSchemaMetadataResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableNotFound, CodeConcurrentModification, CodeTableBranchNotFound},
		},
		{
			Name: "ListTableVersions", Method: "POST", Path: "/v1/table/{id}/version/list", Success: 200,
			Query:   []string{"branch", "descending", "limit", "page_token"},
			Request: ListTableVersionsRequest{}, Response: ListTableVersionsResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableNotFound, CodeTableBranchNotFound},
		},
		{
			Name: "CreateTableVersion", Method: "POST", Path: "/v1/table/{id}/version/create", Success: 200,
			Body: JSONBody, Request: CreateTableVersionRequest{}, Response: CreateTableVersionResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeConcurrentModification, CodeInvalidTableState,
				CodeTableBranchNotFound,
			},
		},
		{
			Name: "DescribeTableVersion", Method: "POST", Path: "/v1/table/{id}/version/describe", Success: 200,
			Body: JSONBody, Request: DescribeTableVersionRequest{}, Response: DescribeTableVersionResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableNotFound, CodeTableVersionNotFound, CodeTableBranchNotFound},
		},
		{
			Name: "BatchDeleteTableVersions", Method: "POST", Path: "/v1/table/{id}/version/delete", Success: 200,
			Body: JSONBody, Request: BatchDeleteTableVersionsRequest{}, Response: BatchDeleteTableVersionsResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeConcurrentModification, CodeTableBranchNotFound,
				CodeInvalidTableState,
			},
		},
		{
			Name: "BatchCreateTableVersions", Method: "POST", Path: "/v1/table/version/batch-create", Success: 200,
			Body: JSONBody, Request: BatchCreateTableVersionsRequest{}, Response: BatchCreateTableVersionsResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeConcurrentModification, CodeInvalidTableState,
				CodeTableBranchNotFound,
			},
		},
		{
			Name: "BatchCommitTables", Method: "POST", Path: "/v1/table/batch-commit", Success: 200,
			Body: JSONBody, Request: BatchCommitTablesRequest{}, Response: BatchCommitTablesResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeTableAlreadyExists, CodeConcurrentModification,
				CodeInvalidTableState, CodeTableBranchNotFound,
			},
		},
	}
}

// columnOperations are those on the columns of a table.
func columnOperations() []Operation {
	return []Operation{
		{
			Name: "AlterTableAlterColumns", Method: "POST", Path: "/v1/table/{id}/alter_columns", Success: 200,
			Body: JSONBody, Request: AlterTableAlterColumnsRequest{}, Response: AlterTableAlterColumnsResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeTableColumnNotFound, CodeConcurrentModification,
				CodeTableSchemaValidationError, CodeTableBranchNotFound,
			},
		},
		{
			Name: "UpdateFieldMetadata", Method: "POST", Path: "/v1/table/{id}/update_field_metadata", Success: 200,
			Body: JSONBody, Request: UpdateFieldMetadataRequest{}, Response: UpdateFieldMetadataResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeTableColumnNotFound, CodeConcurrentModification,
				CodeTableBranchNotFound,
			},
		},
		{
			Name: "AlterTableDropColumns", Method: "POST", Path: "/v1/table/{id}/drop_columns", Success: 200,
			Body: JSONBody, Request: AlterTableDropColumnsRequest{}, Response: AlterTableDropColumnsResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeTableColumnNotFound, CodeConcurrentModification,
				CodeTableBranchNotFound,
			},
		},
		{
			Name: "GetTableStats", Method: "POST", Path: "/v1/table/{id}/stats", Success: 200,
			Body: JSONBody, Request: GetTableStatsRequest{}, Response: GetTableStatsResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableNotFound, CodeInvalidTableState, CodeTableBranchNotFound},
		},
	}
}

// dataOperations are those that write, read and measure the rows of a table.
func dataOperations() []Operation {
	return []Operation{
		{
			Name: "InsertIntoTable", Method: "POST", Path: "/v1/table/{id}/insert", Success: 200,
			Query: []string{"branch", "mode"},
			Body:  ArrowBody, Request: InsertIntoTableRequest{}, Response: InsertIntoTableResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeConcurrentModification, CodeInvalidTableState,
				CodeTableSchemaValidationError, CodeTableBranchNotFound,
			},
		},
		{
			Name: "MergeInsertIntoTable", Method: "POST", Path: "/v1/table/{id}/merge_insert", Success: 200,
			Query: []string{
				"branch", "on", "timeout",
				"use_index", "when_matched_update_all", "when_matched_update_all_filt",
				"when_not_matched_by_source_delete", "when_not_matched_by_source_delete_filt", "when_not_matched_insert_all",
			},
			Body: ArrowBody, Request: MergeInsertIntoTableRequest{}, Response: MergeInsertIntoTableResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeTableColumnNotFound, CodeConcurrentModification,
				CodeInvalidTableState, CodeTableSchemaValidationError, CodeTableBranchNotFound,
			},
		},
		{
			Name: "UpdateTable", Method: "POST", Path: "/v1/table/{id}/update", Success: 200,
			Body: JSONBody, Request: UpdateTableRequest{}, Response: UpdateTableResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeTableColumnNotFound, CodeConcurrentModification,
				CodeInvalidTableState, CodeTableBranchNotFound,
			},
		},
		{
			Name: "DeleteFromTable", Method: "POST", Path: "/v1/table/{id}/delete", Success: 200,
			Body: JSONBody, Request: DeleteFromTableRequest{}, Response: DeleteFromTableResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeConcurrentModification, CodeInvalidTableState,
				CodeTableBranchNotFound,
			},
		},
		{
			Name: "QueryTable", Method: "POST", Path: "/v1/table/{id}/query", Success: 200,
			Body: JSONBody, Returns: ReturnsArrow, Request: QueryTableRequest{}, Response: QueryTableResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeTableVersionNotFound, CodeTableColumnNotFound,
				CodeTableBranchNotFound,
			},
		},
		{
			Name: "CountTableRows", Method: "POST", Path: "/v1/table/{id}/count_rows", Success: 200,
			Body: JSONBody, Request: CountTableRowsRequest{}, Response: CountTableRowsResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableNotFound, CodeTableVersionNotFound, CodeInvalidTableState, CodeTableBranchNotFound},
		},
		{
			Name: "CreateTable", Method: "POST", Path: "/v1/table/{id}/create", Success: 200,
			Query: []string{"mode", "properties", "storage_options"},
			Body:  ArrowBody, Request: CreateTableRequest{}, Response: CreateTableResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableAlreadyExists, CodeConcurrentModification, CodeTableSchemaValidationError},
		},
		{
			Name: "ExplainTableQueryPlan", Method: "POST", Path: "/v1/table/{id}/explain_plan", Success: 200,
			Body: JSONBody, Request: ExplainTableQueryPlanRequest{}, Response: ExplainTableQueryPlanResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeTableVersionNotFound, CodeTableColumnNotFound,
				CodeTableBranchNotFound,
			},
		},
		{
			Name: "AnalyzeTableQueryPlan", Method: "POST", Path: "/v1/table/{id}/analyze_plan", Success: 200,
			Body: JSONBody, Request: AnalyzeTableQueryPlanRequest{}, Response: AnalyzeTableQueryPlanResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeTableVersionNotFound, CodeTableColumnNotFound,
				CodeTableBranchNotFound,
			},
		},
	}
}

// structureOperations are those on added columns, views and indices.
func structureOperations() []Operation {
	return []Operation{
		{
			Name: "AlterTableAddColumns", Method: "POST", Path: "/v1/table/{id}/add_columns", Success: 200,
			Body: JSONBody, Request: AlterTableAddColumnsRequest{}, Response: AlterTableAddColumnsResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeConcurrentModification, CodeTableSchemaValidationError,
				CodeTableBranchNotFound,
			},
		},
		{
			Name: "AlterTableBackfillColumns", Method: "POST", Path: "/v1/table/{id}/backfill_column", Success: 202,
			Body: JSONBody, Request: AlterTableBackfillColumnsRequest{}, Response: AlterTableBackfillColumnsResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableNotFound, CodeTableColumnNotFound},
		},
		{
			Name: "RefreshMaterializedView", Method: "POST", Path: "/v1/materialized_view/{id}/refresh", Success: 202,
			Body: OptionalJSONBody, Request: RefreshMaterializedViewRequest{}, Response: RefreshMaterializedViewResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableNotFound},
		},
		{
			Name: "CreateMaterializedView", Method: "POST", Path: "/v1/materialized_view/{id}/create", Success: 201,
			Body: JSONBody, Request: CreateMaterializedViewRequest{}, Response: CreateMaterializedViewResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableAlreadyExists},
		},
		{
			Name: "CreateTableIndex", Method: "POST", Path: "/v1/table/{id}/create_index", Success: 200,
			Body: JSONBody, Request: CreateTableIndexRequest{}, Response: CreateTableIndexResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeTableIndexAlreadyExists, CodeTableColumnNotFound,
				CodeConcurrentModification, CodeTableBranchNotFound,
			},
		},
		{
			Name: "CreateTableScalarIndex", Method: "POST", Path: "/v1/table/{id}/create_scalar_index", Success: 200,
			Body: JSONBody, Request: CreateTableIndexRequest{}, Response: CreateTableScalarIndexResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeTableIndexAlreadyExists, CodeTableColumnNotFound,
				CodeConcurrentModification, CodeTableBranchNotFound,
			},
		},
		{
			Name: "ListTableIndices", Method: "POST", Path: "/v1/table/{id}/index/list", Success: 200,
			Body: JSONBody, Request: ListTableIndicesRequest{}, Response: ListTableIndicesResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableNotFound, CodeTableVersionNotFound, CodeInvalidTableState, CodeTableBranchNotFound},
		},
		{
			Name: "DescribeTableIndexStats", Method: "POST", Path: "/v1/table/{id}/index/{index_name}/stats", Success: 200,
			Body: JSONBody, Request: DescribeTableIndexStatsRequest{}, Response: DescribeTableIndexStatsResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeTableIndexNotFound, CodeTableVersionNotFound, CodeInvalidTableState,
				CodeTableBranchNotFound,
			},
		},
		{
			Name: "DropTableIndex", Method: "POST", Path: "/v1/table/{id}/index/{index_name}/drop", Success: 200,
			Query:   []string{"branch"},
			Request: DropTableIndexRequest{}, Response: DropTableIndexResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeTableIndexNotFound, CodeConcurrentModification,
				CodeTableBranchNotFound,
			},
		},
	}
}

// referenceOperations are those on tags, branches and transactions, and DeclareTable, which the specification lists among them.
func referenceOperations() []Operation {
	return []Operation{
		{
			Name: "ListTableTags", Method: "POST", Path: "/v1/table/{id}/tags/list", Success: 200,
			Query:   []string{"limit", "page_token"},
			Request: ListTableTagsRequest{}, Response: ListTableTagsResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableNotFound, CodeInvalidTableState},
		},
		{
			Name: "GetTableTagVersion", Method: "POST", Path: "/v1/table/{id}/tags/version", Success: 200,
			Body: JSONBody, Request: GetTableTagVersionRequest{}, Response: GetTableTagVersionResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableNotFound, CodeTableTagNotFound, CodeInvalidTableState},
		},
		{
			Name: "DeclareTable", Method: "POST", Path: "/v1/table/{id}/declare", Success: 200,
			Body: JSONBody, Request: DeclareTableRequest{}, Response: DeclareTableResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableAlreadyExists, CodeConcurrentModification, CodeInvalidTableState},
		},
		{
			Name: "CreateTableTag", Method: "POST", Path: "/v1/table/{id}/tags/create", Success: 200,
			Body: JSONBody, Request: CreateTableTagRequest{}, Response: CreateTableTagResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeTableTagAlreadyExists, CodeTableVersionNotFound,
				CodeConcurrentModification, CodeTableBranchNotFound,
			},
		},
		{
			Name: "DeleteTableTag", Method: "POST", Path: "/v1/table/{id}/tags/delete", Success: 200,
			Body: JSONBody, Request: DeleteTableTagRequest{}, Response: DeleteTableTagResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableNotFound, CodeTableTagNotFound},
		},
		{
			Name: "UpdateTableTag", Method: "POST", Path: "/v1/table/{id}/tags/update", Success: 200,
			Body: JSONBody, Request: UpdateTableTagRequest{}, Response: UpdateTableTagResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeTableTagNotFound, CodeTableVersionNotFound,
				CodeConcurrentModification, CodeTableBranchNotFound,
			},
		},
		{
			Name: "ListTableBranches", Method: "POST", Path: "/v1/table/{id}/branches/list", Success: 200,
			Query:   []string{"limit", "page_token"},
			Request: ListTableBranchesRequest{}, Response: ListTableBranchesResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableNotFound, CodeInvalidTableState},
		},
		{
			Name: "CreateTableBranch", Method: "POST", Path: "/v1/table/{id}/branches/create", Success: 200,
			Body: JSONBody, Request: CreateTableBranchRequest{}, Response: CreateTableBranchResponse{},
			Codes: []Code{
				CodeNamespaceNotFound, CodeTableNotFound, CodeTableVersionNotFound, CodeConcurrentModification,
				CodeTableBranchNotFound, CodeTableBranchAlreadyExists,
			},
		},
		{
			Name: "DeleteTableBranch", Method: "POST", Path: "/v1/table/{id}/branches/delete", Success: 200,
			Body: JSONBody, Request: DeleteTableBranchRequest{}, Response: DeleteTableBranchResponse{},
			Codes: []Code{CodeNamespaceNotFound, CodeTableNotFound, CodeConcurrentModification, CodeTableBranchNotFound},
		},
		{
			Name: "DescribeTransaction", Method: "POST", Path: "/v1/transaction/{id}/describe", Success: 200,
			Body: JSONBody, Request: DescribeTransactionRequest{}, Response: DescribeTransactionResponse{},
			Codes: []Code{CodeTransactionNotFound, CodeInvalidTableState},
		},
		{
			Name: "AlterTransaction", Method: "POST", Path: "/v1/transaction/{id}/alter", Success: 200,
			Body: JSONBody, Request: AlterTransactionRequest{}, Response: AlterTransactionResponse{},
			Codes: []Code{CodeTransactionNotFound, CodeConcurrentModification, CodeInvalidTableState},
		},
	}
}
