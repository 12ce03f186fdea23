package lance

import (
	"encoding/json"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of the message that describes an index of words.
const (
	textTokenizer    protowire.Number = 1
	textLanguage     protowire.Number = 2
	textPositions    protowire.Number = 3
	textMaxLength    protowire.Number = 4
	textLower        protowire.Number = 5
	textStem         protowire.Number = 6
	textStopWords    protowire.Number = 7
	textFolding      protowire.Number = 8
	textMinNgram     protowire.Number = 9
	textMaxNgram     protowire.Number = 10
	textPrefix       protowire.Number = 11
	textBlock        protowire.Number = 12
	textCode         protowire.Number = 13
	textGranularity  protowire.Number = 14
	codeSplit        protowire.Number = 1
	codeNumerics     protowire.Number = 2
	codeOriginal     protowire.Number = 3
	codeOperators    protowire.Number = 4
	textDefaultBlock                  = 128
)

// textDetails are how an index of words was made, in the JSON that clients read. Two settings are never kept with an index: they are null.
type textDetails struct {
	Document        *string         `json:"lance_tokenizer"`
	Tokenizer       string          `json:"base_tokenizer"`
	Language        json.RawMessage `json:"language"`
	Positions       bool            `json:"with_position"`
	MaxLength       *uint64         `json:"max_token_length"`
	Lower           bool            `json:"lower_case"`
	Stem            bool            `json:"stem"`
	RemoveStopWords bool            `json:"remove_stop_words"`
	StopWords       []string        `json:"custom_stop_words"`
	Folding         bool            `json:"ascii_folding"`
	MinNgram        uint64          `json:"min_ngram_length"`
	MaxNgram        uint64          `json:"max_ngram_length"`
	Prefix          bool            `json:"prefix_only"`
	Block           uint64          `json:"block_size"`
	Split           bool            `json:"split_identifiers"`
	Numerics        bool            `json:"split_on_numerics"`
	Original        bool            `json:"preserve_original"`
	Operators       bool            `json:"index_operators"`
	Granularity     string          `json:"document_granularity"`
}

// english is a language as the message has it: a JSON text.
const english = `"English"`

// readTextDetails reads the message. The first writers put nothing into it, and made indices with the settings that are the defaults since.
func readTextDetails(message []byte) (textDetails, error) {
	d := textDetails{Block: textDefaultBlock, Granularity: "row"}
	for f, err := range protoFields(message) {
		if err == nil {
			err = d.read(f)
		}
		if err != nil {
			return d, err
		}
	}
	if d.Tokenizer == "" && d.Language == nil {
		longest := uint64(40)
		return textDetails{
			Tokenizer: "simple", Language: json.RawMessage(english), MaxLength: &longest, Lower: true, Stem: true, RemoveStopWords: true, Folding: true,
			MinNgram: 3, MaxNgram: 3, Block: d.Block, Granularity: d.Granularity,
		}, nil
	}
	if d.Tokenizer == "" {
		d.Tokenizer = "simple"
	}
	if d.Language == nil {
		d.Language = json.RawMessage(english)
	}
	return d, nil
}

func (d *textDetails) read(f protoField) (err error) {
	var v uint64
	switch f.number {
	case textTokenizer:
		d.Tokenizer, err = f.text()
	case textLanguage:
		var text string
		if text, err = f.text(); text != "" {
			d.Language = json.RawMessage(text)
		}
	case textMaxLength:
		v, err = f.uint()
		d.MaxLength = &v
	case textMinNgram:
		d.MinNgram, err = f.uint()
	case textMaxNgram:
		d.MaxNgram, err = f.uint()
	case textBlock:
		d.Block, err = f.uint()
	case textCode:
		err = d.readCode(f)
	case textGranularity:
		if v, err = f.uint(); v == 1 {
			d.Granularity = "list_element"
		}
	default:
		if flag := d.flag(f.number); flag != nil {
			v, err = f.uint()
			*flag = v != 0
		}
	}
	return err
}

func (d *textDetails) flag(number protowire.Number) *bool {
	switch number {
	case textPositions:
		return &d.Positions
	case textLower:
		return &d.Lower
	case textStem:
		return &d.Stem
	case textStopWords:
		return &d.RemoveStopWords
	case textFolding:
		return &d.Folding
	case textPrefix:
		return &d.Prefix
	}
	return nil
}

// readCode reads the settings for program code, of which two are on unless they are said to be off.
func (d *textDetails) readCode(f protoField) error {
	n, err := numbersIn(f)
	on := func(number protowire.Number) bool { v, said := n[number]; return v != 0 || !said }
	d.Split, d.Numerics, d.Original, d.Operators = n[codeSplit] != 0, on(codeNumerics), on(codeOriginal), n[codeOperators] != 0
	return err
}
