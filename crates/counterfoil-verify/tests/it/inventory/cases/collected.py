"""Everything that pytest and unittest collect."""
import unittest

import pytest


def helper():
    assert False


def test_plain():
    assert add(1, 2) == 3


async def test_async():
    await go()


def testing_is_collected_too():
    go()


@pytest.fixture
def test_client():
    return Client()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_with_cases(n):
    check(n)


@pytest.mark.skip
def test_skipped():
    go()


@pytest.mark.skipif(sys.platform == "win32", reason="no")
def test_skipped_under_a_condition():
    go()


@pytest.mark.xfail(strict=True)
def test_may_fail():
    go()


@unittest.skipUnless(HAS_GIT, "needs git")
@other
def test_skip_unless():
    go()


def test_skips_itself():
    """Why."""
    pytest.skip("later")
    go()


def test_raises_skip():
    raise unittest.SkipTest("later")


def test_skips_sometimes():
    if slow():
        pytest.skip("slow")
    go()


def test_pass():
    pass


def test_dots(): ...


def test_docstring():
    """Only words."""


def test_true():
    # assert add(1, 2) == 3
    assert True


def test_returns_at_once():
    return
    go()


# def test_commented_out():
#     go()

TEXT = """
def test_in_a_string():
    go()
"""


class TestThings:
    def test_method(self):
        go()

    def helper(self):
        def test_inside():
            pass

    class TestInner:
        def test_inner(self):
            go()

    class Plain:
        def test_not_collected(self):
            go()


class Things(unittest.TestCase):
    def setUp(self):
        pass

    def test_case(self):
        self.assertEqual(add(1, 2), 3)

    def test_true(self):
        self.assertTrue(True)

    def test_skips(self):
        self.skipTest("later")

    @unittest.expectedFailure
    def test_expected_failure(self):
        go()


@pytest.mark.skip(reason="all of it")
class TestLeftOut:
    def test_inherits(self):
        go()


class TestMarked:
    def test_before_the_mark(self):
        go()

    pytestmark = [pytest.mark.slow, pytest.mark.skip]


class TestNot:
    __test__ = False

    def test_is_not_collected(self):
        go()


class Helper:
    def test_is_none(self):
        go()


if sys.version_info > (3, 12):
    def test_new():
        go()
else:
    def test_old():
        go()
