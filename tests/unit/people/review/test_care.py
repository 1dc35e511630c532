"""Reviews without care: votes below the least time, one option throughout, answers like coins."""

import json
from pathlib import Path

import numpy as np
import pytest

from fabula.errors import ConfigError
from fabula.kinds.making_studies import Wanted, make
from fabula.people.review.exporting import export_files
from fabula.people.review.folder import Study, open_study
from fabula.people.review.items import Item, Part
from fabula.people.review.plan import Plan
from fabula.people.review.protocol import Floor, Protocol
from fabula.people.review.records import reviewed_records
from fabula.people.review.results import results
from fabula.people.review.status import care, lines, status
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.review_studies import NOW, add_votes
from fabula.testing.reviewed_records import answers_of, record_study, vote_all
from fabula.validators.careless import Said, answers_by_thing, beyond_chance, careless

FLOOR = {"words_per_second": 10.0, "seconds_per_answer": 0.5}


def timeline(seconds: float) -> list[tuple[float, str]]:
    """Raw events of a page that was seen so long."""
    return [(0.0, "visible"), (0.0, "loaded"), (1000 * seconds, "sent")]


def least(study: Study) -> float:
    """The least seconds of a vote on the first record, by hand: its words and its answers."""
    item = next(iter(study.items))
    return study.items[item].words / 10 + len(answers_of(study, item)) / 2


def test_words_when_counted_are_those_that_are_shown_and_half_the_letters_without_spaces() -> None:
    part = Part(id="p", text="Why did it rain?", detail=("because", "the cloud burst"))  # 4 + 1 + 3
    item = Item(
        item="i", texts={"story": "One two.", "scenes": ["three", {"a": "four"}]}, parts={"q": (part,)}
    )
    assert item.words == 4 + 8
    assert Item(item="i", texts={"story": "昔々ある所に"}).words == 1 + 3


def test_a_vote_when_below_the_least_time_is_stored_and_flagged_and_counts_nowhere(tmp_path: Path) -> None:
    study = record_study(tmp_path / "study", 1, floor=FLOOR)
    bound = least(study)
    assert bound > 20  # a record has a story of a hundred words and twenty questions
    fast = vote_all(study, timeline=timeline(bound - 0.1))
    standing = fast.standing()
    assert sum(len(person.votes) for person in standing.reviewers.values()) == 3
    assert reviewed_records(fast, standing) == []
    document = results(fast, standing)
    assert (document["all"]["votes"], document["kept"]["votes"]) == (3, 0)
    assert document["exclusions"]["under_floor"] == 3
    told = status(fast, standing, NOW)
    assert (told["votes"], told["care"]["under_floor"]) == ({"wanted": 3, "given": 0}, 3)
    shown = "\n".join(lines(told))
    assert "below the least time, on file and not counted: 3 of 3 votes" in shown
    assert "careless? simulated-1: 1 of 1 votes took less than the least time" in shown
    assert "1 answered, 1 too fast to count" in shown


def test_a_vote_when_it_took_the_least_time_counts(tmp_path: Path) -> None:
    study = record_study(tmp_path / "study", 1, floor=FLOOR)
    voted = vote_all(study, timeline=timeline(least(study)))
    (record,) = reviewed_records(voted, voted.standing())
    assert record.complete and record.decision == "accepted"


def test_a_page_when_it_never_said_that_it_was_seen_took_no_time(tmp_path: Path) -> None:
    voted = vote_all(record_study(tmp_path / "study", 1, floor=FLOOR))
    assert reviewed_records(voted, voted.standing()) == []


def test_a_review_when_three_took_the_first_option_in_two_seconds_accepts_nothing(tmp_path: Path) -> None:
    study = record_study(tmp_path / "study", 2, floor=FLOOR)
    for seat in study.seats.values():
        votes = {
            place.item: {**answers_of(study, place.item), "confidence": 1} for place in seat.places
        }  # the first of five
        add_votes(
            study, f"simulated-{seat.number}", votes, seat=seat.number, closed=["0"], timeline=timeline(2)
        )
    exported = export_files(open_study(study.folder), tmp_path / "out")
    assert exported.counts == {"records": 0, "votes": 0, "edits": 0, "open_cases": 0}
    signs = json.loads((tmp_path / "out/careless.json").read_bytes())["people"]
    assert signs.keys() == {"simulated-1", "simulated-2", "simulated-3"}
    assert signs["simulated-1"][0] == "2 of 2 votes took less than the least time"
    assert signs["simulated-1"][1].startswith("chose option 1 in ")
    assert exported.next[1].endswith("--accept-careless")
    assert any(line.startswith("careless? simulated-1: ") for line in exported.lines())


def test_a_protocol_when_it_is_of_before_has_the_hash_that_it_had(tmp_path: Path) -> None:
    study = record_study(tmp_path / "study", 1)
    document = json.loads((study.folder / "protocol.json").read_bytes())
    assert "floor" not in document
    assert Protocol.model_validate({**document, "floor": None}).sha256 == study.protocol.sha256


