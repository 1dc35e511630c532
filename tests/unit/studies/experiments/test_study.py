"""Reading a study, and what its folder is to be called."""

from pathlib import Path

import pytest

from fabula.errors import BudgetStop, ConfigError, MissingRequirement
from fabula.studies.experiments.desk import Desk, ExperimentOptions
from fabula.studies.experiments.ordering import orders_of
from fabula.studies.experiments.running import run_study
from fabula.studies.experiments.study import Study
from fabula.testing.drawn_storyboards import judged_release
from fabula.testing.katha_samples import sample_bundles

MODEL = "image:drawn:storyboard"
NO_KEY = (MissingRequirement, "OPENAI_API_KEY")


def study(**more: object) -> Study:
    given = {
        "name": "s",
        "release": "r",
        "plans": ["direct"],
        "renderers": {"a": {"model": MODEL}},
        "judges": ["x:y"],
    }
    return Study.model_validate(given | more)


@pytest.fixture
def release(tmp_path: Path):
    bundles = sample_bundles(3)
    for bundle, split in zip(bundles, ("public_test", "public_test", "validation"), strict=True):
        bundle["record"]["split"] = split
    return judged_release(tmp_path / "release", bundles)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"judges": []}, "judges"),
        ({"seeds": []}, "seeds"),
        ({"conditions": ["smell"]}, "conditions"),
        ({"renderers": {"a": {"model": "video:drawn:faithful"}}}, "makes no pictures"),
        ({"renderers": {"a": {"model": MODEL, "rewrite": MODEL}}}, "no chat model"),
        ({"name": "No Name"}, "name"),
        (
            {
                "compass": {
                    "plan": "direct",
                    "renderer": "a",
                    "coverage": "c",
                    "copies": "p",
                    "tuned_on": "public_test",
                }
            },
            "tuned on public_test, which the study reports on",
        ),
    ],
)
def test_study_when_a_value_is_wrong_is_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        study(**change)


def test_orders_when_compass_is_wanted_have_candidates_of_its_split_for_its_method_alone(release) -> None:
    renderers = {"a": {"model": MODEL}, "b": {"model": MODEL, "seeded": False}}
    compass = {"plan": "direct", "renderer": "a", "coverage": "drawn-marks", "copies": "pixels"}
    ordered = orders_of(study(renderers=renderers, compass=compass, seeds=[1, 2]), release)
    stories = {split: ordered.stories[split] for split in ("public_test", "validation")}
    assert {split: len(names) for split, names in stories.items()} == {"public_test": 2, "validation": 1}
    keys = [order.key for order in ordered.orders]
    # a: 2 stories of the test and 1 of validation with 2 seeds each; b: 2 stories, once, without a seed.
    assert len(keys) == 3 * 2 + 2 and ordered.pictures == 8 * 5
    assert {key for key in keys if key.startswith("direct+b/")} == {
        f"direct+b/{story}" for story in stories["public_test"]
    }
    limited = orders_of(study(renderers=renderers, seeds=[1], limit=1), release)
    assert len(limited.orders) == 2 and list(limited.stories) == ["public_test"]


def test_orders_when_the_release_lacks_the_split_or_drafts_lack_a_story_say_so(
    release, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="the release has none; it has: validation, public_test"):
        orders_of(study(split=["train"]), release)
    other = judged_release(tmp_path / "other", [dict(bundle) for bundle in sample_bundles(6)[4:]])
    with pytest.raises(ConfigError, match="no record with the text of"):
        orders_of(study(drafts=str(other.path)), release)


def test_desk_when_the_limit_is_spent_by_others_stops_before_anything_is_asked(
    release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ExperimentOptions(max_cost=1.0)
    desk = Desk(study(release=str(release.path)), {}, release, tmp_path / "out", options)
    assert desk.run_options(tmp_path / "out" / "run")["max_cost"] == 1.0
    spent = {desk.folder: 1.25, desk.folder / "run": 0.5}
    monkeypatch.setattr("fabula.studies.experiments.desk.spent_below", spent.__getitem__)
    # 0.75 USD are others', so that 0.25 are left beside the 0.5 of the run itself.
    assert desk.run_options(desk.folder / "run")["max_cost"] == 0.25
    spent[desk.folder] = 2.0
    with pytest.raises(BudgetStop, match=r"1\.5000 of 1 USD are spent"):
        desk.run_options(desk.folder / "run")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"judges": ["openai:gpt-4.1"]}, NO_KEY),
        ({"judges": ["nobody:gpt"]}, (ConfigError, "nobody")),
        ({"match_with": ["openai:gpt-4.1"]}, NO_KEY),
        (
            {"question_writer": "openai:gpt-4.1", "evaluators": ["tifa"]},
            NO_KEY,
        ),
    ],
    ids=["key", "nobody", "matcher", "writer"],
)
def test_study_when_somebody_cannot_be_asked_stops_before_a_picture_is_made(
    release, tmp_path: Path, change: dict[str, object], problem: tuple[type[Exception], str]
) -> None:
    served = {"judges": ["http://127.0.0.1:9/v1#judge"]}
    desk = Desk(study(release=str(release.path), **(served | change)), {}, release, tmp_path / "out")
    with pytest.raises(problem[0], match=problem[1]):
        run_study(desk)
    assert not (tmp_path / "out").exists()
