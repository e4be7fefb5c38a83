package locks

// cohortBatch is how often a domain passes the global lock on, as in the paper.
const cohortBatch = 64

// Cohort is C-BO-MCS of Dice, Marathe and Shavit ("Lock Cohorting", 2012): an
// MCS lock for each domain, and a global backoff lock that the owner of a
// domain's lock takes, and may leave to the next waiter of its domain.
type Cohort struct {
	global  *TTAS
	domains []cohortDomain
	threads []cohortThread
}

type cohortDomain struct {
	tail atomicUint32
	_    [line - 4]byte
}

type cohortThread struct {
	node
	domain, passes uint32 // private to the thread; passes: how often the domain has passed the global lock on
	_              [line - 8]byte
}

// Values of granted: the domain's lock alone, or the global lock with it after
// so many passes.
const (
	cohortLocal  = 1
	cohortGlobal = 2
)

// NewCohort returns an unlocked Cohort.
func NewCohort(threads []Place) *Cohort {
	l := &Cohort{
		global:  NewTTAS(len(threads)),
		domains: make([]cohortDomain, domains(threads)),
		threads: make([]cohortThread, len(threads)),
	}
	for i, p := range threads {
		l.threads[i].domain = uint32(p.Domain)
	}
	return l
}

// Lock locks l.
func (l *Cohort) Lock(thread int) {
	t, got := &l.threads[thread], uint32(cohortLocal)
	t.reset()
	if prev := l.domains[t.domain].tail.Swap(refOf(thread)); prev != 0 {
		storeRelease(&l.threads[prev-1].next, refOf(thread))
		got = await(&t.granted)
	}
	if got == cohortLocal {
		l.global.Lock(thread)
		t.passes = 0
		return
	}
	t.passes = got - cohortGlobal
}

// Unlock unlocks l.
func (l *Cohort) Unlock(thread int) {
	t := &l.threads[thread]
	next := t.next.Load()
	if next != 0 && t.passes < cohortBatch {
		storeRelease(&l.threads[next-1].granted, cohortGlobal+t.passes+1)
		return
	}
	l.global.Unlock(thread)
	if next == 0 && l.domains[t.domain].tail.CompareAndSwap(refOf(thread), 0) {
		return
	}
	storeRelease(&l.threads[await(&t.next)-1].granted, cohortLocal)
}
