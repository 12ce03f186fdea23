package api

// TransactionStatus is how far a transaction has come. It is read in any case and with or without underscores.
type TransactionStatus string

// The states of a transaction.
const (
	TransactionQueued    TransactionStatus = "Queued"
	TransactionRunning   TransactionStatus = "Running"
	TransactionSucceeded TransactionStatus = "Succeeded"
	TransactionFailed    TransactionStatus = "Failed"
	TransactionCanceled  TransactionStatus = "Canceled"
)

// SetPropertyMode says what to do when the property is already there. It is read in any case.
type SetPropertyMode string

// The modes of setting a property; the first is the default.
const (
	SetPropertyOverwrite SetPropertyMode = "Overwrite"
	SetPropertyFail      SetPropertyMode = "Fail"
	SetPropertySkip      SetPropertyMode = "Skip"
)

// UnsetPropertyMode says what to do when the property is not there. It is read in any case.
type UnsetPropertyMode string

// The modes of removing a property; the first is the default.
const (
	UnsetPropertySkip UnsetPropertyMode = "Skip"
	UnsetPropertyFail UnsetPropertyMode = "Fail"
)

// DescribeTransactionRequest names a transaction by the id that an answer gave.
type DescribeTransactionRequest struct {
	Target
}

// DescribeTransactionResponse tells how far the transaction has come and what is known of it.
type DescribeTransactionResponse struct {
	Status     TransactionStatus `json:"status" required:"true"`
	Properties map[string]string `json:"properties,omitempty"`
	Context    map[string]string `json:"context,omitempty"`
}

// AlterTransactionRequest asks for one or more changes of a transaction, all or none.
type AlterTransactionRequest struct {
	Target
	Actions []AlterTransactionAction `json:"actions" required:"true"`
}

// AlterTransactionAction is one change: exactly one field is set. The names are in camel case, unlike all others.
type AlterTransactionAction struct {
	SetStatusAction     *AlterTransactionSetStatus     `json:"setStatusAction,omitempty"`
	SetPropertyAction   *AlterTransactionSetProperty   `json:"setPropertyAction,omitempty"`
	UnsetPropertyAction *AlterTransactionUnsetProperty `json:"unsetPropertyAction,omitempty"`
}

// AlterTransactionSetStatus sets the status.
type AlterTransactionSetStatus struct {
	Status *TransactionStatus `json:"status,omitempty"`
}

// AlterTransactionSetProperty sets a property.
type AlterTransactionSetProperty struct {
	Key   *string          `json:"key,omitempty"`
	Value *string          `json:"value,omitempty"`
	Mode  *SetPropertyMode `json:"mode,omitempty"`
}

// AlterTransactionUnsetProperty removes a property.
type AlterTransactionUnsetProperty struct {
	Key  *string            `json:"key,omitempty"`
	Mode *UnsetPropertyMode `json:"mode,omitempty"`
}

// AlterTransactionResponse is the state after the changes.
type AlterTransactionResponse struct {
	Status     TransactionStatus `json:"status" required:"true"`
	Properties map[string]string `json:"properties,omitempty"`
	Context    map[string]string `json:"context,omitempty"`
}
