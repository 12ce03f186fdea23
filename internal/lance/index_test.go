package lance_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/lance"
)

// segment describes an index of a type.
func indexSegment(name, message string, details ...[]byte) lance.IndexSegment {
	var value []byte
	for _, d := range details {
		value = append(value, d...)
	}
	return lance.IndexSegment{Name: name, TypeURL: message, Details: value}
}

// TestIndexTypes names types as pylance 14.0.2 does; test/clients compares with it over real indices.
func TestIndexTypes(t *testing.T) {
	t.Parallel()
	const vector = "/lance.index.pb.VectorIndexDetails"
	pq := content(4, message(number(1, 8), number(2, 4)))
	for _, tc := range []struct {
		segment        lance.IndexSegment
		kind, distance string
		details        string
	}{
		{indexSegment("x", "/lance.table.BTreeIndexDetails"), "BTree", "", "{}"},
		{indexSegment("x", "/lance.index.pb.FMIndexDetails"), "Fm", "", "{}"},
		{indexSegment("x", "/lance.index.pb.JsonIndexDetails", number(1, 1)), "Json", "", ""},
		{indexSegment("x", "/of.the.future.TimeIndexDetails"), "Time", "", ""},
		{indexSegment("x", ""), "Unknown", "", "{}"},
		{indexSegment("x", vector), "Vector", "", "{}"},
		{indexSegment("x", vector, []byte{0xff}), "Vector", "", ""},
		{indexSegment("x", vector, number(1, 1), content(8, nil)), "IVF_FLAT", "cosine", `{"metric_type":"COSINE"}`},
		{indexSegment("x", vector, number(1, 9), pq), "IVF_PQ", "", `{"metric_type":"UNKNOWN","compression":{"type":"pq","num_bits":8,"num_sub_vectors":4}}`},
		{indexSegment("x", vector, number(1, 3), content(3, message(number(1, 20), number(2, 150), number(3, 7))), content(5, number(1, 8))), "IVF_HNSW_SQ", "hamming",
			`{"metric_type":"HAMMING","hnsw":{"max_connections":20,"construction_ef":150,"max_level":7},"compression":{"type":"sq","num_bits":8}}`},
		{indexSegment("x", vector, number(1, 2), number(2, 100), content(6, message(number(1, 5), number(2, 1))), content(9, message(content(1, []byte("a")), content(2, []byte("b"))))),
			"IVF_RQ", "dot", `{"metric_type":"DOT","target_partition_size":100,"compression":{"type":"rq","num_bits":5,"rotation_type":"matrix"},"runtime_hints":{"a":"b"}}`},
	} {
		x := lance.Details{Segments: []lance.IndexSegment{tc.segment}}.Indices(0)[0]
		if x.Type() != tc.kind || x.Distance() != tc.distance || x.DetailsJSON() != tc.details {
			t.Errorf("%s %x: type %q, distance %q, details %s, want %q, %q, %s", tc.segment.TypeURL, tc.segment.Details, x.Type(), x.Distance(), x.DetailsJSON(), tc.kind, tc.distance, tc.details)
		}
	}
}

// TestTextIndexDetails reads how indices of words were made.
func TestTextIndexDetails(t *testing.T) {
	t.Parallel()
	read := func(details ...[]byte) map[string]any {
		t.Helper()
		x := lance.Details{Segments: []lance.IndexSegment{indexSegment("x", "/lance.table.InvertedIndexDetails", details...)}}.Indices(0)[0]
		var got map[string]any
		if err := json.Unmarshal([]byte(x.DetailsJSON()), &got); err != nil {
			t.Fatalf("details %q: %v", x.DetailsJSON(), err)
		}
		return got
	}
	base := func(change map[string]any) map[string]any {
		m := map[string]any{
			"lance_tokenizer": nil, "base_tokenizer": "simple", "language": "English", "with_position": false, "max_token_length": 40., "lower_case": true,
			"stem": true, "remove_stop_words": true, "custom_stop_words": nil, "ascii_folding": true, "min_ngram_length": 3., "max_ngram_length": 3.,
			"prefix_only": false, "block_size": 128., "split_identifiers": false, "split_on_numerics": false, "preserve_original": false,
			"index_operators": false, "document_granularity": "row",
		}
		for k, v := range change {
			m[k] = v
		}
		return m
	}
	if diff := cmp.Diff(base(nil), read()); diff != "" {
		t.Errorf("of a writer that says nothing (-want +got):\n%s", diff)
	}
	got := read(content(1, []byte("code")), content(2, []byte(`"German"`)), number(3, 1), number(5, 1), number(11, 1), number(12, 256), content(13, number(2, 0)), number(14, 1))
	want := base(map[string]any{
		"base_tokenizer": "code", "language": "German", "with_position": true, "max_token_length": nil, "stem": false, "remove_stop_words": false, "ascii_folding": false,
		"min_ngram_length": 0., "max_ngram_length": 0., "prefix_only": true, "block_size": 256., "preserve_original": true, "document_granularity": "list_element",
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("of one that says much (-want +got):\n%s", diff)
	}
}

// TestIndicesAndCoverage puts segments together and counts what they cover.
func TestIndicesAndCoverage(t *testing.T) {
	t.Parallel()
	set := func(ids ...uint32) *lance.FragmentSet {
		s, err := lance.ParseFragmentSet(setOf(ids...))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	of := func(name string, fragments *lance.FragmentSet) lance.IndexSegment {
		return lance.IndexSegment{Name: name, Fields: []int32{1, 2}, CoveringFields: []int32{2}, Fragments: fragments}
	}
	d := lance.Details{Segments: []lance.IndexSegment{of("b", set(0)), of("a", set(0, 1)), of("__lance_mem_wal", nil), of("b", set(2, 9)), of("old", nil)}}
	indices := d.Indices(0)
	names := []string{}
	for _, x := range indices {
		names = append(names, x.Name)
		if diff := cmp.Diff([]int32{1}, x.Columns); diff != "" {
			t.Errorf("columns of %s (-want +got):\n%s", x.Name, diff)
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "old"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if got := d.Indices(lance.FlagCoveringApart)[0].Columns; len(got) != 2 {
		t.Errorf("with the flag that tells the two lists apart the columns are %v", got)
	}
	fragment := func(id, rows uint64, more ...[]byte) []byte {
		return content(2, message(number(1, id), number(4, rows), message(more...)))
	}
	data := manifestFile(nil, message(number(3, 1), fragment(0, 10, content(3, number(4, 4))), fragment(1, 20), fragment(2, 30)))
	covers, err := lance.Covers(data, d, indices)
	if err != nil {
		t.Fatal(err)
	}
	want := []lance.Coverage{{Indexed: 26, Unindexed: 30}, {Indexed: 36, Unindexed: 20}, {Indexed: -1, Unindexed: -1}}
	if diff := cmp.Diff(want, covers); diff != "" {
		t.Errorf("Covers (-want +got):\n%s", diff)
	}
	unknown := []lance.Coverage{{Indexed: -1, Unindexed: -1}, {Indexed: -1, Unindexed: -1}, {Indexed: -1, Unindexed: -1}}
	reused := lance.Details{Segments: append(d.Segments, of("__lance_frag_reuse", nil))}
	for name, got := range map[string]func() ([]lance.Coverage, error){
		"after a compaction that left indices behind": func() ([]lance.Coverage, error) { return lance.Covers(data, reused, indices) },
		"with a fragment of unknown size": func() ([]lance.Coverage, error) {
			return lance.Covers(manifestFile(nil, message(number(3, 1), fragment(0, 0))), d, indices)
		},
	} {
		covers, err := got()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(unknown, covers); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
