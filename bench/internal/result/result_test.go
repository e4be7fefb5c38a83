package result

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hqsync/hqsync/bench/internal/environ"
	"github.com/hqsync/hqsync/bench/internal/stats"
)

// around returns n samples whose median, for odd n, is the value, one per cent apart.
func around(value float64, n int) []float64 {
	var samples []float64
	for i := range n {
		samples = append(samples, value*(1+0.01*float64(i-n/2)))
	}
	return samples
}

func constant(value float64, n int) []float64 {
	samples := make([]float64, n)
	for i := range samples {
		samples[i] = value
	}
	return samples
}

func TestEvaluate_JudgesEachMeasureFromItsBadSide(t *testing.T) {
	harmless := &Target{Bound: 2, HarmlessNS: 20e6}
	for _, test := range []struct {
		name    string
		measure Measure
		sync    []float64
		sync2   []float64
		target  *Target
		ratio   float64
		want    Verdict
	}{
		{"faster", Time, constant(10, 10), constant(6, 10), AtMost(0.6), 0.6, Met},
		{"not fast enough", Time, constant(10, 10), constant(7, 10), AtMost(0.6), 0.7, Missed},
		{"interval reaches", Time, constant(10, 11), around(6.1, 11), AtMost(0.6), 0.61, Noise},
		{"too few", Time, constant(10, 5), constant(7, 5), AtMost(0.6), 0.7, Undecided},
		{"too few but met", Time, constant(10, 5), constant(5, 5), AtMost(0.6), 0.5, Met},
		{"throughput is inverted", Throughput, constant(10, 10), constant(5, 10), AtLeast(1.25), 2, Met},
		{"speed is inverted", Speed, constant(10, 10), constant(20, 10), AtLeast(0.95), 0.5, Missed},
		{"throughput within noise", Throughput, constant(9.4, 11), around(10, 11), AtLeast(0.95), 0.94, Noise},
		{"long but harmless", WaitMax, constant(1e6, 10), constant(9e6, 10), harmless, 9, Met},
		{"long and harmful", WaitMax, constant(10e6, 10), constant(30e6, 10), harmless, 3, Missed},
		{"harmful but no longer", WaitMax, constant(25e6, 10), constant(30e6, 10), harmless, 1.2, Met},
		{"less than the clock can tell", WakerCPU, constant(10, 10), constant(0, 10), AtMost(0.6), 0, Undecided},
		{"no target", WaitMax, constant(25e6, 10), constant(30e6, 10), nil, 1.2, ""},
	} {
		row := Row{Measure: test.measure, Of: Sync2, Against: Sync, Target: test.target,
			Samples: map[string][]float64{Sync: test.sync, Sync2: test.sync2, Again: test.sync}}
		row.Evaluate()
		if d := row.Ratio.Median - test.ratio; d > 1e-9 || d < -1e-9 || row.Verdict != test.want {
			t.Errorf("%s: ratio %v, %q; want %v, %q", test.name, row.Ratio.Median, row.Verdict, test.ratio, test.want)
		}
		if row.Gauge.Median != 1 {
			t.Errorf("%s: gauge %v, want 1", test.name, row.Gauge.Median)
		}
	}
}

// TestRatio_IsOfPairs: the machine gets three times slower on the way; each pair still shows half the time.
func TestRatio_IsOfPairs(t *testing.T) {
	row := Row{Measure: Time, Of: Sync2, Against: Sync, Samples: map[string][]float64{}}
	for i := range 10 {
		machine := 1 + float64(i)/5
		row.Samples[Sync] = append(row.Samples[Sync], 10*machine)
		row.Samples[Sync2] = append(row.Samples[Sync2], 5*machine)
	}
	row.Evaluate()
	if row.Ratio.Median != 0.5 || row.Ratio.Lo != 0.5 || row.Ratio.Hi != 0.5 {
		t.Errorf("ratio %+v, want 0.5 in 0.5 to 0.5", row.Ratio)
	}
}

