package gcstest

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
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
	if r.Method == http.MethodPut && !strings.HasPrefix(r.URL.Path, "/storage/") && !strings.HasPrefix(r.URL.Path, "/upload/") {
		if err := toJSON(r); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
	}
	s.proxy().ServeHTTP(w, r)
}

// toJSON turns an upload by the XML API, which Lance's clients speak and which the emulator does not take, into one by the JSON API. Uploads in
// parts stay as they are, and are refused.
func toJSON(r *http.Request) error {
	bucket, object, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	bucket, bucketErr := url.PathUnescape(bucket)
	object, objectErr := url.PathUnescape(object)
	if err := errors.Join(bucketErr, objectErr); err != nil || r.URL.RawQuery != "" {
		return errors.Join(err, errors.New("this is no upload in one request"))
	}
	query := url.Values{"uploadType": {"media"}, "name": {object}}
	if generation := r.Header.Get("x-goog-if-generation-match"); generation != "" {
		query.Set("ifGenerationMatch", generation)
	}
	r.Method = http.MethodPost
	r.URL = &url.URL{Path: "/upload/storage/v1/b/" + bucket + "/o", RawQuery: query.Encode()}
	r.Header.Set(translated, "true")
	return nil
}

// translated marks requests that were turned into others, for their answers.
const translated = "X-Lancerest-Translated"

// toXML gives the answer to such a request the form that the XML API has: what describes the object stands in the head.
func toXML(answer *http.Response) error {
	if answer.Request.Header.Get(translated) == "" || answer.StatusCode != http.StatusOK {
		return nil
	}
	var object struct{ Generation, Etag string }
	if err := json.NewDecoder(answer.Body).Decode(&object); err != nil {
		return err
	}
	answer.Header.Set("x-goog-generation", object.Generation)
	answer.Header.Set("ETag", strconv.Quote(object.Etag))
	answer.Header.Del("Content-Length")
	answer.ContentLength, answer.Body = 0, http.NoBody
	return nil
}

// proxy leads to the emulator, with the host that the client named.
func (s *Server) proxy() *httputil.ReverseProxy {
	bare, _ := url.Parse(s.Bare) // it is our own
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(bare)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: toXML,
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
