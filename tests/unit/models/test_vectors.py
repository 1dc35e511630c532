"""Vectors of texts: exact as stored, cosine as defined, prices of what goes in alone."""

import os
import sys

import numpy as np
import pytest

from fabula.models import programs
from fabula.models.chat import Usage
from fabula.models.options import ModelOptions
from fabula.models.prices import price_of
from fabula.models.programs import ProgramStopped, allowed_environment, run_program
from fabula.models.spec import parse_spec
from fabula.models.vectors import cosine, packed, read_vector, unpacked


def test_vector_when_packed_comes_back_bit_by_bit() -> None:
    vector = np.random.default_rng(42).normal(size=1536).astype("<f4")
    text = packed(vector.tolist())
    assert len(text) == 8192
    assert unpacked(text).astype("<f4").tobytes() == vector.tobytes()
    assert packed(unpacked(text).tolist()) == text == read_vector(vector.tolist()) == read_vector(text)


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


# Running programs of others: what they read and write, and where that is bounded.


def run(code: str, **options: object) -> programs.Ended:
    words = [sys.executable, "-S", "-c", f"import os, sys\n{code}"]
    return run_program(words, allowed_environment(), **options)  # type: ignore[arg-type]


def test_program_when_it_is_given_something_reads_it_and_its_output_is_kept() -> None:
    ended = run("sys.stdout.write(sys.stdin.read().upper())", given=b"fox" * 50_000, output="kept")
    assert (ended.status, ended.output, ended.complaint) == (0, b"FOX" * 50_000, b"")


def test_program_when_it_writes_more_than_is_read_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "LONGEST_OUTPUT", 1000)
    with pytest.raises(ProgramStopped, match="wrote more than 1,000 bytes"):
        run("while True: sys.stdout.write('x' * 100_000)", output="kept")


def test_variables_when_named_or_set_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        os, "environ", {"PATH": "/bin", "LC_ALL": "C", "MY_KEY": "k", "OTHER": "o", "Path": "p"}
    )
    assert allowed_environment(("MY_KEY",), {"NEW": "n"}) == {
        "PATH": "/bin", "Path": "p", "LC_ALL": "C", "MY_KEY": "k", "NEW": "n",
    }  # fmt: skip
