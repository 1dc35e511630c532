"""How results are kept and keyed."""

import random

import pytest

from fabula.engine.codec import (
    Basis,
    content_key,
    decode,
    encode,
    encode_lists,
    gather_fields,
    table_digest,
)
from fabula.engine.stage import Failed, Made, Rejected
from fabula.schemas.canonical import digest

BASIS = Basis("work", 1, {"seed": 42, "settings": {}}, {})
PINNED = "4e4f52d235c3bb3a9552d0de4973b453f36878ea1fe3fb2a2fa3bb0e3b47a717"  # a change forgets all results


def test_encode_when_made_keeps_fields_and_their_digests() -> None:
    fields = {"b": [1, 2.5, None], "a": {"text": "ñ \u2028 \U0001f600"}}
    kept = encode(Made(fields))
    assert kept.blob is not None
    assert decode(kept.blob) == fields
    assert kept.outputs == {name: digest(value) for name, value in fields.items()}


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, "\ud800", object()])
def test_encode_when_value_is_not_json_raises(value: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        encode(Made({"a": value}))


def test_encode_when_not_an_outcome_raises() -> None:
    with pytest.raises(TypeError, match="not dict"):
        encode({"a": 1})  # type: ignore[arg-type]


def test_encode_when_reason_holds_a_lone_surrogate_stores_text() -> None:
    assert encode(Rejected("x", "bad \ud800 text")).reason == "bad ? text"
    assert encode(Failed("x", "r", "\udfff")).evidence == "?"


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 20_000])
def test_encode_lists_when_lines_come_one_by_one_gives_the_bytes_of_the_whole_lists(count: int) -> None:
    rng = random.Random(count)
    lines = [[f'i{number} "ñ\U0001f600', rng.randbytes(32).hex()] for number in range(count)]
    for lists in ({"items": lines}, {"kept": lines[:3], "items": lines}):
        assert encode_lists({name: iter(rows) for name, rows in lists.items()}) == encode(Made(lists))


def test_gather_fields_when_blobs_hold_more_takes_only_the_named_ones() -> None:
    first, second = encode(Made({"a": 1, "b": 2})).blob, encode(Made({"c": 3})).blob
    assert first is not None
    assert second is not None
    assert gather_fields([(first, ("b",)), (second, ("c",))]) == {"b": 2, "c": 3}


def test_key_when_nothing_differs_is_the_same_in_every_process() -> None:
    assert BASIS.key("a", ["1" * 64]) == Basis("work", 1, {"settings": {}, "seed": 42}, {}).key(
        "a", ["1" * 64]
    )
    assert BASIS.key("a", []) == PINNED


@pytest.mark.parametrize(
    "other",
    [
        Basis("work2", 1, {"seed": 42, "settings": {}}, {}),
        Basis("work", 2, {"seed": 42, "settings": {}}, {}),
        Basis("work", 1, {"seed": 7, "settings": {}}, {}),
        Basis("work", 1, {"seed": 42, "settings": {"a": 1}}, {}),
        Basis("work", 1, {"seed": 42, "settings": {}}, {"pebble": "1"}),
    ],
)
def test_key_when_any_component_differs_differs(other: Basis) -> None:
    assert BASIS.key("a", ["1" * 64]) != other.key("a", ["1" * 64])


def test_key_when_item_or_inputs_differ_differs() -> None:
    keys = {
        BASIS.key("a", ["1" * 64, "2" * 64]),
        BASIS.key("b", ["1" * 64, "2" * 64]),
        BASIS.key("a", ["2" * 64, "1" * 64]),
        BASIS.key("a", ["1" * 64]),
        BASIS.key("a" + "1" * 64, ["2" * 64]),
        BASIS.key("\ud800", ["1" * 64]),
    }
    assert len(keys) == 6


def test_content_key_when_content_differs_differs() -> None:
    assert content_key("s", "a", ["made", None, "x"]) != content_key("s", "a", ["made", None, "y"])
    assert content_key("s", "a", ["made"]) == content_key("s", "a", ["made"])


def test_table_digest_when_order_differs_differs() -> None:
    assert table_digest([("a", "1"), ("b", "2")]) != table_digest([("b", "2"), ("a", "1")])
