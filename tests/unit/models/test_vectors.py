"""Vectors of texts: exact as stored, cosine as defined, prices of what goes in alone."""

import math

import numpy as np
import pytest

from fabula.models.chat import Usage
from fabula.models.options import ModelOptions
from fabula.models.prices import price_of
from fabula.models.spec import parse_spec
from fabula.models.vectors import cosine, encode_request, packed, read_vector, unpacked


def test_vector_when_packed_comes_back_bit_by_bit() -> None:
    vector = np.random.default_rng(42).normal(size=1536).astype("<f4")
    text = packed(vector.tolist())
    assert len(text) == 8192
    assert unpacked(text).astype("<f4").tobytes() == vector.tobytes()
    assert packed(unpacked(text).tolist()) == text == read_vector(vector.tolist()) == read_vector(text)


@pytest.mark.parametrize(
    "text", ["", "AAA", "AAAA", "AAAAAA==", "not base64!", packed([math.inf]), packed([0])]
)
def test_vector_when_stored_text_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        unpacked(text)


def test_cosine_when_computed_goes_by_the_angle_alone() -> None:
    # (3, 4) and (4, 3): 24 / (5 * 5)
    assert cosine(np.array([3.0, 4.0]), np.array([4.0, 3.0])) == pytest.approx(0.96)
    one = np.array([0.1, 0.2, 0.3])
    assert cosine(one, 7 * one) == 1.0
    assert cosine(one, -one) == -1.0
    with pytest.raises(ValueError, match="vectors of 3 and of 2 numbers"):
        cosine(one, np.array([1.0, 0.0]))


def test_price_when_an_encoder_is_listed_counts_what_goes_in() -> None:
    price = price_of(parse_spec("embedding:openai:text-embedding-3-small"), ModelOptions())
    assert price is not None and not any(price.rates("output_tokens"))
    assert float(price.cost(Usage(1_000_000, 0))) == pytest.approx(0.02)
    assert price_of(parse_spec("openai:text-embedding-3-small"), ModelOptions()) is None
    assert price_of(parse_spec("embedding:http://localhost:1/v1#x"), ModelOptions()) is None


def test_request_when_made_depends_on_encoder_and_text_alone() -> None:
    one = encode_request("embedding:openai:x", "A fox.")
    assert one.key() == encode_request("embedding:openai:x", "A fox.").key()
    assert one.key() != encode_request("embedding:openai:y", "A fox.").key()
    assert (one.temperature, one.seed, one.schema) == (None, None, None)
