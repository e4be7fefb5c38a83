package ours

// call calls f under the lock.
func (s *served) call(f func()) { s.mu.Do(f) }
