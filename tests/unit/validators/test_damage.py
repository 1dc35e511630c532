"""Damaged files: validation reports or refuses, and never crashes; every computed number is checked."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabula.errors import UserError
from fabula.schemas.canonical import pretty_bytes
from fabula.schemas.paths import get_at, replace_at
from fabula.testing.endurance import rounds
from fabula.testing.katha_folders import write_release, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.validators.katha.validation import validate

FILES = [
    *((write_run, name) for name in ("records.jsonl", "run.json", "assignments.jsonl", "balance.json")),
    *(
        (write_release, name)
        for name in (
            "annotations.jsonl", "contrastive_variants.jsonl", "producers.jsonl", "statistics.json",
            "moral_balance_requirements.json", "release.json",
        )
    ),
]  # fmt: skip
pytestmark = [pytest.mark.slow, pytest.mark.endurance]
RELAXED = settings(
    max_examples=rounds(250),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def findings(folder: Path) -> bool:
    """Whether validation finds something or refuses; any other exception is a crash and gets through."""
    try:
        return bool(validate(folder).issues)
    except UserError as error:
        assert str(error)
        return True


WHOLE = st.binary(max_size=60) | st.sampled_from(
    [b"", b"[]", b"5", b'"x"', b"null", b"{}", b'{"format":true}']
)


@pytest.mark.parametrize(("writer", "name"), FILES)
@given(data=st.data(), way=st.sampled_from(["byte", "other content", "cut in the middle"]))
@RELAXED
def test_validate_when_a_file_is_damaged_never_crashes(writer, name, tmp_path, data, way):
    path = writer(tmp_path / "data", sample_bundles(3)) / name
    content = bytearray(path.read_bytes())
    if way == "byte":
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(data.draw(WHOLE) if way == "other content" else content)
    if way == "cut in the middle":
        path.write_bytes(content[: len(content) // 2])
    is_found = findings(path.parent)
    may_pass = name in ("run.json", "release.json", "records.jsonl") and way == "other content"
    assert is_found or way == "byte" or may_pass


def numbers(node: Any, path: str = "$") -> list[str]:
    if isinstance(node, dict):
        named = {key: value for key, value in node.items() if str(key).isidentifier()}
        return [found for key, value in named.items() for found in numbers(value, f"{path}.{key}")]
    return [path] if isinstance(node, int | float) else []


@pytest.mark.parametrize(
    ("writer", "name"),
    [
        (write_run, "balance.json"),
        (write_release, "statistics.json"),
        (write_release, "moral_balance_requirements.json"),
    ],
)
def test_validate_when_any_number_of_a_computed_file_changes_finds_it(writer, name, tmp_path):
    path = writer(tmp_path / "data", sample_bundles(25)) / name
    document = json.loads(path.read_bytes())
    # Counts of hidden stories and the tolerance are stated there and nowhere else.
    stated = {place for place in numbers(document) if place.startswith(("$.hidden_test", "$.tolerance."))}
    unnoticed = set()
    for place in numbers(document):
        path.write_bytes(pretty_bytes(replace_at(document, place, get_at(document, place) + 1)))
        if not findings(path.parent):
            unnoticed.add(place)
    assert unnoticed <= {place for place in stated if place.startswith("$.tolerance.")}
    assert len(numbers(document)) > 20


@pytest.mark.parametrize("value", [10**400, -1, 1e308, "many", None, [], True])
def test_validate_when_stated_numbers_are_absurd_reports_and_goes_on(value: Any, tmp_path: Path) -> None:
    release = write_release(tmp_path / "release", sample_bundles(30))
    for name, place in (
        ("statistics.json", "$.hidden_test.stories"),
        ("moral_balance_requirements.json", "$.tolerance.stories"),
    ):
        document = json.loads((release / name).read_bytes())
        (release / name).write_bytes(pretty_bytes(replace_at(document, place, value)))
    assert {"statistics", "moral-balance"} <= set(validate(release).counts)


def test_validate_when_a_file_has_no_line_end_and_no_end_reads_its_beginning_only(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # reading it all would take an hour
    assert [issue.code for issue in validate(path).issues][:1] == ["line-length"]
