package place

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/lancerest/lancerest/api"
	"github.com/lancerest/lancerest/internal/lance"
	"github.com/lancerest/lancerest/internal/objstore"
)

// refMax bounds the bytes of a reference file: clients write a few hundred.
const refMax = 1 << 20

// Branches reads all references of branches, sorted by name; main has none. Errors: 15, 17, 19 (a damaged file).
func (p Place) Branches(ctx context.Context) ([]lance.BranchRef, error) {
	prefix := lance.BranchesPrefix(p.Dir)
	var refs []lance.BranchRef
	for info, err := range p.Objects.List(ctx, prefix, "") {
		if err != nil {
			return nil, StorageError("list "+prefix, err)
		}
		name, ok := lance.BranchFromFile(strings.TrimPrefix(info.Key, prefix))
		if !ok {
			continue
		}
		ref, err := p.ReadBranch(ctx, name)
		if errors.Is(err, objstore.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, RefError("read "+info.Key, err)
		}
		refs = append(refs, ref)
	}
	if len(refs) == 0 {
		return nil, p.Root.Prove(ctx)
	}
	slices.SortFunc(refs, func(a, b lance.BranchRef) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return refs, nil
}

// ReadBranch reads the reference of a branch. The error is objstore's, objstore.ErrNotFound where there is none, or says that the file is damaged:
// RefError translates it.
func (p Place) ReadBranch(ctx context.Context, b lance.Branch) (lance.BranchRef, error) {
	data, _, err := p.Objects.Get(ctx, lance.BranchKey(p.Dir, b), refMax)
	if err != nil {
		return lance.BranchRef{}, err
	}
	return lance.ParseBranch(b, data)
}

// RefError translates what reading a reference file came to, what being said of it: code 19 for a damaged file, else as StorageError.
func RefError(what string, err error) error {
	var damaged *lance.CorruptError
	if errors.As(err, &damaged) {
		return api.Errorf(api.CodeInvalidTableState, "%s: %v", what, damaged)
	}
	return StorageError(what, err)
}

// TagNames returns the names of a table's tags after the given one, "" for all, sorted bytewise. Errors: 15, 17.
func (p Place) TagNames(ctx context.Context, after string) ([]string, error) {
	prefix := lance.TagsPrefix(p.Dir)
	var names []string
	for info, err := range p.Objects.List(ctx, prefix, "") {
		if err != nil {
			return nil, StorageError("list "+prefix, err)
		}
		if name, ok := lance.TagFromFile(strings.TrimPrefix(info.Key, prefix)); ok && name > after {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil, p.Root.Prove(ctx)
	}
	return names, nil
}

// ReadTag reads one tag of a table. Errors: 8, 13 (the name), 15, 17, 19 (a damaged file).
func (ps *Places) ReadTag(ctx context.Context, t lance.Table, name string) (lance.Tag, error) {
	tag, _, err := ps.OpenTag(ctx, t, name)
	return tag, err
}

// OpenTag reads one tag of a table together with its object, for those who replace or remove just that. Of a damaged file the object is
// returned beside the error. Errors: those of ReadTag.
func (ps *Places) OpenTag(ctx context.Context, t lance.Table, name string) (lance.Tag, objstore.Info, error) {
	if err := lance.CheckTagName(name); err != nil {
		return lance.Tag{}, objstore.Info{}, api.Errorf(api.CodeInvalidInput, "%v", err)
	}
	p, err := ps.At(t.Location)
	if err != nil {
		return lance.Tag{}, objstore.Info{}, err
	}
	data, info, err := p.Objects.Get(ctx, lance.TagKey(p.Dir, name), refMax)
	if errors.Is(err, objstore.ErrNotFound) {
		return lance.Tag{}, info, p.Proven(ctx, api.Errorf(api.CodeTableTagNotFound, "table %q has no tag %q", lance.ShowID(t.Path), name))
	}
	if err != nil {
		return lance.Tag{}, info, StorageError("read tag "+name, err)
	}
	tag, err := lance.ParseTag(name, data)
	if err != nil {
		return tag, info, RefError("read tag "+name, err)
	}
	return tag, info, nil
}

// Referred returns the names of the tags and branches, as "tag a" or "branch b", that need versions of a branch in the given ranges, both ends
// included, to stay. Errors: 15, 17, 19 (a damaged file).
func (ps *Places) Referred(ctx context.Context, t lance.Table, branch lance.Branch, ranges [][2]lance.VersionNumber) ([]string, error) {
	p, err := ps.At(t.Location)
	if err != nil {
		return nil, err
	}
	within := func(v lance.VersionNumber) bool {
		return slices.ContainsFunc(ranges, func(r [2]lance.VersionNumber) bool { return r[0] <= v && v <= r[1] })
	}
	var names []string
	tags, err := p.TagNames(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, name := range tags {
		tag, err := ps.ReadTag(ctx, t, name)
		if err != nil && api.CodeOf(err) == api.CodeTableTagNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		if tag.Branch == branch && within(tag.Version) {
			names = append(names, "tag "+name)
		}
	}
	refs, err := p.Branches(ctx)
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		if ref.ParentBranch == branch && within(ref.ParentVersion) {
			names = append(names, "branch "+string(ref.Name))
		}
	}
	return names, nil
}
