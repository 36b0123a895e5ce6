//go:build ignore

package things

func TestNeverBuilt(t *testing.T) { Go() }
