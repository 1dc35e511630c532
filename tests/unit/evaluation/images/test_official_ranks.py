"""Ranks of the public summary, by hand, and aliases as data."""

from pathlib import Path

import pytest

from fabula.errors import ConfigError
from fabula.evaluation.shots.definitions import Definitions
from fabula.evaluation.shots.official_ranks import official_ranks
from fabula.evaluation.shots.report.tables import by_official_ranks
from fabula.evaluation.shots.scores import ImageScores, MethodScores
from fabula.evaluation.stats.tables import read_aliases
from fabula.schemas.values import Score

BOTH = {"shot": 2.0, "interaction": 2.0, "scene": 2.0, "action": 2.0, "aesthetic": 5.0, "inception": 9.0}


def test_ranks_when_one_method_leads_two_categories_are_ranks_of_ranks() -> None:
    a = {**BOTH, "cids_self": 0.6, "cids_cross": 0.5, "csd_self": 0.6, "csd_cross": 0.5}
    b = {**BOTH, "cids_self": 0.5, "cids_cross": 0.4, "csd_self": 0.6, "csd_cross": 0.5, "aesthetic": 6.0}
    first, second = official_ranks({"a": a, "b": b})
    # a leads characters, b quality; level in the rest: both have places 1, 1, 1, 1, 2 in the mean
    assert (first.overall, second.overall) == (1, 1)
    assert first.ranks == {"character": 1, "style": 1, "prompt": 1, "quality": 2, "diversity": 1}


def test_ranks_when_a_score_is_missing_put_it_last() -> None:
    rows = official_ranks({"a": {"inception": 3.0}, "b": {}, "c": {"inception": 9.0}})
    assert {row.method: row.ranks["diversity"] for row in rows} == {"c": 1, "a": 2, "b": 3}
    assert [row.overall for row in rows] == [1, 2, 3]


def test_ranks_when_nobody_measured_a_category_are_none_there() -> None:
    first, second = official_ranks({"a": {"cids_self": 0.6}, "b": {"cids_self": 0.5}})
    assert first.ranks == {"character": 1, "style": None, "prompt": None, "quality": None, "diversity": None}
    assert (first.overall, second.overall) == (1, 2)


def test_ranks_when_a_method_has_several_runs_count_the_best_one() -> None:
    runs = {"x text": {"inception": 3.0}, "x image": {"inception": 9.0}, "y": {"inception": 5.0}}
    rows = official_ranks(runs, {"x text": "x", "x image": "x"})
    assert [(row.method, row.run) for row in rows] == [("x", "x image"), ("y", "y")]


def test_aliases_when_given_as_texts_and_files_are_joined(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("# spelled in two ways\nMMSStoryAgent = MMStoryAgent\n", "utf-8")
    named = read_aliases(["a=b", str(tmp_path / "names.txt")])
    assert named == {"a": "b", "MMSStoryAgent": "MMStoryAgent"}


@pytest.mark.parametrize("texts", [["a"], ["a="], ["a=b", "a=c"]])
def test_aliases_when_a_name_has_no_other_or_two_say_so(texts: list[str]) -> None:
    with pytest.raises(ConfigError, match="--alias"):
        read_aliases(texts)


def test_scores_when_there_are_two_methods_have_the_official_ranks_under_their_name() -> None:
    def method(name: str, aesthetic: float) -> MethodScores:
        return MethodScores(name, {"aesthetic": Score(value=aesthetic, status="ok")}, (), {})

    both = (method("a", 4.0), method("b", 5.0))
    scores = ImageScores(Definitions(), None, both)
    assert [row["run"] for row in scores.as_json()["official_ranks"]] == ["b", "a"]
    (table,) = by_official_ranks(scores)
    assert [(row.label, row.values["quality"]) for row in table.rows] == [("b", 1), ("a", 2)]
    assert [row.values["style"] for row in table.rows] == [None, None]
    joined = ImageScores(Definitions(), None, both, variants={"a": "x", "b": "x"})
    assert [(row.method, row.run) for row in joined.official_ranks()] == [("x", "b")]
    assert "official_ranks" not in ImageScores(Definitions(), None, both[:1]).as_json()
