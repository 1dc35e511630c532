"""The report on an evaluation of storyboards: numbers as scored, verdicts as counted."""

import json
from collections import Counter
from pathlib import Path

import pytest

from fabula.errors import InputError
from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.katha.report.cases import ALL, TYPICAL, WORST
from fabula.evaluation.katha.report.page import katha_report
from fabula.evaluation.recoverability.matching import Definitions
from fabula.evaluation.recoverability.score import score_folder
from fabula.evaluation.report.formats import render_page, scores_csv
from fabula.evaluation.report.model import ReportDocument
from fabula.evaluation.report.showing import Accounts, sentences
from fabula.kinds.evaluations import make_report
from fabula.schemas.canonical import jsonl_lines, write_atomic
from fabula.schemas.judgement import Judgement
from fabula.testing.drawn_storyboards import draw_outputs
from fabula.testing.simulated_evaluations import Simulated, write_simulated
from fabula.testing.simulated_judgements import Truth

FEW = Definitions(resamples=50)
METHODS = (
    ("alpha", Truth()), ("beta", Truth(image=(0.3,) * 6, silent=0.2)), ("gamma", Truth(image=(0.6,) * 6)),
)  # fmt: skip


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Simulated:
    """24 stories, 144 questions, three methods, three judges."""
    return write_simulated(tmp_path_factory.mktemp("simulated"), 144, METHODS)


@pytest.fixture(scope="module")
def report(simulated: Simulated) -> ReportDocument:
    return katha_report(simulated.run, simulated.release, definitions=FEW)


def test_report_when_compared_with_the_scores_has_their_numbers(simulated, report):
    scores = score_folder(simulated.run, simulated.release, FEW)
    for row in report.headline.rows:
        main = scores.methods[row.label].gaps["question"]["filtered"]
        assert row.scores["gap"] == main.gap
        assert row.scores["latent_gap"] == main.latent_gap
        assert row.scores["ambiguity"] == scores.methods[row.label].ambiguity
    one = report.comparisons[0]
    assert (one.first, one.second) == ("alpha", "beta")
    assert one.difference.value == scores.comparisons[0].difference
    assert one.p["Wilcoxon"] == scores.comparisons[0].p_wilcoxon_corrected
    assert one.verdict == "The two tests disagree."  # 50 resamples are too few for three pairs
    assert report.facts["Stories"] == "24" and report.facts["Questions"] == "144"


def test_report_when_counted_accounts_for_every_reply(simulated: Simulated, report: ReportDocument) -> None:
    archive = read_archive(simulated.run)
    table = next(one for one in report.accounting if one.name == "outcomes")
    expected = Counter((one.judge.spec, one.outcome) for one in archive.judgements)
    for row in table.rows:
        told = {name: count for name, count in row.values.items() if name != "replies" and count}
        assert told == {outcome: n for (judge, outcome), n in expected.items() if judge == row.label}
        assert row.values["replies"] == sum(told.values())
    triples = next(one for one in report.accounting if one.name == "triples")
    assert len(triples.rows) == 8


def test_cost_when_worked_by_hand_adds_what_is_known_and_says_what_is_not(simulated: Simulated) -> None:
    one = read_archive(simulated.run).judgements[0]

    def reply(spec: str, input: int | None, output: int | None, cost: float | None, **more: str) -> Judgement:
        named = None if spec == "b" else f"{spec}-{output}"
        judge = one.judge.model_copy(update={"spec": spec, "reported_model": named})
        known = {"judge": judge, "input_tokens": input, "output_tokens": output, "cost": cost, **more}
        return one.model_copy(update=known)

    replies = [
        reply("a", 100, 7, 0.25), reply("a", None, 5, None), reply("a", 30, None, 0.125),
        reply("b", None, None, None), reply("a", 1000, 1000, 9.0, kind="match"), reply("c", 40, None, None),
    ]  # fmt: skip
    rows = {row.label: row.values for row in Accounts.of(replies).cost_table().rows}
    names = ("replies", "input_tokens", "output_tokens", "usd", "without_price", "reported")
    assert [rows["a"][name] for name in names] == [3, 130, 12, 0.375, 1, "a-5, a-7, a-None"]
    assert [rows["b"][name] for name in names] == [1, None, None, None, 1, None]
    assert [rows["c"][name] for name in names] == [1, 40, None, None, 1, "c-None"], "unknown is not 0"


