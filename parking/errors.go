package parking

import "syscall"

// An opError is an error of this package: a message, and the errno that Linux's
// futex calls return for the same.
type opError struct {
	msg   string
	errno syscall.Errno // 0 = none
}

func (e *opError) Error() string { return "parking: " + e.msg }

// Is makes errors.Is find the errno.
func (e *opError) Is(target error) bool { return e.errno != 0 && target == error(e.errno) }

// Errors of Table's methods. They are compared by identity, and errors.Is also
// finds in them the syscall.Errno in brackets.
var (
	ErrAgain        error = &opError{"word does not have the expected value", syscall.EAGAIN} // [syscall.EAGAIN]
	ErrTimedOut     error = &opError{"deadline passed", syscall.ETIMEDOUT}                    // [syscall.ETIMEDOUT]
	ErrCanceled     error = &opError{"context ended", syscall.EINTR}                          // [syscall.EINTR]
	ErrInvalid      error = &opError{"invalid argument", syscall.EINVAL}                      // [syscall.EINVAL]
	ErrFault        error = &opError{"nil word", syscall.EFAULT}                              // [syscall.EFAULT]
	ErrBusy         error = &opError{"table can no longer be resized", syscall.EBUSY}         // [syscall.EBUSY]
	ErrNoMemory     error = &opError{"no memory for so many slots", syscall.ENOMEM}           // [syscall.ENOMEM]
	ErrNotSupported error = &opError{"unknown operation or comparison", syscall.ENOSYS}       // [syscall.ENOSYS]
	ErrClosed       error = &opError{"table is closed", 0}                                    // no errno
)