# -- signs


def said(who: str, answers: str, question: str = "q", *, placed: bool = True) -> list[Said]:
    """Answers ``a`` and ``b`` of somebody about things 0, 1, ..., at their places."""
    return [
        Said(who, number, question, answer, "ab".index(answer) if placed else None)
        for number, answer in enumerate(answers)
    ]


@pytest.mark.parametrize(("firsts", "others", "is_flagged"), [(39, 1, True), (38, 2, False), (19, 0, False)])
def test_one_option_when_it_is_nearly_all_that_was_chosen_is_flagged(
    firsts: int, others: int, *, is_flagged: bool
) -> None:
    # 39 of 40 are 0.975, 38 of 40 are 0.95; 19 answers are too few.
    found = careless(said("ana", "a" * firsts + "b" * others))
    assert found == (
        {"ana": [f"chose option 1 in {firsts} of {firsts + others} answers"]} if is_flagged else {}
    )


def test_agreement_when_counted_by_hand_is_what_is_beyond_chance() -> None:
    # 20 things; ana says a 10 times, ben 10 times, the same of 14 things. Dealt anew they would agree on
    # 20 x (0.5 x 0.5 + 0.5 x 0.5) = 10: (14 - 10) / (20 - 10) = 0.4. Variance: the number of a's that meet is
    # hypergeometric, 20 drawn 10 and 10: 10 x 10 x 10 x 10 / (20 x 20 x 19) = 1.316; twice that agree: 5.263.
    ana, ben = "a" * 10 + "b" * 10, "a" * 7 + "b" * 3 + "a" * 3 + "b" * 7
    everybody = answers_by_thing([*said("ana", ana), *said("ben", ben)])
    value, upper, answers = beyond_chance(said("ana", ana), everybody) or (0.0, 0.0, 0)
    assert (value, answers) == (pytest.approx(0.4), 20)
    assert upper == pytest.approx((4 + 1.645 * 5.263**0.5) / 10, abs=1e-3)


def test_coins_when_thrown_for_200_things_are_flagged_and_a_careful_pair_is_not() -> None:
    draw = np.random.default_rng(42)
    truth = draw.integers(0, 2, 200)
    careful = [np.where(draw.random(200) < 0.9, truth, 1 - truth) for _ in range(3)]
    letters = ["".join("ab"[each] for each in row) for row in (*careful, draw.integers(0, 2, 200))]
    told = [each for who, row in zip("wxyz", letters, strict=True) for each in said(who, row)]
    assert careless(told).keys() == {"z"}
    assert "no more than chance would" in careless(told)["z"][0]


def test_careful_reviewers_when_records_are_faultless_are_not_flagged(tmp_path: Path) -> None:
    voted = vote_all(record_study(tmp_path / "study", 3))  # all is well, confidence 4
    assert care(voted, voted.standing())["people"] == {}


# -- what a study has by default


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "run", sample_bundles(8))


def test_a_study_when_nothing_is_said_has_a_least_time_and_repeats_and_says_what_it_lacks(
    run: Path, tmp_path: Path
) -> None:
    made = make(tmp_path / "study", run, {}, Wanted(task="record", simulated=True))
    study = open_study(tmp_path / "study")
    assert study.protocol.floor == Floor() and study.protocol.dealt.repeats == 2
    assert all(sum(place.repeat for place in seat.places) == 2 for seat in study.seats.values())
    second, third = list(made.lines())[1:3]
    assert second.startswith("least time of a vote: 1 s for 20 words shown and 0.5 s for each answer")
    assert third == "repeated items of each seat: 2; gold items: none (--gold FILE gives some)"
    assert "controls of care that this study has not: no gold items" in lines(
        status(study, study.standing(), NOW)
    )


def test_a_study_when_a_preset_makes_it_keeps_the_design_of_its_paper(run: Path, tmp_path: Path) -> None:
    made = make(tmp_path / "study", run, {}, Wanted(preset="kathabench-review", simulated=True))
    dealt = open_study(tmp_path / "study").protocol.dealt
    assert dealt == Plan(raters=3, least=3, block=10)
    assert "repeated items of each seat: none, as in the paper of kathabench-review; " in "\n".join(
        made.lines()
    )


def test_a_study_when_seats_are_too_small_has_no_repeats_unless_they_are_asked_for(
    run: Path, tmp_path: Path
) -> None:
    made = make(tmp_path / "study", run, {"limit": 2}, Wanted(task="record", simulated=True), dry_run=True)
    assert made.document["care"]["repeats"] == 0
    with pytest.raises(ConfigError, match="too few to ask"):
        make(tmp_path / "study", run, {"limit": 2, "repeats": 2}, Wanted(task="record"), dry_run=True)
    lifted = Wanted(task="record", settings={"floor": None}, simulated=True)
    make(tmp_path / "study", run, {"limit": 2}, lifted)
    assert open_study(tmp_path / "study").protocol.floor is None
