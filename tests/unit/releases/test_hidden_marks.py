"""What gives a hidden story away, and what public stories may share with it."""

import random
import re
from pathlib import Path

import pytest

from fabula.errors import InputError
from fabula.kinds.verbs import pack, verify
from fabula.releases.hidden.marks import Marks
from fabula.releases.options import PackOptions
from fabula.testing.endurance import rounds
from fabula.testing.katha_folders import rehash, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.validators.katha.field_rules import record_hashes

PREFACE = (
    "On the road the spirit on the king's back began a tale, as it had begun one every night before, "
    "and the king listened without a word. "
)


def framed(bundle):
    """The same bundle with a preface that every tale of the frame has."""
    record = bundle["record"]
    scene = record["scenes"][0]
    old = scene["scene_text"]
    scene["scene_text"] = PREFACE + old
    record["source_text"] = PREFACE + record["source_text"]
    record["story_text"] = PREFACE + record["story_text"]
    for variant in bundle["variants"]:
        variant["contrastive_story_text"] = PREFACE + variant["contrastive_story_text"]
        if variant["changed_scene_id"] == 1:
            variant["contrastive_scene_text"] = PREFACE + variant["contrastive_scene_text"]
    record["provenance"].update(record_hashes(record, bundle["variants"]))
    return bundle


def leaks(release: Path, **options) -> list[str]:
    return [str(issue) for issue in verify(release, **options).issues if issue.code == "hidden-leak"]


PUBLIC, HIDDEN = 0, 4
"""Places of a public and of the hidden one among five samples."""
SENTENCE = "And so they all went home together and slept till the morning."


def told(bundle, place: int, sentence: str, *, alone: bool = False):
    """The same bundle with a sentence more at the end of a scene, or with nothing else there."""
    record = bundle["record"]
    old = record["scenes"][place]["scene_text"]
    new = sentence if alone else f"{old} {sentence}"
    record["scenes"][place]["scene_text"] = new
    for name in ("source_text", "story_text"):
        record[name] = record[name].replace(old, new)
    for variant in bundle["variants"]:
        variant["contrastive_story_text"] = variant["contrastive_story_text"].replace(old, new)
    rehash(bundle)


def asked(bundle, words: str) -> None:
    bundle["record"]["questions"][0]["question"] = words
    rehash(bundle)


@pytest.mark.parametrize("place", [4, 2], ids=["at its end", "within"])
def test_a_closing_sentence_when_a_public_source_has_it_too_is_no_leak(tmp_path, place):
    bundles = sample_bundles(5)
    told(bundles[HIDDEN], 4, SENTENCE, alone=True)
    told(bundles[PUBLIC], place, SENTENCE)
    packed = pack(
        write_run(tmp_path / "run", bundles), tmp_path / "made", PackOptions("0.1.0", allow_drafts=True)
    )
    assert packed.hidden is not None
    assert leaks(packed.folder, quick=True) == []


