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
			f, err := protoFieldAt(rest)
			if err != nil {
				yield(protoField{}, fmt.Errorf("malformed %s at byte %d: %w", f.described(), len(message)-len(rest), err))
				return
			}
			rest = rest[len(f.raw):]
			if !yield(f, nil) {
				return
			}
		}
	}
}

// protoFieldAt reads the field that a message begins with. Almost all tags and most lengths take one byte; a manifest has so many
// fields that it pays to look at those first.
func protoFieldAt(rest []byte) (protoField, error) {
	number, typ, tag := protowire.Number(rest[0]>>3), protowire.Type(rest[0]&7), 1
	if rest[0] >= 0x80 || number == 0 {
		if number, typ, tag = protowire.ConsumeTag(rest); tag < 0 {
			return protoField{}, protowire.ParseError(tag)
		}
	}
	f := protoField{number: number, typ: typ}
	if typ == protowire.BytesType && tag < len(rest) && rest[tag] < 0x80 && tag+1+int(rest[tag]) <= len(rest) {
		end := tag + 1 + int(rest[tag])
		f.raw, f.value = rest[:end], rest[tag+1:end]
		return f, nil
	}
	length := protowire.ConsumeFieldValue(number, typ, rest[tag:])
	if length < 0 {
		return f, protowire.ParseError(length)
	}
	f.raw, f.value = rest[:tag+length], rest[tag:tag+length]
	if typ == protowire.BytesType {
		f.value, _ = protowire.ConsumeBytes(f.value)
	}
	return f, nil
}

// described names the field in a message.
func (f protoField) described() string {
	if f.number == 0 {
		return "field"
	}
	return fmt.Sprintf("field %d", f.number)
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
