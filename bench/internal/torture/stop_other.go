//go:build !unix

package torture

import (
	"errors"
	"math/rand/v2"
)

func disturbByStopping(*session) (func(*rand.Rand) error, func(), error) {
	return nil, nil, errors.New("a process cannot be stopped on this system")
}
