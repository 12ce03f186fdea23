package lance_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lancerest/lancerest/internal/lance"
)

// TestReadChange reads the changes in manifests that pylance 14.0.2 wrote.
func TestReadChange(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]lance.Change{
		"data_2.2.manifest":       {UUID: "31445f99-475a-4c4b-ae57-6f3986da0535", Operation: "Overwrite"},
		"index.manifest":          {UUID: "4124af7e-787a-4669-b472-d3b9ce5c34b6", ReadVersion: 2, Operation: "Append"},
		"stable_row_ids.manifest": {UUID: "53ebbafb-5949-436f-9439-8892072ce9b6", ReadVersion: 3, Operation: "Update"},
	} {
		got, found, err := lance.ReadChange(readFile(t, "manifests/"+file))
		if err != nil || !found {
			t.Errorf("%s: found %v, error %v", file, found, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
	if _, found, err := lance.ReadChange(manifestFile(nil, number(3, 1))); found || err != nil {
		t.Errorf("a manifest without a change: found %v, error %v", found, err)
	}
}

func TestParseChange(t *testing.T) {
	t.Parallel()
	property := message(content(1, []byte("k")), content(2, []byte("v")))
	index := content(1, nil)
	for name, tc := range map[string]struct {
		data []byte
		want lance.Change
	}{
		"everything": {
			message(number(1, 4), content(2, []byte("u")), content(3, []byte("t")), content(4, property), content(108, nil)),
			lance.Change{UUID: "u", ReadVersion: 4, Tag: "t", Properties: map[string]string{"k": "v"}, Operation: "Update"},
		},
		"indices made anew":       {content(103, message(index, content(2, nil))), lance.Change{Operation: "CreateIndex"}},
		"indices removed":         {content(103, content(2, nil)), lance.Change{Operation: "DropIndex"}},
		"nothing known":           {content(999, nil), lance.Change{Operation: "Unknown"}},
		"a change of base paths":  {content(114, nil), lance.Change{Operation: "UpdateBases"}},
		"a change of a detached":  {number(1, 1<<64-1), lance.Change{ReadVersion: -1, Operation: "Unknown"}},
		"an operation and more":   {message(content(100, nil), content(50, []byte("x"))), lance.Change{Operation: "Append"}},
		"an empty file of a sort": {nil, lance.Change{Operation: "Unknown"}},
	} {
		got, err := lance.ParseChange(tc.data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for want, data := range map[string][]byte{"malformed": {0xff}, "field 2": number(2, 1), "field 100": number(100, 1), "in its operation": content(103, []byte{0xff})} {
		_, err := lance.ParseChange(data)
		wantCorrupt(t, err, want)
	}
}

func TestChangeKey(t *testing.T) {
	t.Parallel()
	got, err := lance.ChangeKey("a/t.lance", "x/y", "1-u.txn")
	if want := "a/t.lance/tree/x/y/_transactions/1-u.txn"; err != nil || got != want {
		t.Errorf("ChangeKey = %q, %v, want %q", got, err, want)
	}
	for _, name := range []string{"", "../x", "a/b", "..", `a\b`, "a\x00"} {
		var invalid *lance.InvalidError
		if _, err := lance.ChangeKey("t", lance.Main, name); !errors.As(err, &invalid) {
			t.Errorf("ChangeKey of %q: error %v, want an *InvalidError", name, err)
		}
	}
}
