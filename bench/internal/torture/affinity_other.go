//go:build !linux

package torture

import (
	"errors"
	"math/rand/v2"
)

func disturbAffinity(*session) (func(*rand.Rand) error, func(), error) {
	return nil, nil, errors.New("threads cannot be confined to CPUs on this system")
}
