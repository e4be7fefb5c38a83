package std

// call calls f under the lock.
func (s *served) call(f func()) {
	s.mu.Lock()
	f()
	s.mu.Unlock()
}