func TestMean_IsOfCompleteRounds(t *testing.T) {
	rows := []Row{
		{Measure: Throughput, Of: Sync2, Against: Sync, Samples: map[string][]float64{Sync: constant(10, 7), Sync2: constant(5, 7), Again: constant(10, 7)}},
		{Measure: Throughput, Of: Sync2, Against: Sync, Samples: map[string][]float64{Sync: constant(10, 6), Sync2: constant(20, 6), Again: constant(10, 6)}},
	}
	mean := Mean(rows, "mean", AtLeast(1))
	if mean.Ratio.N != 6 || mean.Ratio.Median < 0.999999 || mean.Ratio.Median > 1.000001 || mean.Verdict == Missed {
		t.Errorf("mean %+v, %s; want 1 of 6 rounds, not missed", mean.Ratio, mean.Verdict)
	}
}

func TestGauge_CountsIntervalsThatHoldOne(t *testing.T) {
	strays := Row{Gauge: stats.Estimate{Median: 1.3, Lo: 1.2, Hi: 1.4, N: 10}}
	holds := Row{Gauge: stats.Estimate{Median: 0.98, Lo: 0.9, Hi: 1.1, N: 10}}
	few := Row{Gauge: stats.Estimate{Median: 5, N: 3}}
	mean := Row{Gauge: stats.Estimate{Median: 7, Lo: 7, Hi: 7, N: 10}, Mean: true}
	r := Result{Tables: []Table{{Rows: []Row{strays, holds, few, mean}}}}
	g := r.Gauge()
	g.Median = math.Round(g.Median*1000) / 1000
	if want := (GaugeSummary{Rows: 2, Holding: 1, Median: 1.14, Lo: 0.98, Hi: 1.3}); g != want {
		t.Errorf("Gauge() = %+v, want %+v", g, want)
	}
}

func TestJSON_RoundTrip(t *testing.T) {
	row := Row{Name: "Mutex/g=2", Label: "two", Measure: Throughput, Params: map[string]int{"g": 2}, Of: Sync2, Against: Sync,
		Samples: map[string][]float64{Sync: around(10, 10), Sync2: around(9, 10), Again: around(10, 10), "channel": around(40, 10)},
		Target:  AtLeast(0.95), Extra: map[string]map[string]float64{"jain": {Sync: 0.9, Sync2: 1}}}
	row.Evaluate()
	r := &Result{Format: Format, Command: "mutex", Started: time.Now().UTC().Round(0), Seconds: 1.5,
		Environment: environ.Read(), StepNS: 1.7, Samples: 10, SampleNS: 1e8, TimedNS: 2e8, TurnNS: 2e4,
		Tables: []Table{{Name: "grid", Title: "Grid", Note: "note", Rows: []Row{row, Mean([]Row{row, row}, "mean", nil)}, Peers: []string{"channel"}}}}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	back, err := Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	// An empty map may come back as nil or the other way round, so compare what a second writing gives too.
	if !reflect.DeepEqual(r.Tables[0].Rows[0], back.Tables[0].Rows[0]) || r.Environment.String() != back.Environment.String() {
		t.Errorf("read back %+v\nwant %+v", back, r)
	}
	var first, second bytes.Buffer
	if r.Write(&first) != nil || back.Write(&second) != nil || first.String() != second.String() {
		t.Error("written again, the result differs")
	}
}

func TestRead_RefusesOtherFormats(t *testing.T) {
	for text, want := range map[string]string{
		`{"format": 99}`: "format 99",
		`[1, 2]`:         "not a result",
		``:               "not a result",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Read(%q) = %v, want an error with %q", text, err, want)
		}
		for _, whole := range []string{text, `{"results": [` + text + `]}`} {
			if _, err := ReadAll(strings.NewReader(whole)); err == nil {
				t.Errorf("ReadAll(%q) has no error", whole)
			}
		}
	}
}
