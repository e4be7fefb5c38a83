package topology

import (
	"fmt"
	"iter"
	"math/bits"
	"strconv"
	"strings"
)

// Largest ids that are accepted. They are what Linux can be built for; a garbled
// file shall not ask for gigabytes.
const (
	MaxCPU      = 1<<13 - 1
	MaxNUMANode = 1<<10 - 1
)

// A Set is a set of ids, of CPUs or of NUMA nodes. It does not change. The zero
// value is empty.
type Set struct {
	words []uint64 // bit i%64 of word i/64 stands for id i
}

// ParseCPUList reads the list format in which the Linux kernel prints sets of
// CPUs: decimal ids and ranges of them, separated by commas, as in "0-3,8,10-11".
// Space around the whole list does not count; an empty list is the empty set, as
// the kernel prints for a NUMA node without CPUs. Order and overlap do not matter.
//
// Refused, with an error that says where: signs, spaces inside, empty items,
// ranges that end before they start, ids above [MaxCPU], and the stride
// ("0-15:2/4") and "all" forms that the kernel reads but never prints.
func ParseCPUList(list string) (Set, error) {
	s, err := parseList(list, MaxCPU)
	if err != nil {
		return Set{}, fmt.Errorf("topology: cpu list: %w", err)
	}
	return s, nil
}

func parseList(list string, max int) (Set, error) {
	var s Set
	list = strings.TrimSpace(list)
	if list == "" {
		return s, nil
	}
	for item := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(item, "-")
		if !isRange {
			last = first
		}
		lo, err := parseID(first, max)
		if err != nil {
			return Set{}, fmt.Errorf("item %q of %q: %w", abridge(item), abridge(list), err)
		}
		hi, err := parseID(last, max)
		if err != nil {
			return Set{}, fmt.Errorf("item %q of %q: %w", abridge(item), abridge(list), err)
		}
		if hi < lo {
			return Set{}, fmt.Errorf("item %q of %q ends before it starts", abridge(item), abridge(list))
		}
		s.addRange(lo, hi)
	}
	return s, nil
}

func parseID(digits string, max int) (int, error) {
	n, err := strconv.ParseUint(digits, 10, 32)
	switch {
	case digits == "":
		return 0, fmt.Errorf("a number is missing")
	case err != nil && strings.Trim(digits, "0123456789") != "":
		return 0, fmt.Errorf("%q is not a number", abridge(digits))
	case err != nil || n > uint64(max):
		return 0, fmt.Errorf("%s is above the limit %d", abridge(digits), max)
	}
	return int(n), nil
}

// abridge keeps error messages about garbage readable.
func abridge(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

// setOf returns the set of the given ids.
func setOf(ids ...int) Set {
	var s Set
	for _, id := range ids {
		s.addRange(id, id)
	}
	return s
}

// rangeOf returns the set of the ids from lo to hi.
func rangeOf(lo, hi int) Set {
	var s Set
	s.addRange(lo, hi)
	return s
}

// addRange is for sets that nobody else has seen yet.
func (s *Set) addRange(lo, hi int) {
	for len(s.words) <= hi/64 {
		s.words = append(s.words, 0)
	}
	for id := lo; id <= hi; id++ {
		s.words[id/64] |= 1 << (id % 64)
	}
}

// word returns word i, 0 beyond the last.
func (s Set) word(i int) uint64 {
	if i < len(s.words) {
		return s.words[i]
	}
	return 0
}

// combine applies op to the words of s and t.
func (s Set) combine(t Set, op func(a, b uint64) uint64) Set {
	words := make([]uint64, max(len(s.words), len(t.words)))
	for i := range words {
		words[i] = op(s.word(i), t.word(i))
	}
	return Set{words}
}

func (s Set) and(t Set) Set {
	return s.combine(t, func(a, b uint64) uint64 { return a & b })
}

func (s Set) or(t Set) Set {
	return s.combine(t, func(a, b uint64) uint64 { return a | b })
}

func (s Set) minus(t Set) Set {
	return s.combine(t, func(a, b uint64) uint64 { return a &^ b })
}

// Has reports whether id is in the set. No id below 0 is.
func (s Set) Has(id int) bool {
	return id >= 0 && s.word(id/64)>>(id%64)&1 != 0
}

// Len returns the number of ids in the set.
func (s Set) Len() int {
	n := 0
	for _, w := range s.words {
		n += bits.OnesCount64(w)
	}
	return n
}

// Empty reports whether no id is in the set.
func (s Set) Empty() bool {
	for _, w := range s.words {
		if w != 0 {
			return false
		}
	}
	return true
}

// Min returns the smallest id of the set, Unknown if it is empty.
func (s Set) Min() int {
	for i, w := range s.words {
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	return Unknown
}

// Max returns the largest id of the set, Unknown if it is empty.
func (s Set) Max() int {
	for i := len(s.words) - 1; i >= 0; i-- {
		if w := s.words[i]; w != 0 {
			return i*64 + bits.Len64(w) - 1
		}
	}
	return Unknown
}

// Equal reports whether s and t have the same ids.
func (s Set) Equal(t Set) bool {
	for i := range max(len(s.words), len(t.words)) {
		if s.word(i) != t.word(i) {
			return false
		}
	}
	return true
}

// All returns the ids of the set in ascending order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s.words {
			for ; w != 0; w &= w - 1 {
				if !yield(i*64 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// String returns the set in the format that [ParseCPUList] reads, in ascending
// order with the longest possible ranges, as the kernel prints it.
func (s Set) String() string {
	var b strings.Builder
	lo, hi := Unknown, Unknown // the range that has not been printed yet
	flush := func() {
		if lo == Unknown {
			return
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(lo))
		if hi > lo {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(hi))
		}
	}
	for id := range s.All() {
		if lo != Unknown && id == hi+1 {
			hi = id
			continue
		}
		flush()
		lo, hi = id, id
	}
	flush()
	return b.String()
}
