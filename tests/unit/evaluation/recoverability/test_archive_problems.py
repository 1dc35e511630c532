"""Archives that cannot be scored, and what is said about them."""

import pytest

from fabula.errors import ConfigError, InputError
from fabula.evaluation.recoverability.definitions import Definitions
from fabula.evaluation.recoverability.score import score_folder


def quick():
    return Definitions(resamples=0)


def test_release_when_it_is_another_one_is_refused(bench):
    made, other = bench(2), bench(3, "other")
    made.ask(lambda *_: True)
    with pytest.raises(InputError, match="SHA-256"):
        score_folder(made.write(), other.release_folder, quick())


def test_item_when_judged_twice_with_different_answers_is_refused_with_both(bench):
    made = bench(1)
    made.ask(lambda *_: True)
    run = made.write()
    path = run / "judgements.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    answer = made.lines[-1].parsed["final_answer"]
    path.write_bytes(b"".join([*lines, lines[0].replace(answer.encode(), b"another")]))
    again = next(line for line in lines if b'"text_image"' in line)
    changed = again.replace(b'"supported"', b'"ambiguous"')
    path.write_bytes(b"".join([*lines, changed]))
    with pytest.raises(InputError, match="one answer to") as caught:
        score_folder(run, None, quick())
    assert "ambiguous" in str(caught.value) and "supported" in str(caught.value)


def test_item_when_the_same_line_stands_twice_counts_once(bench):
    made = bench(1)
    made.ask(lambda *_: True)
    run = made.write()
    path = run / "judgements.jsonl"
    path.write_bytes(path.read_bytes() * 2)
    assert score_folder(run, None, quick()).coverage[0].asked == 6


def test_line_when_it_cannot_be_read_is_named(bench):
    made = bench(1)
    made.ask(lambda *_: True)
    run = made.write()
    with (run / "judgements.jsonl").open("ab") as handle:
        handle.write(b"{}\n")
    with pytest.raises(InputError, match=r"judgements\.jsonl:19"):
        score_folder(run, None, quick())


def test_question_when_it_is_not_of_the_release_is_refused(bench):
    made = bench(1)
    made.ask(lambda *_: True)
    story = made.release.records[0].story_id
    made.line("question", story, "nowhere", "text", "refused")
    with pytest.raises(InputError, match="nowhere"):
        made.score()


def test_outputs_when_shown_under_text_only_are_refused(bench):
    made = bench(1)
    made.ask(lambda *_: True)
    line = made.lines.pop(0)
    made.lines.append(line.model_copy(update={"method": "m"}))
    with pytest.raises(InputError, match="under text"):
        made.score()


def test_split_when_chosen_leaves_the_others_out_and_says_so(bench):
    made = bench(6)
    made.ask(lambda *_: True)
    split = made.release.records[0].split
    there = sum(record.split == split for record in made.release.records)
    scores = score_folder(made.write(), None, quick(), splits=[split])
    assert scores.scope["stories"] == there < 6
    assert scores.notes == (f"{(6 - there) * 18} judgements are about stories that are not scored here",)
    with pytest.raises(ConfigError, match="nowhere"):
        score_folder(made.run, None, quick(), splits=["nowhere"])


def test_stories_when_only_some_of_the_release_were_judged_are_the_only_ones(bench):
    made = bench(4)
    chosen = made.release.records[1].story_id
    made.ask(lambda q, c, j: True if made.questions[q].story_id == chosen else None)
    scores = made.score()
    assert scores.scope["stories"] == 1
    assert scores.methods["m"].questions["total"] == 6
