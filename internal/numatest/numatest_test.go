package numatest

import (
	"reflect"
	"testing"
)

func TestDescription_ComesBack(t *testing.T) {
	m := Machine{CPUs: []string{"0-1", "2,4", "3"}, Distances: [][]int{{10, 12, 30}, {12, 10, 20}, {31, 21, 10}}}
	const text = "0-1/2,4/3 10,12,30/12,10,20/31,21,10"
	if m.String() != text {
		t.Errorf("%s, want %s", m, text)
	}
	if got, err := Parse(text); err != nil || !reflect.DeepEqual(got, m) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestDescription_WrongOnesAreRefused(t *testing.T) {
	for _, text := range []string{"", "0", "0 ", "0 x", "0/1 10,20", "0/1 10,20/20", "0 10/20", "0 10 "} {
		if m, err := Parse(text); err == nil {
			t.Errorf("%q: %+v", text, m)
		}
	}
}