def test_gaps_of_stories_when_drawn_are_all_there_also_where_everything_is_lost(
    report: ReportDocument,
) -> None:
    gaps = next(figure for figure in report.figures if figure.name == "gap_ridges")
    assert gaps.edges[-1] == 1.0 and any(ridge.counts[-1] for ridge in gaps.ridges)
    assert [sum(ridge.counts) for ridge in gaps.ridges] == [24, 24, 24]


def test_verdicts_when_joined_by_majority_are_the_combined_ones(report: ReportDocument) -> None:
    items = [item for case in report.cases.shown for item in case.items]
    assert items
    for item in items:
        for condition, combined in item.combined.items():
            votes = Counter(one.correct for one in item.verdicts if one.condition == condition)
            assert sum(votes.values()) == 3
            answered = votes[True] + votes[False]
            assert combined == (votes[True] > votes[False] if answered else None)
        assert item.valid == bool(item.combined["text_image"])


def test_gap_of_a_case_when_recomputed_is_that_of_its_valid_questions(report: ReportDocument) -> None:
    for case in report.cases.shown:
        valid = [item.combined for item in case.items if item.valid]
        if not valid:
            assert case.score.status == "undefined"
            continue
        lost = sum(one["text"] for one in valid) - sum(one["image"] for one in valid)
        assert case.score.value == pytest.approx(lost / len(valid))


def test_cases_when_there_are_many_are_the_worst_and_typical_ones(report: ReportDocument) -> None:
    cases = report.cases
    assert cases.total > ALL
    assert Counter(case.why for case in cases.shown) == {"worst": WORST, "typical": TYPICAL}
    values = [case.score.value for case in cases.shown]
    assert values[:WORST] == sorted(values[:WORST], reverse=True)
    assert min(values[:WORST]) >= max(values[WORST:])


def test_cases_when_there_are_few_are_all_shown_with_their_frames(tmp_path: Path) -> None:
    small = write_simulated(tmp_path, 12, (("alpha", Truth()),))
    outputs = draw_outputs(tmp_path / "alpha", small.items.records)
    document = katha_report(small.run, small.release, [outputs], FEW)
    assert len(document.cases.shown) == document.cases.total <= ALL
    shown = [item.id for case in document.cases.shown for item in case.items]
    assert sorted(shown) == sorted(key.question_id for key in small.items.keys)
    for case in document.cases.shown:
        assert case.frames and all(frame.data for frame in case.frames)
        if case.place.startswith("scene "):
            first, *last = case.place.removeprefix("scene ").split(" to ")
            assert case.frames[0].label == f"Scene {first}"
            assert case.frames[-1].label == f"Scene {(last or [first])[0]}"
            assert all(frame.text for frame in case.frames)
    assert document.comparisons == () and "one method" in document.comparison_note
    assert document.warnings[0].startswith("Simulation: ")
    assert document.warnings[1].startswith("1 of 2 judged stories is of the split train")
    assert document.warnings[2].startswith("2 stories: too few for intervals")
    render_page(document)


def test_report_when_a_judge_is_silent_says_so_first(tmp_path: Path, simulated: Simulated) -> None:
    archive = read_archive(simulated.run)
    judge = archive.judgements[0].judge.spec
    lines = []
    for one in archive.judgements:
        silent = {"outcome": "refused", "reason": "would not", "parsed": None, "raw": None}
        lines.append(one.as_json() | (silent if one.judge.spec == judge else {}))
    write_atomic(tmp_path / "judgements.jsonl", jsonl_lines(lines))
    (tmp_path / "evaluation.json").write_bytes((simulated.run / "evaluation.json").read_bytes())
    document = katha_report(tmp_path, simulated.release, definitions=FEW)
    assert any(one.startswith(f"{judge} answered 0 of ") for one in document.warnings)
    refused = [
        one for case in document.cases.shown for item in case.items for one in item.verdicts
        if one.outcome == "refused" and one.judge == judge
    ]  # fmt: skip
    assert refused and all(one.correct is None and one.answer == "would not" for one in refused)
    table = next(one for one in document.agreement if one.name == "agreement")
    assert all(score.value is not None for score in table.rows[0].scores.values())


