package lance

import (
	"encoding/json"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of the message that describes a vector index.
const (
	vectorMetric    protowire.Number = 1
	vectorTarget    protowire.Number = 2
	vectorHNSW      protowire.Number = 3
	vectorProduct   protowire.Number = 4
	vectorScalar    protowire.Number = 5
	vectorRabit     protowire.Number = 6
	vectorFlat      protowire.Number = 8
	vectorHints     protowire.Number = 9
	hnswConnections protowire.Number = 1
	hnswEF          protowire.Number = 2
	hnswLevel       protowire.Number = 3
)

// vectorDetails are how a vector index was made, in the JSON that clients read.
type vectorDetails struct {
	Metric      string             `json:"metric_type"`
	Target      uint64             `json:"target_partition_size,omitempty"`
	HNSW        *hnswDetails       `json:"hnsw,omitempty"`
	Compression *compressedVectors `json:"compression,omitempty"`
	Hints       map[string]string  `json:"runtime_hints,omitempty"`
}

type hnswDetails struct {
	Connections uint64 `json:"max_connections"`
	EF          uint64 `json:"construction_ef"`
	Level       uint64 `json:"max_level,omitempty"`
}

type compressedVectors struct {
	Type       string  `json:"type"`
	Bits       uint64  `json:"num_bits"`
	SubVectors *uint64 `json:"num_sub_vectors,omitempty"`
	Rotation   string  `json:"rotation_type,omitempty"`
}

// vectorType returns the type of a vector index by how it was made, "Vector" where the writer did not say.
func (s IndexSegment) vectorType() string {
	d, err := readVectorDetails(s.Details)
	if err != nil || len(s.Details) == 0 {
		return "Vector"
	}
	name := "IVF_"
	if d.HNSW != nil {
		name += "HNSW_"
	}
	if d.Compression == nil {
		return name + "FLAT"
	}
	switch d.Compression.Type {
	case "pq":
		return name + "PQ"
	case "sq":
		return name + "SQ"
	}
	return name + "RQ"
}

// Distance returns how a vector index compares: "l2", "cosine", "dot" or "hamming"; "" for other indices, and where the writer did not say.
func (x Index) Distance() string {
	s := x.Segments[0]
	if s.messageName() != "VectorIndexDetails" || len(s.Details) == 0 {
		return ""
	}
	d, err := readVectorDetails(s.Details)
	if err != nil {
		return ""
	}
	switch d.Metric {
	case "L2":
		return "l2"
	case "COSINE":
		return "cosine"
	case "DOT":
		return "dot"
	case "HAMMING":
		return "hamming"
	}
	return ""
}

// DetailsJSON returns how the index was made, as JSON in the words of the Lance library: "{}" where that has nothing to say of the type, ""
// where the type, or what is said of it, is not known here.
func (x Index) DetailsJSON() string {
	s := x.Segments[0]
	var details any
	var err error
	switch s.messageName() {
	case "", "BTreeIndexDetails", "BitmapIndexDetails", "LabelListIndexDetails", "NGramIndexDetails", "ZoneMapIndexDetails", "BloomFilterIndexDetails", "RTreeIndexDetails", "FMIndexDetails":
		return "{}"
	case "VectorIndexDetails":
		if len(s.Details) == 0 {
			return "{}"
		}
		details, err = readVectorDetails(s.Details)
	case "InvertedIndexDetails":
		details, err = readTextDetails(s.Details)
	default:
		return ""
	}
	if err != nil {
		return ""
	}
	text, err := json.Marshal(details)
	if err != nil {
		return ""
	}
	return string(text)
}

// messageName is the name of the message that describes the index, without its package.
func (s IndexSegment) messageName() string {
	for i := len(s.TypeURL) - 1; i >= 0; i-- {
		if s.TypeURL[i] == '.' || s.TypeURL[i] == '/' {
			return s.TypeURL[i+1:]
		}
	}
	return s.TypeURL
}

func readVectorDetails(message []byte) (vectorDetails, error) {
	d := vectorDetails{Metric: "L2"}
	for f, err := range protoFields(message) {
		if err == nil {
			err = d.read(f)
		}
		if err != nil {
			return d, err
		}
	}
	return d, nil
}

func (d *vectorDetails) read(f protoField) (err error) {
	switch f.number {
	case vectorMetric:
		var v uint64
		v, err = f.uint()
		d.Metric = "UNKNOWN"
		if names := []string{"L2", "COSINE", "DOT", "HAMMING"}; v < uint64(len(names)) {
			d.Metric = names[v]
		}
	case vectorTarget:
		d.Target, err = f.uint()
	case vectorHNSW:
		var n map[protowire.Number]uint64
		n, err = numbersIn(f)
		d.HNSW = &hnswDetails{Connections: n[hnswConnections], EF: n[hnswEF], Level: n[hnswLevel]}
	case vectorProduct, vectorScalar, vectorRabit:
		d.Compression, err = readCompression(f)
	case vectorFlat:
		d.Compression = nil
	case vectorHints:
		err = addEntry(&d.Hints, f)
	}
	return err
}

// readCompression reads how vectors are made smaller: three messages that begin alike.
func readCompression(f protoField) (*compressedVectors, error) {
	n, err := numbersIn(f)
	c := &compressedVectors{Bits: n[1]}
	switch f.number {
	case vectorProduct:
		parts := n[2]
		c.Type, c.SubVectors = "pq", &parts
	case vectorScalar:
		c.Type = "sq"
	default:
		c.Type, c.Rotation = "rq", "fast"
		if n[2] == 1 {
			c.Rotation = "matrix"
		}
	}
	return c, err
}

// numbersIn returns the numbers in a message, by their fields. Of one that stands there twice the last counts.
func numbersIn(field protoField) (map[protowire.Number]uint64, error) {
	message, err := field.content()
	if err != nil {
		return nil, err
	}
	numbers := map[protowire.Number]uint64{}
	for f, err := range protoFields(message) {
		if err != nil {
			return nil, err
		}
		if f.typ == protowire.VarintType && len(numbers) < math.MaxUint8 {
			numbers[f.number], _ = f.uint()
		}
	}
	return numbers, nil
}
