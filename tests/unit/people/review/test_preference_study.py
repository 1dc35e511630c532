"""A study of preferences from its design to the tests that calibrate makes, with people of known taste."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import httpx2 as httpx
import pytest
from scipy.stats import wilcoxon

from fabula.kinds.evaluations import calibrate
from fabula.kinds.making_studies import Wanted, make
from fabula.people.review.exporting import export_files
from fabula.people.review.folder import Study, invite, open_study
from fabula.people.review.journal import VoteJournal
from fabula.people.review.serve.routes import application
from fabula.people.review.serve.server import Server
from fabula.schemas.canonical import Json
from fabula.testing.review_page import Page
from fabula.testing.review_studies import NOW
from fabula.testing.simulated_reviewers import Policy, SimulatedReviewer
from fabula.testing.study_sources import storyboard_evaluation

TASTE = {"Q1": (2, 1, 1, 0, -1), "Q15": (2, 2, 1, 2, 1)}
"""Criterion -> what each of five people says of every story: positive favours the first method."""


def policy(study: Study, number: int) -> Policy:
    """Return what a person says: their taste, on whatever side the first method stands."""
    flips = {place.item: place.flip for seat in study.seats.values() for place in seat.places}
    by_seat = {
        seat.number: {place.item: place.flip for place in seat.places} for seat in study.seats.values()
    }

    def answer(page: Page) -> Mapping[str, Json]:
        item = page.key.partition("#")[0]
        assert item in flips
        sign = -1 if by_seat[number][item] else 1
        return {asked.place: sign * TASTE.get(asked.place, (0,) * 5)[number - 1] for asked in page.fields}

    return answer


@pytest.fixture(scope="module")
def voted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Study, Path]:
    folder = tmp_path_factory.mktemp("preferences")
    run = storyboard_evaluation(folder / "evaluation", 4).run
    first, second = json.loads((run / "evaluation.json").read_bytes())["subject"]["methods"]
    given = {"pairs": (f"{first}:{second}",), "raters": 5, "least": 5}
    make(folder / "study", run, given, Wanted(task="preference", simulated=True))
    study = open_study(folder / "study")

    async def take_part(server: Server) -> None:
        transport = httpx.ASGITransport(app=application(server))
        for number, each in enumerate(invite(study, server.journal, NOW, 5), 1):
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client:
                await SimulatedReviewer(client, policy(study, number)).take_part(each.link)

    with VoteJournal(study.folder) as journal:
        asyncio.run(take_part(Server(study, journal, lambda: NOW)))
    export_files(study, folder / "votes")
    return run, study, folder / "votes"


def test_preferences_when_people_have_a_taste_end_in_the_tests_of_it(voted: tuple[Path, Study, Path]) -> None:
    run, _, votes = voted
    document = calibrate(run, votes).document
    assert document["people"]["raters"] == 5
    assert document["people"]["simulated"] == document["people"]["lines"]["preference"]
    said = {row["criterion"]: row for row in document["preferences"]}
    for criterion, taste in TASTE.items():
        values = [value for value in taste for _ in range(4)]
        assert said[criterion]["mean"]["value"] == pytest.approx(sum(values) / len(values))
        expected = wilcoxon(values, alternative="greater", zero_method="wilcox", method="approx")
        test, tests = said[criterion]["test"], said[criterion]["tests"]
        assert test["positive"] == pytest.approx(float(expected.statistic))
        assert said[criterion]["p_corrected"] == pytest.approx(min(1.0, test["p_value"] * tests))


def test_sides_when_dealt_are_turned_for_some_and_the_same_taste_comes_out(
    voted: tuple[Path, Study, Path],
) -> None:
    _, study, votes = voted
    flips = [place.flip for seat in study.seats.values() for place in seat.places]
    assert 0 < sum(flips) < len(flips)
    rows = [json.loads(line) for line in (votes / "votes.jsonl").read_text("utf-8").splitlines()]
    by_rater: dict[str, set[int]] = {}
    for row in rows:
        if row["criterion"] == "Q1":
            by_rater.setdefault(row["rater"], set()).add(row["value"])
    assert sorted(next(iter(values)) for values in by_rater.values()) == sorted(TASTE["Q1"])
    assert {len(values) for values in by_rater.values()} == {1}
