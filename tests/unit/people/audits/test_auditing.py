"""Audits of drafts whose quality is known, with and without a model."""

import csv
import json
from itertools import pairwise

import pytest
from typer.testing import CliRunner

from fabula.cli.main import app
from fabula.errors import InputError, TargetError
from fabula.evaluation.stats.tables import cohen_kappa
from fabula.evaluation.stats.uncertainty import Uncertainty
from fabula.people.audits.auditing import AuditOptions, audit
from fabula.people.audits.compare import (
    MEASURES,
    Counts,
    Cut,
    Windows,
    cuts_of,
    matched,
    read_records,
    scores,
    windows,
)
from fabula.people.audits.form import RUBRIC, judged, read_form, score_text, write_form
from fabula.schemas.values import Score
from fabula.testing.asked_prompts import prompt_of
from fabula.testing.model_server import ModelServer

from .conftest import authored, drafted

LOW = {"window_diff", "pk"}
NOT_OF_GOLD = {"blind_draft", "blind_gold", "variants_read"}


def test_audit_when_the_draft_is_the_gold_record_is_perfect(written) -> None:
    gold = authored()
    made = audit(written(drafted(gold), "draft"), written(gold, "gold"))
    perfect = {name: 0.0 if name in LOW else 1.0 for name in MEASURES if name not in NOT_OF_GOLD}
    assert {name: made.scores[name].value for name in perfect} == perfect
    assert made.scores["blind_draft"].status == "undefined" and made.scores["variants_read"].value == 0
    assert made.cases == [] and made.states == {"checked": 8}


def merged(bundle) -> None:
    """The first two scenes are one: every later number is one lower."""
    record = bundle["record"]
    first, second, *rest = record["scenes"]
    joined = {**first, "scene_text": f"{first['scene_text']} {second['scene_text']}"}
    record["scenes"] = [{**scene, "scene_index": n} for n, scene in enumerate([joined, *rest], 1)]
    record["transitions"] = [
        {**link, "from_scene": n, "to_scene": n + 1} for n, link in enumerate(record["transitions"][1:], 1)
    ]


def test_boundaries_when_two_scenes_are_one_have_the_values_of_a_hand_count(as_file) -> None:
    gold = authored()
    scored = audit(as_file(drafted(gold, merged), "draft"), as_file(gold, "gold")).scores
    # Five sentences, one a scene: gold ends scenes after 1, 2, 3 and 4, the draft after 2, 3 and 4.
    assert scored["boundaries_precision"].value == 1.0
    assert scored["boundaries_recall"].value == pytest.approx(3 / 4)
    assert scored["boundaries_f1"].value == pytest.approx(6 / 7)
    # Near: the draft's 2 goes to gold's 1, its 3 to gold's 2, its 4 to gold's 3.
    assert scored["near_boundaries_recall"].value == pytest.approx(3 / 4)
    # Windows of two sentences: 1-2 holds two boundaries of gold and one of the draft; 2-3 and 3-4 are alike.
    assert scored["window_diff"].value == pytest.approx(1 / 3) and scored["pk"].value == 0
    # The action of the second scene is that of no scene that overlaps it.
    assert scored["actions_recall"].value == pytest.approx(4 / 5)
    assert scored["actions_precision"].value == 1.0
    assert (scored["boundaries_recall"].numerator, scored["boundaries_recall"].denominator) == (24, 32)


def spoiled(bundle) -> None:
    record = bundle["record"]
    other = {"causality": "quite another thing altogether", "transition_type": "moral_choice"}
    record["transitions"][0] |= other
    record["transitions"][1]["causality"] = None
    record["questions"][0]["accepted_answers"] = [record["questions"][0]["gold_answer"]]
    del record["questions"][-1]
    record["moral_label"] = None
    for variant in bundle["variants"]:
        variant["original_moral"] = None
    bundle["variants"][0]["contrastive_scene_text"] = "Nobody came."
    read = {"code": "variant_sound", "path": "$.variants[1]", "producer": "author:ana"}
    bundle["checks"].append({**read, "passed": True, "note": "n"})


