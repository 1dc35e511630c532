import pytest

from fabula.schemas.paths import pointer, steps_of, value_at_pointer


@pytest.mark.parametrize("steps", [(), ("a",), ("a/b", "~c", "", "0"), ("scenes", "2", "the key")])
def test_pointer_when_read_back_gives_the_same_steps(steps):
    assert steps_of(pointer(steps)) == steps


def test_pointer_when_keys_hold_its_own_marks_escapes_them():
    assert pointer(["a/b", "~", 3]) == "/a~1b/~0/3"


def test_value_when_it_lies_deep_is_found():
    document = {"scenes": [{"a/b": 1}, {"": {"x": [1, 2]}}]}
    assert value_at_pointer(document, "/scenes/1//x/1") == 2
    assert value_at_pointer(document, "/scenes/0/a~1b") == 1


@pytest.mark.parametrize("text", ["/x", "/scenes/2", "/scenes/-1", "/scenes/01x", "/scenes/0/0"])
def test_lookup_when_nothing_is_there_says_so(text):
    with pytest.raises(LookupError, match="nothing at"):
        value_at_pointer({"scenes": [1, 2]}, text)


def test_pointer_when_it_has_no_slash_is_refused():
    with pytest.raises(ValueError, match="starts with /"):
        value_at_pointer({}, "a")
