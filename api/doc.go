// Package api is the wire: the request and response structs of the 54 operations of Lance Namespace REST 0.13.0, one file a
// noun, the error codes, and the one table of operations (Operations) that the router, the client and the published OpenAPI
// document are built from. It imports only the standard library and holds no rules: what an operation does is said in
// internal/catalog, and which HTTP status an error code has in internal/httpapi.
//
// # Where a field travels
//
// One struct describes a whole operation. A field's tags say where it travels:
//
//	json:"name"    in the JSON body
//	query:"name"   in the query string; a slice repeats the parameter, a map is one parameter holding a JSON object
//	path:"name"    in the path
//
// A field with two of them is accepted in both places: the query wins over the body, and a path that differs from the body is
// refused. The id of a request is in the path (joined by the delimiter) and, in JSON bodies, in the field id as well. The query
// parameter delimiter, which every operation takes, belongs to the transport and is no field.
//
// # Optional, required, empty
//
// An optional scalar is a pointer, nil when absent; null in a body means absent. A required field is plain, carries
// required:"true", and is always written. Clients refuse null where the specification requires a list or a map (client contract,
// fact 14), so whoever fills a response must set each required slice and map, to an empty one when there is nothing to say; the
// same holds for the properties of the two describe operations, where null would mean that properties are not supported.
//
// # Bare bodies
//
// A few operations do not send an object (client contract, facts 9 to 11). UpdateTableSchemaMetadata sends and answers the bare map;
// CountTableRows answers a number; ExplainTableQueryPlan and AnalyzeTableQueryPlan answer a string; their structs marshal to exactly
// that. CreateTable, InsertIntoTable and MergeInsertIntoTable send an Arrow stream (ArrowStream), QueryTable answers an Arrow file,
// and the two exists operations answer nothing.
package api
