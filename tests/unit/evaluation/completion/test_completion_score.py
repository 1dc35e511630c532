"""Completion rates: worked values, votes and gaps under every definition, and nothing dropped silently."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import BudgetStop, InputError
from fabula.evaluation.archive.archive import Archive, read_archive, write_archive
from fabula.evaluation.archive.replies import lacks
from fabula.evaluation.events.requests import EVALUATING, EventOptions, events_request
from fabula.evaluation.events.score import (
    PanelScore,
    compare_folders,
    read_rates,
    score_archive,
    score_folder,
)
from fabula.evaluation.events.votes import Definitions, combine, completion_rate
from fabula.evaluation.running import check_request
from fabula.releases.events.form import write_suite
from fabula.schemas.events import Suite
from fabula.testing.drawn import write_video
from fabula.testing.model_server import ModelServer
from fabula.testing.stand_in_models import EventModel

Make = Callable[..., Archive]
WORKED = {
    "a.mp4": [(1, 1), (1, 0)],  # unanimous (1, 0): 0.5
    "b.mp4": ["refused", "blocked"],  # no answer
    "c.mp4": [(1, 1, 0), "refused"],  # one vote: (1, 1, 0): 2/3
}


def only(archive: Archive, suite: Suite, **definitions: str) -> PanelScore:
    (panel,) = score_archive(archive, suite, Definitions(**definitions)).panels
    return panel


@pytest.mark.parametrize(
    ("voting", "combined"),
    [
        ("unanimous", (1, 0, 0)),
        ("at_least_3", (1, 0, 0)),
        ("at_least_2", (1, 1, 0)),
        ("at_least_1", (1, 1, 1)),
        ("at_least_9", (1, 0, 0)),
        ("average", (1, pytest.approx(2 / 3), pytest.approx(1 / 3))),
    ],
)
def test_three_votes_when_combined_follow_the_named_voting(voting: str, combined: tuple[float, ...]) -> None:
    assert combine([(1, 1, 0), (1, 1, 0), (1, 0, 1)], voting) == combined


def test_a_rate_when_no_vote_has_an_answer_is_undefined_and_never_zero() -> None:
    score, events = completion_rate([None, None, None], 2, Definitions())
    assert (score.value, score.status, events) == (None, "undefined", None)
    assert score.counts == {"votes": 3, "answered": 0}


def test_a_rate_when_a_vote_has_no_answer_is_that_of_the_others() -> None:
    assert completion_rate([(1, 1), None], 2, Definitions())[0].value == 1


def test_scores_when_worked_by_hand_agree(archive: Make, suite: Suite) -> None:
    panel = only(archive(WORKED), suite)
    # average: (1/2 + 0 + 2/3) / 3 = 7/18; human: (1/2 + 2/3) / 2 = 7/12; easy: (1/2 + 0) / 2.
    assert panel.classes["average"].value == pytest.approx(7 / 18)
    assert panel.classes["human"].value == pytest.approx(7 / 12)
    assert panel.classes["easy"].value == 0.25
    assert panel.classes["animal"].value == 0
    assert panel.nonresponse.value == pytest.approx(1 / 3)
    assert panel.classes["average"].counts == {"prompts": 3, "answered": 2, "missing": 0}
    assert panel.outcomes["votes"] == {"answered": 3, "refused": 2, "blocked": 1}


def test_scores_when_a_video_is_missing_count_it_as_missing(archive: Make, suite: Suite) -> None:
    panel = only(archive({"a.mp4": [(1, 1), (1, 1)]}), suite)
    assert panel.classes["average"].value == pytest.approx(1 / 3)
    assert panel.classes["average"].counts == {"prompts": 3, "answered": 1, "missing": 2}
    assert [one.seen for one in panel.videos] == [True, False, False]


def test_a_judge_when_it_judged_nothing_of_a_method_gives_it_no_score_and_a_note(archive, suite):
    scores = score_archive(archive({}), suite, Definitions())
    assert scores.panels == ()
    assert scores.notes[0] == "m has no judgement by openai:one, and so no score by it"
    worked = score_archive(archive(WORKED, judges=["openai:one", "openai:two"]), suite, Definitions())
    assert [panel.panel for panel in worked.panels] == [("m", "openai:one")]
    assert worked.notes[0] == "m has no judgement by openai:two, and so no score by it"


def test_scores_when_only_some_prompts_were_judged_are_about_those(archive: Make, suite: Suite) -> None:
    panel = only(_without_b(archive), suite)
    assert panel.classes["average"].counts["prompts"] == 2
    assert "animal" not in panel.classes


def _without_b(archive: Make) -> Archive:
    return archive({key: WORKED[key] for key in ("a.mp4", "c.mp4")}, units=["a.mp4", "c.mp4"])


def test_scores_when_there_are_several_seeds_are_means_over_seeds(archive: Make, suite: Suite) -> None:
    seeded = {("a.mp4", 1): [(1, 1), (1, 1)], ("a.mp4", 2): [(0, 0), (0, 0)], ("b.mp4", 1): [(1, 1), (1, 1)]}
    panel = only(archive(seeded), suite)
    # a: (1 + 0) / 2; b: seed 2 is missing and counts as 0: 1/2.
    assert [one.rate for one in panel.videos] == [0.5, 0.5, None]
    excluded = only(archive(seeded), suite, nonresponse="excluded")
    assert [one.rate for one in excluded.videos] == [0.5, 1, None]


def test_scores_when_a_judgement_does_not_fit_the_suite_list_every_problem(archive, suite):
    with pytest.raises(InputError) as caught:
        only(archive({"a.mp4": [(1, 1, 1)], "z.mp4": [(1, 1)]}), suite)
    assert "3 flags for 2 events" in str(caught.value)
    assert "z.mp4" in str(caught.value)


@pytest.mark.parametrize("flags", [[1, 2], [1, -1], [True, False], [1.0, 0.0], ["1", "0"], "10", None])
def test_an_answer_when_a_flag_is_neither_0_nor_1_is_refused_and_not_taken_for_silence(archive, suite, flags):
    made = archive(WORKED)
    first = made.judgements[0].model_copy(update={"parsed": {"completion": flags, "description": ""}})
    changed = Archive(made.manifest, (first, *made.judgements[1:]))
    with pytest.raises(InputError, match="a list of flags, each 0 or 1"):
        score_archive(changed, suite, Definitions())


# -- Evaluations of videos that stop early, or are begun again with less: nothing goes, nothing becomes zero

Judge = Callable[..., Any]
NAMES = ("cup", "dog", "toy", "war")


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """Judge four videos, of which one is missing, into the same folder; every event is completed."""
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    entry = {"event_list": ["It falls.", "It breaks."], "class": ["object", "2_events"]}
    suite = {f"{name}.mp4": {"prompt": f"A {name} falls, and breaks.", **entry} for name in NAMES}
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    videos = tmp_path / "videos" / "model-x"
    videos.mkdir(parents=True)
    for number, name in enumerate(NAMES[:-1]):
        write_video(videos / f"{name}.mp4", 20, size=(48 + 16 * number, 48))

    def run(server: ModelServer, *specs: str, **options: Any) -> Any:
        settings = {"base_url": server.openai_url, "concurrency": 1, "prices": {"input": 1.0, "output": 2.0}}
        judges = specs or ("openai:one",)
        given = EventOptions(
            judges=judges, models=dict.fromkeys(judges, settings), workers=0,
            created_at="2026-01-01T00:00:00Z", **options,
        )  # fmt: skip
        request = events_request(tmp_path / "suite.json", [videos], tmp_path / "run", given)
        check_request(request)
        EVALUATING.run(request, replace=given.replace)
        return read_archive(tmp_path / "run")

    return run


def test_events_when_stopped_are_scored_by_what_is_done_and_continue(judge: Judge, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with ModelServer(EventModel()) as server:
        with pytest.raises(BudgetStop, match="replies so far"):
            judge(server, max_cost=0.045)
        partial = read_archive(run)
        unasked, _ = lacks(partial.manifest.environment)
        (panel,) = (scores := score_folder(run, definitions=Definitions(resamples=0))).panels
        done = [video.unit for video in panel.videos if video.seen]
        assert 0 < len(done) < 3 and unasked == 9 - len(partial.judgements)
        assert panel.classes["average"].value == len(done) / (len(done) + 1), (
            "the missing video counts as zero"
        )
        assert "not finished" in scores.notes[1] and scores.notes[1] in list(scores.lines())[2]
        asked = server.count
        whole = judge(server)
        assert server.count - asked <= 2 * unasked
    assert (len(whole.judgements), lacks(whole.manifest.environment)) == (9, (0, 0))
    (panel,) = score_folder(run, definitions=Definitions(resamples=0)).panels
    assert panel.classes["average"].value == 0.75
    assert score_folder(run, definitions=Definitions(resamples=0)).notes == scores.notes[:1]


@pytest.mark.parametrize(
    ("specs", "options"),
    [(("openai:two",), {}), ((), {"units": ["cup.mp4"]}), ((), {"votes": 1})],
)
def test_events_when_the_folder_holds_more_keep_all_unless_told(judge, tmp_path, specs, options):
    with ModelServer(EventModel()) as server:
        first = judge(server)
        now = judge(server, *specs, **options)
        assert all(one in now.judgements for one in first.judgements)
        assert judge(server, "openai:one", "openai:two").manifest.protocol["judges"] == [
            "openai:one", "openai:two",
        ]  # fmt: skip
        assert judge(server, replace=True) == first
    assert not [*(tmp_path / "run").glob("earlier*")]


# Comparing evaluations of videos: paired over prompts, under one protocol.

Finish = Callable[..., Archive]


@pytest.fixture
def folder(tmp_path: Path, suite: Suite) -> Callable[..., Path]:
    def make(name: str, archive: Archive) -> Path:
        place = tmp_path / name
        place.mkdir()
        write_archive(place, archive.manifest, archive.judgements)
        write_suite(place / "all_prompts.json", suite)
        return place

    return make


def test_two_evaluations_when_compared_are_paired_over_prompts(archive: Finish, folder) -> None:
    first = folder("a", archive({"a.mp4": [(1, 1)] * 2, "b.mp4": [(1, 0)] * 2, "c.mp4": [(1, 1, 1)] * 2}))
    second = folder("b", archive({"a.mp4": [(1, 0)] * 2, "b.mp4": [(0, 0)] * 2, "c.mp4": ["refused"] * 2}))
    found = compare_folders(first, second, None, Definitions(interval="percentile"))
    (one,) = found.comparisons
    # 1 - 1/2, 1/2 - 0, 1 - 0
    assert (one.n, one.difference) == (3, pytest.approx(2 / 3))
    assert one.low == pytest.approx(0.5)
    assert one.rank_biserial == 1
    assert any("+66.7 [50.0, 100.0], 3 prompts" in line for line in found.lines())
    found = compare_folders(first, second, None, Definitions(nonresponse="excluded", resamples=0))
    assert (found.comparisons[0].n, found.comparisons[0].low) == (2, None)
    assert found.as_json()["comparisons"][0]["prompts"] == 2
    assert found.comparisons[0].difference == pytest.approx(0.5)
    assert [line for line in found.lines() if "prompts: too few to tell methods apart" in line] == [
        "  2 prompts: too few to tell methods apart, which takes 6;"
        " --format csv has the differences of their means"
    ]
    assert found.as_json()["comparisons"][0]["first"] == "m"


def test_two_evaluations_when_made_otherwise_are_refused_unless_allowed(archive: Finish, folder) -> None:
    votes = {"a.mp4": [(1, 1)] * 2}
    first, second = folder("a", archive(votes)), folder("b", archive(votes, frames={"count": 4}))
    with pytest.raises(InputError, match="frames"):
        compare_folders(first, second, None, Definitions())
    found = compare_folders(first, second, None, Definitions(), ["frames"])
    assert found.comparisons[0].difference == 0
    assert len(found.differences) == 1


# Completion rates for grading a suite: from scored evaluations, and from people's tables.


def test_peoples_rates_when_wrong_list_every_problem(tmp_path: Path) -> None:
    path = tmp_path / "human.tsv"
    path.write_text("method\tunit\trate\nm\ta.mp4\t0.5\nm\ta.mp4\t1\nm\tb.mp4\t2\n")
    with pytest.raises(InputError) as caught:
        read_rates(path)
    assert len(caught.value.problems) == 2
    path.write_text("method\tunit\trate\nm\ta.mp4\t0.5\n")
    assert read_rates(path) == {"m": {"a.mp4": 0.5}}