def test_transitions_questions_variants_and_labels_when_spoiled_are_counted(as_file) -> None:
    gold = authored()
    made = audit(as_file(drafted(gold, spoiled), "draft"), as_file(gold, "gold"))
    scored = {name: score.value for name, score in made.scores.items()}
    assert scored["transition_types"] == pytest.approx(3 / 4)  # one of four
    # Two of the four causes of gold are there; the draft states three.
    assert (scored["causes_recall"], scored["causes_precision"]) == pytest.approx((2 / 4, 2 / 3))
    assert scored["questions_matched"] == pytest.approx(5 / 6)
    # "because: X" shares most words with "X", and stays accepted; the two answers of the sixth are gone.
    assert scored["answers"] == pytest.approx(10 / 12) and scored["answers_of_matched"] == 1.0
    assert (scored["moral_label"], scored["narrative_type"]) == (0.0, 1.0)
    assert (scored["variants_valid"], scored["variants_read"]) == pytest.approx((1 / 2, 1 / 2))
    assert scored["complete"] == 0.0
    groups = {case.group for case in made.cases}
    assert groups == {"causes", "questions", "variants", "labels"}
    assert all(case.note == "another cause" for case in made.cases if case.group == "causes")


def test_kappa_is_that_of_the_shared_function() -> None:
    import numpy as np

    cells = {("cause_effect", "cause_effect"): 5, ("cause_effect", "moral_choice"): 2,
             ("moral_choice", "moral_choice"): 3, ("consequence_reveal", "cause_effect"): 1}  # fmt: skip
    counts = Counts()
    counts.types.update(cells)
    order = ("cause_effect", "moral_choice", "consequence_reveal")
    table = np.array([[cells.get((own, other), 0) for other in order] for own in order], dtype=np.float64)
    score = scores([counts], Uncertainty(resamples=0))["transition_kappa"]
    assert score.value == pytest.approx(cohen_kappa(table))


def test_intervals_when_stories_differ_hold_the_value() -> None:
    rows = []
    for number in range(40):
        counts = Counts()
        counts.add("answers", number % 5, 4)
        rows.append(counts)
    score = scores(rows, Uncertainty())["answers"]
    assert score.low is not None and score.high is not None and score.low < score.value < score.high
    assert score_text(score).startswith("50.0 % [")
    assert score_text(Score(value=None, status="undefined", reason="x")) == "-"


def answers(asked):
    """Answer the first question with nothing, the second wrongly, and all others by what is accepted."""
    assert prompt_of(asked) == "katha/answer_questions"
    rows = [line for line in asked.text.splitlines() if line.startswith("[") and "] (" in line]
    replies = []
    for number, row in enumerate(rows, 1):
        status = "unclear" if number == 1 else "recoverable"
        said = "a green whale" if number == 2 else KNOWN[row.partition(") ")[2]]
        others = dict.fromkeys(("full", "own_words"))
        short = None if number == 1 else said
        replies.append({"number": number, "status": status, "short": short, **others})
    return {"answers": replies}


KNOWN = {
    question["question"]: question["gold_answer"]
    for bundle in authored(2)
    for question in bundle["record"]["questions"]
}


def test_blind_answers_when_a_model_is_asked_count_and_are_asked_once(as_file, tmp_path, monkeypatch) -> None:
    from fabula.kinds.verbs import continue_run

    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    gold = authored(2)
    draft, true = as_file(drafted(gold, spoiled), "draft"), as_file(gold, "gold")
    out = tmp_path / "audit"
    KNOWN["Which lesson does the story support?"] = "honesty"
    with ModelServer(answers) as server:
        models = {"openai:tested": {"base_url": server.openai_url}}
        options = AuditOptions(model="openai:tested", models=models, workers=0)
        made = audit(draft, true, out, options)
        calls = len(server.log)
        again = audit(draft, true, out, options)
        continue_run(out, workers=0)
        assert len(server.log) == calls == 4  # two records each of the draft and of gold
    assert again.as_json() == made.as_json() == json.loads((out / "audit.json").read_bytes())
    # Of five questions of a draft, the first is unclear, the second wrong; the moral may be wrong, too.
    blind = made.scores["blind_draft"]
    assert blind.denominator == 10 and made.scores["blind_gold"].denominator == 12
    unsound = [case for case in made.cases if case.group == "blind"]
    assert len(unsound) == 10 - blind.numerator >= 4
    assert {"the text is unclear", "answered: a green whale"} <= {case.note for case in unsound}
    page = (out / "audit.html").read_text("utf-8")
    assert "a green whale" in page and "Sound by blind answers" in page