def test_report_when_generations_are_invalid_or_leak_says_so_first(tmp_path, simulated):
    manifest = json.loads((simulated.run / "evaluation.json").read_bytes())
    story = simulated.items.records[0].story_id
    manifest["subject"]["methods"]["alpha"] |= {
        "invalid": [{"story_id": story, "seed": None, "codes": ["missing"]}],
        "leaks": [{"story_id": story, "seed": None, "leaks": []}],
    }
    (tmp_path / "evaluation.json").write_text(json.dumps(manifest))
    (tmp_path / "judgements.jsonl").write_bytes((simulated.run / "judgements.jsonl").read_bytes())
    document = katha_report(tmp_path, simulated.release, definitions=FEW)
    told = [one for one in document.warnings if "of alpha" in one]
    assert told[0] == "1 of 24 generations of alpha are invalid and could not be judged."
    assert told[1].startswith("The leakage scan kept 1 storyboard of alpha")
    table = next(one for one in document.accounting if one.name == "generations")
    assert [row.values["generations_invalid"] for row in table.rows] == [1, 0, 0]
    assert all((case.method, case.unit) != ("alpha", story) for case in document.cases.shown)


def test_report_when_the_release_is_another_is_refused(tmp_path: Path, simulated: Simulated) -> None:
    other = write_simulated(tmp_path, 12, METHODS)
    with pytest.raises(InputError, match="SHA-256"):
        make_report(simulated.run, other.release)


def test_report_when_nothing_was_answered_yet_shows_no_score(tmp_path: Path, simulated: Simulated) -> None:
    (tmp_path / "evaluation.json").write_bytes((simulated.run / "evaluation.json").read_bytes())
    (tmp_path / "judgements.jsonl").write_bytes(b"")
    document = make_report(tmp_path, simulated.release)
    assert {one.value for row in document.headline.rows for one in row.scores.values()} == {None}
    assert "alpha" in render_page(document)


def test_controls_when_there_are_three_methods_hold_the_numbers_of_the_scores(simulated, report):
    scores = score_folder(simulated.run, simulated.release, FEW)
    (table,) = report.controls
    found: dict[str, list[str]] = {}
    for row in table.rows:
        found.setdefault(row.label, []).append(f"{row.values['control']}: {row.values['found']}")
    rho = scores.robustness["filtering"]["raw_filtered"]["value"]
    assert found["Filtering artifact"][0].startswith(
        f"Ranking by raw and by filtered STG: \N{GREEK SMALL LETTER RHO} = {rho:.2f}, 3 pairs"
    )
    assert len(found["Single-judge artifact"]) == 6, "three pairs of judges, by methods and by stories"
    mean = scores.robustness["half_data"]["mean"]
    assert found["Dataset-size artifact"][0].startswith(
        f"Ranking by 200 random halves of the stories and by all: mean {mean:.2f}"
    )
    assert len(found["Moral-target-only effect"]) == 3
    page = render_page(report)
    assert 'id="controls"' in page and "Filtering artifact" in page
    assert "controls,Filtering artifact,found" in scores_csv(report)


def test_controls_when_there_is_one_method_say_why_they_say_nothing(tmp_path: Path) -> None:
    one = write_simulated(tmp_path, 36, METHODS[:1])
    (table,) = katha_report(one.run, one.release, definitions=FEW).controls
    values = {row.label: str(row.values["found"]) for row in table.rows}
    assert "at least 3 are needed" in values["Filtering artifact"]
    assert "fewer than 3 methods" in values["Dataset-size artifact"]


def test_notes_when_they_begin_with_a_name_leave_it_as_it_is_written() -> None:
    notes = ["table-detector: small programs", "each question is asked", "2 stories: too few"]
    assert [*sentences(notes)] == [
        "table-detector: small programs.", "Each question is asked.", "2 stories: too few.",
    ]  # fmt: skip
