"""How far final fields are from drafted ones: worked values, whose changes count, and sums that add."""

import json

import pytest

from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.builders.katha.measure_edits import EditSummary, distance, measure

NOTHING = {"compared": 1, "changed": 0, "repaired": 0, "edited": 0, "distance": 0.0}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("kitten", "sitting", 3 / 7),  # k-s, e-i, +g; the longer has 7 characters
        ("same", "same", 0.0),
        (None, "new", 1.0),
        ("old", None, 1.0),
        (None, None, 0.0),
        (["ant", "dove"], ["ant"], 5 / 8),  # "ant\\ndove" against "ant"
        (["ant"], ["ant"], 0.0),
        ([1, 2], [1, 3], 1 / 3),
        ("🐜", "🕊", 1.0),  # one code point each
    ],
)
def test_distance_when_of_two_values_is_the_normalised_levenshtein_distance(before, after, expected) -> None:
    assert distance(before, after) == pytest.approx(expected)
    assert distance(after, before) == pytest.approx(expected)


def edit(tale, path, old, new):
    return {"id": "kb25k_0001", "path": path, "old": old, "new": new, "who": "ann", "why": "test"}


@pytest.fixture
def tale(drafted):
    return drafted["kb25k_0001"]


def measured(katha, fields):
    done = {**fields, **katha.run_stage("apply_edits", fields).fields}
    return katha.run_stage("measure_edits", done).fields["edit_distances"]


def test_fields_when_not_drafted_or_copies_are_left_out(katha, tale) -> None:
    sums = measured(katha, tale)
    # The author gave both labels and the title.
    assert not {"$.title", "$.moral_label", "$.narrative_type"} & sums.keys()
    assert not {"$.scenes[*].story_id", "$.variants[*].contrastive_story_text"} & sums.keys()
    unlabelled = {**tale, "story": {**tale["story"], "moral_label": None}, "labels_by": "rules@1"}
    assert measured(katha, unlabelled)["$.moral_label"] == NOTHING


def test_field_when_edited_counts_once_with_its_distance(katha, tale) -> None:
    old = tale["questions"][0]["question"]
    change = edit(tale, "$.questions[0].question", old, old + "!")
    entry = measured(katha, {**tale, "edits": [change]})["$.questions[*].question"]
    assert entry == {
        "compared": len(tale["questions"]),
        "changed": 1,
        "repaired": 0,
        "edited": 1,
        "distance": round(1 / (len(old) + 1), 6),
    }


def test_field_when_repaired_and_edited_back_is_not_changed(katha, tale) -> None:
    old = tale["scenes"][0]["state"]
    scenes = [{**scene, "state": "calm"} if n == 0 else scene for n, scene in enumerate(tale["scenes"])]
    fields = {
        **tale,
        "repaired": {**tale["repaired"], "scenes": scenes},
        "repaired_by": {**tale["repaired_by"], "scenes": "model"},
    }
    assert measured(katha, fields)["$.scenes[*].state"] == {
        "compared": 5,
        "changed": 1,
        "repaired": 1,
        "edited": 0,
        "distance": round(distance(tale["scenes"][0]["state"], "calm"), 6),
    }
    back = {**fields, "edits": [edit(tale, "$.scenes[0].state", "calm", old)]}
    assert measured(katha, back)["$.scenes[*].state"] == {
        "compared": 5,
        "changed": 0,
        "repaired": 1,
        "edited": 1,
        "distance": 0.0,
    }


def test_summary_when_stories_come_in_any_order_or_in_parts_is_the_same(drafted) -> None:
    def sums(fields, state):
        scenes = [{**scene, "state": state} for scene in fields["scenes"]]
        draft = fields["draft"]
        return measure(draft, draft, {**draft, "scenes": scenes})

    rows = [sums(fields, f"state {n} of many") for n, fields in enumerate(drafted.values())]
    documents = []
    for order in (rows, rows[::-1], rows[7:] + rows[:7]):
        summary = EditSummary()
        for row in order:
            summary.add(row)
        documents.append(summary.document())
    assert documents[0] == documents[1] == documents[2]
    state = documents[0]["stages"]["draft_scenes"]["fields"]["$.scenes[*].state"]
    assert (state["compared"], state["changed"], state["share_changed"]) == (120, 120, 1.0)
    assert state["distance"] == pytest.approx(sum(row["$.scenes[*].state"]["distance"] for row in rows))
    assert documents[0]["stages"]["write_questions"]["all"]["mean_distance"] == 0.0


def test_run_when_an_edit_is_applied_keeps_rows_and_summary(katha, tmp_path) -> None:
    out = tmp_path / "r"
    options = BuildOptions(created_at="2026-01-01T00:00:00Z", workers=0, limit=2)
    build_katha(katha.samples / "stories.jsonl", out, options)
    before = json.loads((out / "edit_distances.json").read_text("utf-8"))
    record = json.loads((out / "records.jsonl").read_text("utf-8").splitlines()[0])["payload"]["record"]
    change = edit(record, "$.scenes[0].action", record["scenes"][0]["action"], "The ant drinks")
    (out / "edits.jsonl").write_text(json.dumps(change) + "\n", "utf-8")
    build_katha(katha.samples / "stories.jsonl", out, options)
    after = json.loads((out / "edit_distances.json").read_text("utf-8"))
    rows = [json.loads(line) for line in (out / "edit_distances.jsonl").read_text("utf-8").splitlines()]
    assert [row["id"] for row in rows] == ["kb25k_0001", "kb25k_0002"]
    assert before["stages"]["draft_scenes"]["all"]["changed"] == 0
    assert after["stages"]["draft_scenes"]["fields"]["$.scenes[*].action"]["edited"] == 1
    assert after["stories"] == 2