def test_languages_when_there_are_several_have_their_own_measures(as_file) -> None:
    gold = authored(8)
    for bundle in gold[:3]:
        bundle["record"]["language"] = "hi"
    made = audit(as_file(drafted(gold), "draft"), as_file(gold, "gold"))
    assert {name: row["records"] for name, row in made.languages.items()} == {"en": 5, "hi": 3}
    assert made.languages["hi"]["scores"]["answers"]["value"] == 1.0
    # Six questions a story; which lesson and which came first are asked alike of all.
    counts = made.languages["en"]
    assert counts["questions"] == 5 * 6 and counts["distinct"] <= 2 + 5 * 4 and counts["openings"] <= 6 + 5
    assert any("questions in hi: 18 in 3 records" in line for line in made.lines())


# Boundaries of scenes, by hand.

TEXT = "A fox ran. A crow sat, and it sang. The cheese fell. The fox ate it. Night came. All slept."


def ends(*sentences: int) -> list[Cut]:
    """Boundaries at the ends of sentences, counted from 1."""
    return [Cut(10 * number, number - 1) for number in sentences]


def test_cuts_when_scenes_cover_the_text_are_places_and_sentences() -> None:
    places = 0, 22, TEXT.index(" The fox"), len(TEXT)
    scenes = [TEXT[start:end].strip() for start, end in pairwise(places)]
    assert cuts_of(TEXT, "en", scenes) == [Cut(22, 1), Cut(places[2], 2)]
    assert cuts_of(TEXT, "en", ["Another text."]) == []


@pytest.mark.parametrize(
    ("gold", "draft", "exact", "near"),
    [
        ((2, 4, 6), (2, 4, 6), 3, 3),
        ((2, 4, 6), (2, 5, 6), 2, 3),  # 5 is one sentence from 4, and 6 is taken by 6
        ((2, 4, 6), (3,), 0, 1),  # one boundary of the draft is matched once
        ((2,), (1, 2, 3), 1, 1),
        ((2, 4), (7, 8), 0, 0),
        ((), (1,), 0, 0),
    ],
)
def test_boundaries_when_matched_are_taken_once_and_in_order(gold, draft, exact, near) -> None:
    assert len(matched(ends(*gold), ends(*draft), None)) == exact
    assert len(matched(ends(*gold), ends(*draft), 1)) == near


def test_boundary_within_a_sentence_is_nearly_that_at_its_end_and_not_exactly() -> None:
    own, other = [Cut(20, 1)], [Cut(15, 1)]
    assert matched(own, other, None) == [] and matched(own, other, 1) == [(0, 0)]


@pytest.mark.parametrize(
    ("gold", "draft", "sentences", "counted"),
    [
        # The example of the card: 6 windows of 2 sentences, one with 1-0 and one with 1-2 boundaries.
        ((2, 4, 6), (2, 5, 6), 8, Windows(6, 1, 2)),
        ((2, 4, 6), (2, 4, 6), 8, Windows(6, 0, 0)),
        # 12 sentences, 2 gold scenes: k = 3. No boundary in the draft: windows 4, 5 and 6 hold that of gold.
        ((6,), (), 12, Windows(9, 3, 3)),
        ((1,), (1,), 2, Windows(0, 0, 0)),
    ],
)
def test_windows_when_counted_by_hand_are_these(gold, draft, sentences, counted) -> None:
    assert windows(ends(*gold), ends(*draft), sentences) == counted


# The form for people: written, filled, read back.


@pytest.fixture
def drafts(as_file):
    return read_records(as_file(drafted(authored(8)), "draft"))


def filled(source, target, fill) -> None:
    """Fill a form: ``fill`` gives the columns sound and reason of a row."""
    with source.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for number, row in enumerate(rows):
        row["sound"], row["reason"] = fill(number, row)
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_form_when_written_has_parts_of_each_kind_and_the_same_for_the_same_seed(drafts, tmp_path) -> None:
    one, two, other = (tmp_path / name for name in ("one.csv", "two.csv", "other.csv"))
    assert write_form(one, drafts, 5) == write_form(two, drafts, 5) == 20
    write_form(other, drafts, 5, seed=7)
    assert one.read_bytes() == two.read_bytes() != other.read_bytes()
    with one.open(encoding="utf-8", newline="") as file:
        kinds = [row["kind"] for row in csv.DictReader(file)]
    assert {kind: kinds.count(kind) for kind in kinds} == dict.fromkeys(RUBRIC, 5)
    with pytest.raises(TargetError, match="already"):
        write_form(one, drafts, 5)


