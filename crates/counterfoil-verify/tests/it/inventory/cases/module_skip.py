import pytest

def test_a():
    go()

pytestmark = pytest.mark.skip(reason="all of it")

class TestB:
    def test_b(self):
        go()
