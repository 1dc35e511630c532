"""Which version a step asks for, by semantic versioning applied to data."""

import pytest

from fabula.errors import ConfigError
from fabula.releases.diff.version import Step, Version, is_enough, next_version


def v(text: str) -> Version:
    return Version.of(text, "--version")


@pytest.mark.parametrize(
    ("old", "step", "due"),
    [
        ("0.1.0", Step.NONE, "0.1.0"),
        ("0.1.0", Step.PATCH, "0.1.1"),
        ("0.1.4", Step.MINOR, "0.2.0"),
        ("0.1.4", Step.MAJOR, "0.2.0"),
        ("1.2.3", Step.PATCH, "1.2.4"),
        ("1.2.3", Step.MINOR, "1.3.0"),
        ("1.2.3", Step.MAJOR, "2.0.0"),
        ("1.0.0-rc.1", Step.MAJOR, "1.0.0"),
        ("1.2.3+build.7", Step.PATCH, "1.2.4"),
    ],
)
def test_next_version_when_a_step_is_due_is_the_lowest_that_says_so(old: str, step: Step, due: str) -> None:
    assert str(next_version(v(old), step)) == due


@pytest.mark.parametrize(
    ("old", "step", "new", "enough"),
    [
        ("0.1.0", Step.MINOR, "0.2.0", True),
        ("0.1.0", Step.MINOR, "0.1.1", False),
        ("0.1.0", Step.MINOR, "1.0.0", True),
        ("0.1.0", Step.MINOR, "0.2.0-rc.1", True),
        ("0.1.0", Step.MINOR, "0.1.0", False),
        ("0.1.0", Step.NONE, "0.1.0", True),
        ("0.1.0", Step.NONE, "0.0.9", False),
        ("1.0.0", Step.MAJOR, "1.9.9", False),
        ("1.0.0", Step.PATCH, "1.0.0+other", False),
        ("1.0.0-rc.1", Step.MAJOR, "1.0.0-rc.2", True),
        ("1.0.0-rc.2", Step.PATCH, "1.0.0-rc.1", False),
        ("1.0.0", Step.PATCH, "1.0.0-rc.1", False),
    ],
)
def test_version_when_stated_is_enough_or_not(old: str, step: Step, new: str, enough: bool) -> None:
    assert is_enough(v(old), step, v(new)) is enough


def test_versions_when_sorted_come_in_the_order_of_the_standard() -> None:
    # section 11 of semver.org 2.0.0
    texts = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2"]
    texts += ["1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.10.0", "2.0.0"]
    assert [one.text for one in sorted(map(v, reversed(texts)), key=lambda one: one.order)] == texts


@pytest.mark.parametrize("text", ["", "1.0", "v1.0.0", "1.0.0 ", "01.0.0", "1.0.0-", "auto"])
def test_version_when_it_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="a semantic version such as"):
        v(text)