def test_form_when_filled_is_counted_with_reasons_and_agreement(drafts, tmp_path) -> None:
    form, first, second = (tmp_path / name for name in ("form.csv", "ana.csv", "ben.csv"))
    write_form(form, drafts, 20)
    said = {"question": "guessable", "variant": "not_fluent", "cause": "wrong", "boundary": "too_late"}

    def by_ana(number, row):
        return ("no", said[row["kind"]]) if number % 4 == 0 else ("yes", "")

    def by_ben(number, row):
        return ("", "") if number % 2 else by_ana(number, row)

    filled(form, first, by_ana)
    filled(form, second, by_ben)
    people = judged([read_form(path, drafts) for path in (first, second)], drafts, Uncertainty())
    ana = people["readers"]["ana.csv"]
    with form.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for kind, row in ana.items():
        places = [place for place, unit in enumerate(rows) if unit["kind"] == kind]
        wrong = sum(place % 4 == 0 for place in places)
        assert row["reasons"] == {said[kind]: wrong}
        assert (row["sound"]["numerator"], row["sound"]["denominator"]) == (len(places) - wrong, len(places))
        assert row["sound"]["low"] < row["sound"]["value"] < row["sound"]["high"]
    assert {row["kind"]: row["kappa"] for row in people["agreement"]} == dict.fromkeys(RUBRIC, 1.0)
    assert sum(row["judged"] for row in people["agreement"]) == (len(rows) + 1) // 2


def test_line_when_it_says_something_else_is_named(drafts, tmp_path, refusals, snapshot) -> None:
    form, path = tmp_path / "form.csv", tmp_path / "filled.csv"
    write_form(form, drafts, 1)

    def read(said: tuple[str, str]) -> None:
        filled(form, path, lambda _, row: said if row["kind"] == "question" else ("", ""))
        read_form(path, drafts)

    wrong = [("maybe", ""), ("no", ""), ("no", "ugly"), ("yes", "guessable")]
    assert refusals(read, wrong) == snapshot


def test_form_of_another_draft_is_refused(drafts, as_file, tmp_path) -> None:
    write_form(tmp_path / "form.csv", drafts, 2)

    def reworded(bundle):
        for part in bundle["record"]["questions"]:
            part["question"] += "!"

    other = read_records(as_file(drafted(authored(8), reworded), "other"))
    with pytest.raises(InputError, match="a part of this draft"):
        read_form(tmp_path / "form.csv", other)
    with pytest.raises(InputError, match="cannot be read"):
        read_form(tmp_path / "none.csv", drafts)


# ``fabula audit`` as a user types it.


@pytest.fixture
def command(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gold = authored(8)
    written(gold, "gold")
    written(drafted(gold), "draft")

    def run(*words):
        done = CliRunner().invoke(app, ["audit", *words])
        return done.exit_code, done.output

    return run


def test_audit_when_compared_prints_shares_with_counts_and_writes_a_page(command, tmp_path) -> None:
    code, output = command("draft", "--gold", "gold", "--out", "audit")
    assert code == 0 and "Decisive acts, recall" in output and "100.0 % [63, 100] 40 of 40" in output
    assert "records: 8 checked" in output and (tmp_path / "audit" / "audit.html").is_file()
    code, output = command("draft", "--gold", "gold", "--json")
    assert code == 0 and json.loads(output)["scores"]["answers"]["value"] == 1.0
    code, output = command("draft", "--gold", "gold", "--format", "csv")
    assert code == 0 and "questions,Answers,value,1.0,0.6305833524471808,1.0," in output
    assert command("draft", "--gold", "gold", "--format", "csv", "--json")[0] == 2


def test_gold_when_nobody_stands_for_it_is_refused_and_else_named_in_the_first_line(command, written) -> None:
    assert command("draft", "--gold", "gold")[1].startswith("gold records by: author:")
    written(drafted(authored(8)), "rules")
    code, output = command("draft", "--gold", "rules")
    assert code and "for 8 of these nobody stands: a program or nobody" in " ".join(output.split()), output


def test_form_when_sampled_is_written_and_read_back(command, tmp_path) -> None:
    code, output = command("draft", "--sample", "3", "--out", "audit")
    assert code == 0 and "12 lines" in output
    form = tmp_path / "audit" / "form.csv"
    text = form.read_text("utf-8").replace(",,,not_answerable", ",no,guessable,not_answerable")
    form.write_text(text, "utf-8")
    code, output = command("draft", "--read", "audit/form.csv")
    assert code == 0 and "0 of 3" in output and "3 guessable" in output
    code, output = command("draft", "--sample", "3")
    assert code == 2 and "--out" in output


def test_audit_when_a_folder_is_no_records_says_what_it_is(command, tmp_path) -> None:
    (tmp_path / "empty").mkdir()
    code, output = command("empty", "--gold", "gold")
    assert code != 0 and "empty folder" in output
