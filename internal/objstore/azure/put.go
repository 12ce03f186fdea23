package azure

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/lancerest/lancerest/internal/objstore"
)

// mark is the name of the metadata by which a put knows its own object again. A first try whose answer was lost may have been carried out, and
// the second one is then refused because of it.
const mark = "lancerest_put"

// parallelBlocks is how many blocks of an object go up at once.
const parallelBlocks = 4

// PutIfAbsent implements objstore.Store.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) (objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return objstore.Info{}, err
	}
	info, err := s.put(ctx, key, data, &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)})
	if answerOf(err).failed() {
		err = objstore.ErrExists
	}
	if err != nil {
		return objstore.Info{}, fmt.Errorf("put %q: %w", key, kind(err))
	}
	return info, nil
}

// PutIf implements objstore.Store.
func (s *Store) PutIf(ctx context.Context, key, etag string, data []byte) (objstore.Info, error) {
	if err := ready(ctx, key); err != nil {
		return objstore.Info{}, err
	}
	condition, ok := unchanged(etag)
	if !ok {
		return objstore.Info{}, fmt.Errorf("replace %q: %w", key, objstore.ErrChanged)
	}
	info, err := s.put(ctx, key, data, condition)
	if answerOf(err).failed() {
		err = objstore.ErrChanged
	}
	if err != nil {
		return objstore.Info{}, fmt.Errorf("replace %q: %w", key, kind(err))
	}
	return info, nil
}

// unchanged is the condition that a blob still has an ETag; false for what is no ETag of this service's, which no blob has.
func unchanged(etag string) (*blob.ModifiedAccessConditions, bool) {
	if len(etag) < 5 || etag[:3] != `"0x` || etag[len(etag)-1] != '"' {
		return nil, false
	}
	for _, c := range etag[3 : len(etag)-1] {
		if (c < '0' || c > '9') && (c < 'A' || c > 'F') {
			return nil, false
		}
	}
	return &blob.ModifiedAccessConditions{IfMatch: to.Ptr(azcore.ETag(etag))}, true
}

// put sends an object, again where that may help. If a later try finds the condition failed, it is looked whether an earlier one is the reason.
func (s *Store) put(ctx context.Context, key string, data []byte, condition *blob.ModifiedAccessConditions) (objstore.Info, error) {
	id := uuid.New()
	var info objstore.Info
	send := func() (err error) {
		info, err = s.whole(ctx, key, data, id, condition)
		return err
	}
	if len(data) > 2*s.block {
		send = func() (err error) {
			info, err = s.inBlocks(ctx, key, data, id, condition)
			return err
		}
	}
	again, err := s.try(ctx, send)
	if again && answerOf(err).failed() {
		return s.own(ctx, key, id.String(), err)
	}
	return info, err
}

// own returns the object under key if it is the one that a put with this id sent; else the refusal that the put met.
func (s *Store) own(ctx context.Context, key, id string, refusal error) (objstore.Info, error) {
	info, by, err := s.look(ctx, key)
	switch {
	case err == nil && by == id:
		return info, nil
	case err != nil && !answerOf(err).absent():
		return objstore.Info{}, fmt.Errorf("whether an earlier try was carried out is not known: %w", err)
	}
	return objstore.Info{}, refusal
}

// whole puts an object in one request.
func (s *Store) whole(ctx context.Context, key string, data []byte, id uuid.UUID, condition *blob.ModifiedAccessConditions) (objstore.Info, error) {
	response, err := s.container.NewBlockBlobClient(key).Upload(ctx, body(data), &blockblob.UploadOptions{
		Metadata:                map[string]*string{mark: to.Ptr(id.String())},
		AccessConditions:        &blob.AccessConditions{ModifiedAccessConditions: condition},
		TransactionalValidation: blob.TransferValidationTypeComputeCRC64(),
	})
	if err != nil {
		return objstore.Info{}, err
	}
	return made(key, data, response.ETag, response.LastModified)
}

// made describes an object that was just put.
func made(key string, data []byte, etag *azcore.ETag, modified *time.Time) (objstore.Info, error) {
	return described(key, to.Ptr(int64(len(data))), etag, modified)
}

// inBlocks puts an object in blocks, which appear as the object with the last request.
func (s *Store) inBlocks(ctx context.Context, key string, data []byte, id uuid.UUID, condition *blob.ModifiedAccessConditions) (objstore.Info, error) {
	client := s.container.NewBlockBlobClient(key)
	var names []string
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallelBlocks)
	for start := 0; start < len(data); start += s.block {
		block := data[start:min(start+s.block, len(data))]
		name := blockName(id, len(names))
		names = append(names, name)
		group.Go(func() error {
			_, err := s.try(groupCtx, func() error {
				_, err := client.StageBlock(groupCtx, name, body(block), &blockblob.StageBlockOptions{TransactionalValidation: blob.TransferValidationTypeComputeCRC64()})
				return err
			})
			return spent(err)
		})
	}
	if err := group.Wait(); err != nil {
		return objstore.Info{}, err
	}
	response, err := client.CommitBlockList(ctx, names, &blockblob.CommitBlockListOptions{
		Metadata:         map[string]*string{mark: to.Ptr(id.String())},
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: condition},
	})
	if bloberror.HasCode(err, bloberror.InvalidBlockList) {
		// Whoever puts a blob of the name discards the blocks that wait for it.
		return objstore.Info{}, &answer{status: 412, code: bloberror.ConditionNotMet, what: "PUT of a list of blocks that another put has discarded"}
	}
	if err != nil {
		return objstore.Info{}, err
	}
	return made(key, data, response.ETag, response.LastModified)
}

// blockName names a block. All names of a blob's blocks must be of one length, and no other put of the blob may use them.
func blockName(id uuid.UUID, n int) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(id[:], uint32(n)))
}

func body(data []byte) io.ReadSeekCloser { return streaming.NopCloser(bytes.NewReader(data)) }
