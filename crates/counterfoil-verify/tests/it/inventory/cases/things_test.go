package things

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { os.Exit(m.Run()) }

func helper(t *testing.T) { t.Helper() }

func TestPlain(t *testing.T) {
	if got := Add(1, 2); got != 3 {
		t.Errorf("got %d", got)
	}
}

func TestRequire(t *testing.T) {
	t.Parallel()
	require.Equal(t, 3, Add(1, 2))
}

func Testlower(t *testing.T) { Go() }

func TestSkipped(t *testing.T) {
	t.Skip("later")
	Go()
}

func TestSkippedAfterParallel(t *testing.T) {
	t.Parallel()
	t.SkipNow()
}

func TestSkipsWhenShort(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	Go()
}

func TestEmpty(t *testing.T) {}

func TestOnlyLogs(t *testing.T) {
	// t.Errorf("no")
	t.Log("fine")
}

func TestReturnsAtOnce(t *testing.T) {
	return
	Go()
}

// func TestCommentedOut(t *testing.T) { Go() }

func BenchmarkAdd(b *testing.B) {
	for i := 0; i < b.N; i++ {
		Add(1, 2)
	}
}

func FuzzAdd(f *testing.F) {
	f.Fuzz(func(t *testing.T, a int) { Add(a, a) })
}

func ExampleAdd() {
	fmt.Println(Add(1, 2))
	// Output: 3
}

func ExampleAdd_unchecked() {
	fmt.Println(Add(1, 2))
}

func (s *ThingSuite) TestInSuite() {
	s.Equal(3, Add(1, 2))
}

func (s *ThingSuite) SetupTest() {}
