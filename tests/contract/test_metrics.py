"""What every metric of shot images keeps to, ours and those of plug-ins."""

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabula.engine.pipeline import load_pipeline
from fabula.errors import ConfigError
from fabula.evaluation.metrics.metric import METRICS, Metric, registered
from fabula.evaluation.metrics.story import FoundStory, Story
from fabula.evaluation.recoverability.matching import Definitions as DefinitionsOfMatchers
from fabula.evaluation.recoverability.matching import Key, is_rule, matcher_of, rules
from fabula.evaluation.shots.looking import read_found
from fabula.evaluation.shots.ratings import Definitions
from fabula.evaluation.shots.requests import PIPELINE
from fabula.evaluation.shots.scores import score_folder
from fabula.schemas.text import normalize_answer
from fabula.testing.simulated_images import Simulated, write_images

CARD = ("Question:", "Formula:", "Input:", "Output:", "Undefined when:", "Source:", "Departures", "Example:")
DEFINITIONS = Definitions(resamples=0)
ours = pytest.mark.parametrize(
    ("name", "metric"), registered(), ids=[metric.name for _, metric in registered()]
)


@ours
def test_metric_says_all_that_is_read_from_it(name: str, metric: Metric) -> None:
    assert name and metric.label and metric.group and metric.meaning.endswith(".")
    assert metric.version >= 1
    assert metric.range[0] < metric.range[1]
    assert [metric.terms is not None, metric.whole is not None, metric.judged].count(True) == 1
    assert metric.column is None or metric.ranked  # charts show what more is better of
    stages = load_pipeline(PIPELINE).names()
    assert all(need.stage in stages and need.model and need.part for need in metric.needs)
    assert all(len(set(choice.options)) == len(choice.options) > 0 for choice in metric.choices)


def test_names_of_scores_and_definitions_are_each_of_one_metric() -> None:
    names = [metric.name for _, metric in registered()]
    assert len(set(names)) == len(names)
    options: dict[str, tuple[str, ...]] = {}
    for _, metric in registered():
        for choice in metric.choices:
            assert options.setdefault(choice.name, choice.options) == choice.options
    columns = [metric.column for _, metric in registered() if metric.column is not None]
    assert sorted(columns) == list(range(len(columns)))


@pytest.mark.parametrize("place", sorted({place.partition(":")[0] for _, place in METRICS}))
def test_metric_of_ours_has_a_card_with_all_headings(place: str) -> None:
    text = importlib.import_module(place, "fabula.evaluation.metrics").__doc__ or ""
    assert [heading for heading in CARD if heading not in text] == []


@ours
def test_metric_where_nobody_looked_has_no_value(name: str, metric: Metric) -> None:
    line = FoundStory(
        method="m",
        story_id="01",
        characters={},
        references={},
        shots=(),
        boxes=None,
        crops=None,
        pictures=None,
    )
    assert metric.terms is None or metric.terms(Story(line), DEFINITIONS) is None
    assert metric.whole is None or metric.whole([Story(line)], DEFINITIONS) is None


@ours
def test_metric_of_a_made_up_evaluation_is_in_its_range_and_has_terms_of_its_shots(name, metric, made_up):
    for method in score_folder(made_up, DEFINITIONS).methods:
        score = method.scores.get(metric.name)
        assert score is None or score.value is None or metric.range[0] <= score.value <= metric.range[1]
    for line in read_found(made_up):
        terms = None if metric.terms is None else metric.terms(Story(line), DEFINITIONS)
        if terms is not None:
            assert terms.score == terms.score.ratio(
                terms.score.numerator or 0, terms.score.denominator or 0, terms.why, **terms.counts
            )
            values = [terms.of_shot(place) for place in range(len(line.shots))]
            assert all(value is not None for value in values) == metric.per_shot


@pytest.fixture(scope="module")
def made_up(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Simulated({"a": 0.9, "b": 0.2}, stories=2, missing=frozenset({("a", "01", 2)}))
    return write_images(tmp_path_factory.mktemp("made-up") / "run", made)


# -- What every matcher that is a rule keeps to, ours and those of plug-ins

GOLD = "The mouse frees the lion"
KEY = Key("q", GOLD, frozenset({normalize_answer(GOLD)}), frozenset({"mouse", "frees", "lion"}))
ours_matchers = pytest.mark.parametrize("name", list(rules()))


@ours_matchers
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


@ours_matchers
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
    assert DefinitionsOfMatchers(matcher="long=9").as_json()["matcher"] == "long=9"
