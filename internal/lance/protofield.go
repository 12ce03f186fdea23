package lance

import (
	"bytes"
	"fmt"
	"iter"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// protoField is one field of a protobuf message as it stands on the wire.
type protoField struct {
	number protowire.Number
	typ    protowire.Type
	raw    []byte // tag and value
	value  []byte // the value alone; of a length-delimited field its content
}

// protoFields yields the fields of a message in order. A malformed message ends the sequence with an error.
func protoFields(message []byte) iter.Seq2[protoField, error] {
	return func(yield func(protoField, error) bool) {
		for rest := message; len(rest) > 0; {
			number, typ, tag := protowire.ConsumeTag(rest)
			if tag < 0 {
				yield(protoField{}, fmt.Errorf("malformed field at byte %d: %w", len(message)-len(rest), protowire.ParseError(tag)))
				return
			}
			length := protowire.ConsumeFieldValue(number, typ, rest[tag:])
			if length < 0 {
				yield(protoField{}, fmt.Errorf("malformed field %d at byte %d: %w", number, len(message)-len(rest), protowire.ParseError(length)))
				return
			}
			f := protoField{number: number, typ: typ, raw: rest[:tag+length], value: rest[tag : tag+length]}
			if typ == protowire.BytesType {
				f.value, _ = protowire.ConsumeBytes(f.value)
			}
			rest = rest[tag+length:]
			if !yield(f, nil) {
				return
			}
		}
	}
}

// uint returns the value of a varint field.
func (f protoField) uint() (uint64, error) {
	if f.typ != protowire.VarintType {
		return 0, fmt.Errorf("field %d is no number", f.number)
	}
	v, _ := protowire.ConsumeVarint(f.value)
	return v, nil
}

// bytes returns the content of a length-delimited field.
func (f protoField) content() ([]byte, error) {
	if f.typ != protowire.BytesType {
		return nil, fmt.Errorf("field %d is no text or message", f.number)
	}
	return f.value, nil
}

// text returns the content of a text field, which protobuf wants to be UTF-8.
func (f protoField) text() (string, error) {
	content, err := f.content()
	if err == nil && !utf8.Valid(content) {
		err = fmt.Errorf("field %d is not valid UTF-8", f.number)
	}
	return string(content), err
}

// rewriteProto returns the message with each field replaced by what edit makes of it. edit appends a field to out, which it
// returns: f.raw for one that stays as it is, to the byte.
func rewriteProto(message []byte, edit func(out []byte, f protoField) ([]byte, error)) ([]byte, error) {
	out := make([]byte, 0, len(message))
	for f, err := range protoFields(message) {
		if err != nil {
			return nil, err
		}
		if out, err = edit(out, f); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// rewriteInside is rewriteProto for the message that is the content of field f, appended to out as a field. Where edit changed
// nothing the field stays as it is, however its length was encoded.
func rewriteInside(out []byte, f protoField, edit func(out []byte, f protoField) ([]byte, error)) ([]byte, error) {
	content, err := f.content()
	if err != nil {
		return nil, err
	}
	inner, err := rewriteProto(content, edit)
	if err != nil {
		return nil, fmt.Errorf("in field %d: %w", f.number, err)
	}
	if bytes.Equal(inner, content) {
		return append(out, f.raw...), nil
	}
	return protowire.AppendBytes(protowire.AppendTag(out, f.number, protowire.BytesType), inner), nil
}
