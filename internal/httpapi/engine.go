package httpapi

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/lancerest/lancerest/api"
)

// engineHeader carries Options.EngineToken.
const engineHeader = "X-Lancerest-Engine-Token"

// fromEngine reports whether a request is the engine's own, part of an operation that is under way.
func (h *Handler) fromEngine(r *http.Request) bool {
	given := r.Header.Get(engineHeader)
	return h.opts.EngineToken != "" && subtle.ConstantTimeCompare([]byte(given), []byte(h.opts.EngineToken)) == 1
}

// asCloud gives an error the status by which LanceDB's remote SDK knows it: it reads no codes. There a table that exists already is 400 with
// these words in its text, and 404 means that the table is missing, whatever else is (client contract, fact 93).
func asCloud(d dialect, err error) error {
	var e *api.Error
	if !d.cloud || !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case api.CodeTableAlreadyExists, api.CodeTableColumnNotFound:
		return &edgeError{shown: e, status: http.StatusBadRequest}
	}
	return err
}

// sendRows writes rows as they come. Once that has begun an error can only be shown by breaking off.
func sendRows(w http.ResponseWriter, rows *api.QueryTableResponse, a *answer) error {
	defer rows.Data.Close()
	w.Header().Set("X-Request-Id", a.request)
	w.Header().Set("Content-Type", api.ArrowFileType)
	w.WriteHeader(http.StatusOK)
	a.status, a.sent = http.StatusOK, true
	if _, err := io.Copy(w, rows.Data); err != nil {
		a.broken = true
		return fmt.Errorf("send rows: %w", err)
	}
	return nil
}
