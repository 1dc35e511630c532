"""Completion rates: worked values, votes and gaps under every definition, and nothing dropped silently."""

from collections.abc import Callable

import pytest

from fabula.errors import InputError
from fabula.evaluation.archive.archive import Archive
from fabula.evaluation.events.score import PanelScore, score_archive
from fabula.evaluation.events.votes import Definitions, combine, completion_rate
from fabula.schemas.events import Suite

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


def test_a_judge_when_it_judged_nothing_of_a_method_gives_it_no_score_and_a_note(
    archive: Make, suite: Suite
) -> None:
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


def test_scores_when_a_judgement_does_not_fit_the_suite_list_every_problem(
    archive: Make, suite: Suite
) -> None:
    with pytest.raises(InputError) as caught:
        only(archive({"a.mp4": [(1, 1, 1)], "z.mp4": [(1, 1)]}), suite)
    assert "3 flags for 2 events" in str(caught.value)
    assert "z.mp4" in str(caught.value)


@pytest.mark.parametrize("flags", [[1, 2], [1, -1], [True, False], [1.0, 0.0], ["1", "0"], "10", None])
def test_an_answer_when_a_flag_is_neither_0_nor_1_is_refused_and_not_taken_for_silence(
    archive: Make, suite: Suite, flags: object
) -> None:
    made = archive(WORKED)
    first = made.judgements[0].model_copy(update={"parsed": {"completion": flags, "description": ""}})
    changed = Archive(made.manifest, (first, *made.judgements[1:]))
    with pytest.raises(InputError, match="a list of flags, each 0 or 1"):
        score_archive(changed, suite, Definitions())
