package lance

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sort"
)

// FragmentSet is a set of ids of fragments. It reads the bytes in which an index has it, a Roaring bitmap of 32 bits in the portable form
// (https://github.com/RoaringBitmap/RoaringFormatSpec), where they stand: it takes no memory by numbers that they claim.
type FragmentSet struct {
	containers []container // with growing keys
}

// container holds the ids that share their upper 16 bits.
type container struct {
	key  uint16
	form containerForm
	data []byte
}

type containerForm uint8

const (
	arrayForm containerForm = iota // the lower halves of the ids, growing, 2 bytes each
	bitsForm                       // 65,536 bits
	runsForm                       // pairs of the first of a run and how many follow it, 2 bytes each
)

// The numbers of the format.
const (
	roaringWithRuns      = 12347
	roaringWithoutRuns   = 12346
	roaringMaxArray      = 4096
	roaringBitsBytes     = 8192
	roaringOffsetsFrom   = 4 // containers; fewer have no table of offsets where runs are used
	roaringMaxContainers = 1 << 16
)

// ParseFragmentSet reads a set, whose bytes must not change as long as it is used. It returns an error where they are no bitmap: an unknown
// form, cut short, with bytes left over, or with ids out of order.
func ParseFragmentSet(data []byte) (*FragmentSet, error) {
	r := roaringReader{rest: data}
	cookie := r.uint32()
	count := 0
	var runs []byte
	switch {
	case cookie&0xffff == roaringWithRuns:
		count = int(cookie>>16) + 1
		runs = r.take((count + 7) / 8)
	case cookie == roaringWithoutRuns:
		n := r.uint32()
		if n > roaringMaxContainers {
			return nil, fmt.Errorf("a bitmap of fragments has %d parts, and can have %d", n, roaringMaxContainers)
		}
		count = int(n)
	default:
		return nil, fmt.Errorf("a bitmap of fragments begins with %d, which is no form of it", cookie)
	}
	header := r.take(4 * count)
	if runs == nil || count >= roaringOffsetsFrom {
		r.take(4 * count) // where the containers begin: they follow one another
	}
	if r.short {
		return nil, errShortBitmap
	}
	s := &FragmentSet{containers: make([]container, count)}
	for i := range s.containers {
		c := &s.containers[i]
		c.key = binary.LittleEndian.Uint16(header[4*i:])
		if i > 0 && c.key <= s.containers[i-1].key {
			return nil, fmt.Errorf("a bitmap of fragments has its parts out of order")
		}
		switch ids := int(binary.LittleEndian.Uint16(header[4*i+2:])) + 1; {
		case runs != nil && runs[i/8]>>(i%8)&1 == 1:
			c.form, c.data = runsForm, r.take(4*int(r.uint16()))
		case ids <= roaringMaxArray:
			c.form, c.data = arrayForm, r.take(2*ids)
		default:
			c.form, c.data = bitsForm, r.take(roaringBitsBytes)
		}
	}
	if r.short {
		return nil, errShortBitmap
	}
	if len(r.rest) > 0 {
		return nil, fmt.Errorf("a bitmap of fragments has %d bytes too many", len(r.rest))
	}
	return s, s.check()
}

var errShortBitmap = fmt.Errorf("a bitmap of fragments is cut short")

// check sees that ids grow, which looking one up relies on.
func (s *FragmentSet) check() error {
	for _, c := range s.containers {
		last := -1
		for i := 0; c.form != bitsForm && i < len(c.data); i += 2 {
			first := int(c.at(i))
			end := first
			if c.form == runsForm {
				i += 2
				end += int(c.at(i))
			}
			if first <= last || end > 0xffff {
				return fmt.Errorf("a bitmap of fragments has its ids out of order")
			}
			last = end
		}
	}
	return nil
}

func (c container) at(i int) uint16 { return binary.LittleEndian.Uint16(c.data[i:]) }

// Contains reports whether the set has a fragment.
func (s *FragmentSet) Contains(id uint64) bool {
	if id > 0xffffffff {
		return false
	}
	key, low := uint16(id>>16), uint16(id)
	i := sort.Search(len(s.containers), func(i int) bool { return s.containers[i].key >= key })
	if i == len(s.containers) || s.containers[i].key != key {
		return false
	}
	c := s.containers[i]
	switch c.form {
	case arrayForm:
		at := sort.Search(len(c.data)/2, func(i int) bool { return c.at(2*i) >= low })
		return at < len(c.data)/2 && c.at(2*at) == low
	case runsForm:
		after := sort.Search(len(c.data)/4, func(i int) bool { return c.at(4*i) > low })
		return after > 0 && low-c.at(4*after-4) <= c.at(4*after-2)
	default:
		return c.data[low/8]>>(low%8)&1 == 1
	}
}

// Len returns the number of fragments in the set.
func (s *FragmentSet) Len() int {
	n := 0
	for _, c := range s.containers {
		switch c.form {
		case arrayForm:
			n += len(c.data) / 2
		case runsForm:
			for i := 0; i < len(c.data); i += 4 {
				n += int(c.at(i+2)) + 1
			}
		case bitsForm:
			for _, b := range c.data {
				n += bits.OnesCount8(b)
			}
		}
	}
	return n
}

// roaringReader takes bytes from the front and notes where there are too few.
type roaringReader struct {
	rest  []byte
	short bool
}

func (r *roaringReader) take(n int) []byte {
	if n > len(r.rest) {
		r.short, r.rest = true, nil
		return nil
	}
	taken := r.rest[:n:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *roaringReader) uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *roaringReader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}
