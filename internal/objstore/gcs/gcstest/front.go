package gcstest

import (
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// serve hands a request to the emulator, and judges the condition of a removal first, in one step as seen by all other requests that change
// something.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	switch wanted := r.URL.Query().Get("ifGenerationMatch"); {
	case r.Method == http.MethodGet:
	case r.Method == http.MethodDelete && wanted != "":
		s.changes.Lock()
		defer s.changes.Unlock()
		there, err := s.generation(r)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway) // the emulator has ended
			return
		}
		if there != "" && there != wanted {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusPreconditionFailed)
			_, _ = w.Write([]byte(`{"error": {"code": 412, "message": "At least one of the pre-conditions you specified did not hold.", ` +
				`"errors": [{"message": "At least one of the pre-conditions you specified did not hold.", "domain": "global", "reason": "conditionNotMet"}]}}`))
			return
		}
	default:
		s.changes.RLock()
		defer s.changes.RUnlock()
	}
	s.proxy().ServeHTTP(w, r)
}

// proxy leads to the emulator, with the host that the client named.
func (s *Server) proxy() *httputil.ReverseProxy {
	bare, _ := url.Parse(s.Bare) // it is our own
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(bare)
			r.Out.Host = r.In.Host
		},
		// Without it a client that hangs up would be in the log.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
}

// generation is that of the object which a removal names; "" where there is none.
func (s *Server) generation(r *http.Request) (string, error) {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, s.Bare+r.URL.EscapedPath(), nil)
	if err != nil {
		return "", err
	}
	request.Host = r.Host
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound {
		return "", nil
	}
	var object struct{ Generation string }
	err = json.NewDecoder(answer.Body).Decode(&object)
	return object.Generation, err
}