def test_pack_when_a_public_question_quotes_a_hidden_story_is_refused_and_leaves_nothing(tmp_path):
    bundles = sample_bundles(5)
    asked(bundles[PUBLIC], bundles[HIDDEN]["record"]["scenes"][0]["scene_text"])
    run = write_run(tmp_path / "run", bundles)
    with pytest.raises(InputError, match=r"(?s)hidden-leak.*withdraw one of the two stories") as refused:
        pack(run, tmp_path / "made", PackOptions("0.1.0", allow_drafts=True))
    assert "annotations.jsonl:1" in str(refused.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_a_question_when_public_and_hidden_stories_are_asked_the_same_is_no_leak(tmp_path):
    bundles = sample_bundles(5)
    for number in (PUBLIC, HIDDEN):
        asked(bundles[number], "Which moral does the story as a whole bear out, from its opening to its end?")
    packed = pack(
        write_run(tmp_path / "run", bundles), tmp_path / "made", PackOptions("0.1.0", allow_drafts=True)
    )
    assert leaks(packed.folder, quick=True) == []


@pytest.mark.slow
@pytest.mark.endurance
def test_pack_when_stories_share_what_they_happen_to_share_writes_only_what_verify_accepts(tmp_path):
    outcomes = set()
    for seed in range(rounds(100, share=20)):
        chosen, bundles = random.Random(seed), sample_bundles(5)
        secret = bundles[HIDDEN]["record"]
        told(
            bundles[HIDDEN], chosen.randrange(5), SENTENCE * chosen.randint(1, 3), alone=chosen.random() < 0.5
        )
        pieces = [SENTENCE, SENTENCE * 2, secret["scenes"][1]["scene_text"], f"It was {secret['story_id']}."]
        for _ in range(chosen.randint(1, 3)):
            if chosen.random() < 0.7:
                told(bundles[chosen.randrange(4)], chosen.randrange(5), chosen.choice(pieces))
            else:
                asked(bundles[chosen.randrange(4)], chosen.choice(pieces))
        folder = tmp_path / str(seed)
        try:
            pack(write_run(folder / "run", bundles), folder / "made", PackOptions("0.1.0", allow_drafts=True))
        except InputError as error:
            assert "hidden-leak" in str(error)
            outcomes.add("refused")
        else:
            assert [str(issue) for issue in verify(folder / "made", readers=False).errors] == []
            outcomes.add("packed")
    assert outcomes == {"packed", "refused"}  # of five seeds, too


@pytest.mark.slow
def test_tales_of_one_frame_when_packed_are_no_leak(tmp_path):
    run = write_run(tmp_path / "run", [framed(bundle) for bundle in sample_bundles(24)])
    packed = pack(run, tmp_path / "frame-0.1.0", PackOptions("0.1.0", allow_drafts=True))
    assert packed.hidden is not None
    assert leaks(packed.folder, quick=True) == []


TALE = " ".join(f"word{number}" for number in range(60))
OPENING = TALE[:120]
CHINESE = (
    "从前有一个渔夫住在海边每天清晨出海打鱼" * 2
    + "有一天他捕到了一条会说话的金鱼金鱼请求他放了自己并答应实现他的三个愿望" * 2
)


@pytest.fixture
def marks() -> Marks:
    """What gives away one English and one Chinese story."""
    quotes = frozenset({OPENING, TALE[-120:], CHINESE[:80], "one two three four five and nothing more of it"})
    return Marks(re.compile(b"kb25k_0002"), quotes, {"a_1": TALE, "a_2": CHINESE}, frozenset())


@pytest.mark.parametrize(
    "text",
    [
        OPENING,
        f"He said: {OPENING} and so on",
        OPENING.replace(" ", "\n   "),
        f"{'x ' * 500}{TALE[-120:]}",
        f"说：{CHINESE[:80]}。",
    ],
    ids=["alone", "within", "wrapped", "late", "unspaced"],
)
def test_a_quote_when_it_stands_anywhere_in_a_text_is_found(marks, text):
    assert any("characters of a hidden story, from" in found for found in marks.findings(text))
    assert marks.findings(text)  # and again
    assert not any(part in found for found in marks.findings(text) for part in (OPENING[:20], CHINESE[:13]))


@pytest.mark.parametrize("text", ["", "short", OPENING[1:-1], OPENING.upper(), "x" * 5000, " " * 500])
def test_a_text_when_it_holds_no_quote_is_clean(marks, text):
    assert marks.findings(text) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (TALE.replace("word20", "other").upper(), "a text like the hidden story a_1"),
        (
            TALE.upper() + " ".join(f"more{number}" for number in range(200)),
            "holds most of the hidden story a_1",
        ),
        (CHINESE[20:], "a text like the hidden story a_2"),
        (TALE.upper()[: len(TALE) // 2] + "x" * 300, None),
    ],
    ids=["a word less", "among others", "unspaced", "half"],
)
def test_a_text_when_it_is_like_a_hidden_story_is_told(marks, text, told):
    found = [one for one in marks.findings(text) if "hidden story a_" in one]
    assert (found == []) if told is None else (len(found) == 1 and told in found[0])


def test_marks_when_there_is_no_hidden_story_find_nothing():
    assert Marks(re.compile(b"(?!)"), frozenset(), {}, frozenset()).findings(TALE) == []
