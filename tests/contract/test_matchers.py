"""What every matcher that is a rule keeps to, ours and those of plug-ins."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fabula.errors import ConfigError
from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.recoverability.matching import Key, is_rule, matcher_of, rules
from fabula.schemas.text import normalize_answer

GOLD = "The mouse frees the lion"
KEY = Key("q", GOLD, frozenset({normalize_answer(GOLD)}), frozenset({"mouse", "frees", "lion"}))
ours = pytest.mark.parametrize("name", list(rules()))


@ours
def test_matcher_says_what_it_does_and_knows_its_setting(name: str) -> None:
    rule = rules()[name]
    assert rule.meaning.endswith(".") and "=" not in name
    if rule.setting is None:
        with pytest.raises(ConfigError, match="no setting"):
            matcher_of(f"{name}=0.5", {})
        return
    default, least, most = rule.setting
    assert least <= default <= most
    for wrong in (f"{most + 1:g}", f"{least - 1:g}", "", "nan", "much"):
        with pytest.raises(ConfigError, match="a number from"):
            matcher_of(f"{name}={wrong}", {})


@ours
def test_matcher_takes_the_canonical_answer_and_refuses_another_and_none(name: str) -> None:
    compare = matcher_of(name, {})
    assert compare(KEY, GOLD)
    assert not compare(KEY, "nobody knows")
    assert not compare(KEY, "")


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    info = tmp_path / "house_matchers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: house-matchers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fabula.matchers]\nlong = house_matchers:LONG\n")
    (tmp_path / "house_matchers.py").write_text(
        "from fabula.evaluation.recoverability.matching import Matcher\n"
        "LONG = Matcher('Long is right.', lambda least: lambda _, text: len(text) >= least, (5, 1, 99))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    rules.cache_clear()
    yield
    monkeypatch.undo()
    rules.cache_clear()


def test_matcher_of_a_plug_in_is_chosen_with_its_setting(house: None) -> None:
    assert is_rule("long=9") and not is_rule("model")
    assert matcher_of("long", {})(KEY, "a mouse")
    assert not matcher_of("long=9", {})(KEY, "a mouse")
    assert Definitions(matcher="long=9").as_json()["matcher"] == "long=9"
