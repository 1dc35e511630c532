"""The prompts of a scene: what the short one holds, how it counts, and what its checks find."""

import os

import pytest

from fabula.builders.katha.checks.rules import rule_checks
from fabula.builders.katha.draft_scenes import (
    LIMIT,
    clip_tokens,
    described,
    fits,
    prompted,
    short_prompt,
)
from fabula.engine.stage import Item, Made, Rejected

CLIP = os.environ.get("FABULA_CLIP_TOKENIZER")
TEXT = (
    "A hungry red fox met the other crow. The king told Maladhara of an old man, and mice came."
    " The fox begged the crow for her cheese."
)
STORY = {"id": "tale_1", "title": "The Fox", "language": "en", "normalized_text": TEXT}


def scene(**changes) -> dict:
    return {
        "scene_index": 1,
        "scene_text": "The fox begs.",
        "characters": ["fox", "crow"],
        "objects": ["cheese", "tree"],
        "action": "The fox begs the crow for cheese.",
        "emotion": "greed",
        "visual_must_show": ["fox", "the cheese in her beak"],
        **changes,
    }


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 2),
        ("fox", 3),
        ("The crows' 42 pebbles!", 2 + 1 + 1 + 1 + 1 + 1 + 2 + 1),
        ("woodcutter", 4),
        ("before", 3),  # a function word, though it has six letters
        ("शेर", 2 + 9),
    ],
)
def test_tokens_when_counted_by_letters_are_those_of_the_pieces(text, tokens) -> None:
    assert clip_tokens(text) == tokens


@pytest.mark.skipif(CLIP is None, reason="FABULA_CLIP_TOKENIZER names no folder of CLIPTokenizer files")
def test_tokens_when_the_vocabulary_is_at_hand_are_at_least_those_of_clip(drafted) -> None:
    clip = pytest.importorskip("transformers").CLIPTokenizer.from_pretrained(CLIP, local_files_only=True)
    for fields in drafted.values():
        for drawn in fields["scenes"]:
            prompt = drawn["generation_prompt"]
            assert len(clip(prompt)["input_ids"]) <= clip_tokens(prompt) + 3
            assert len(clip(prompt)["input_ids"]) <= LIMIT


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("the fox", "hungry red fox"),
        ("fox", "hungry red fox"),
        ("crow", "crow"),  # "other" says nothing of its looks
        ("Maladhara", "Maladhara"),
        ("man", "old man"),
        ("mice", "mice"),  # no determiner
        ("wolf", "wolf"),
    ],
)
def test_character_when_described_has_the_adjectives_of_its_first_mention(name, called) -> None:
    assert described(name, STORY) == called


def test_prompt_when_composed_says_what_must_be_visible_first_and_each_thing_once() -> None:
    assert short_prompt(scene(), STORY) == (
        "The hungry red fox begs the crow for cheese, the cheese in her beak, tree, mood: greed"
    )


def test_prompt_when_neither_action_nor_what_is_visible_is_known_begins_with_a_sentence_of_the_scene() -> (
    None
):
    unknown = scene(action=None, visual_must_show=[], scene_text=f"{'On ' * 90}. The crow sat. The fox came.")
    assert short_prompt(unknown, STORY).startswith("The crow sat, ")
    assert short_prompt({**unknown, "scene_text": "On " * 90}, STORY) == ""
    assert short_prompt(scene(action=None, visual_must_show=["a cheese"]), STORY).startswith("a cheese")


def test_prompt_when_all_does_not_fit_leaves_out_from_the_end() -> None:
    things = [f"golden thing {letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    prompt = short_prompt(scene(objects=things), STORY)
    assert "golden thing a" in prompt and "golden thing z" not in prompt and "mood" not in prompt
    assert LIMIT - 6 < clip_tokens(prompt) <= LIMIT


def test_prompt_when_what_must_be_visible_is_too_long_fits() -> None:
    drawn = scene(visual_must_show=[f"golden thing {letter}" for letter in "abcdefghijklmnopqrstuvwxyz"])
    prompt = short_prompt(drawn, STORY)
    assert "golden thing a" in prompt and "golden thing z" not in prompt
    assert fits(prompt)


def test_prompt_when_looks_are_known_says_them_once_at_the_first_mention_of_each_name() -> None:
    looks = {"fox": "a thin red fox with a white tail", "crow": "an old black bird"}
    drawn = scene(action="A fox looks up at the crow.", visual_must_show=["the fox sitting", "the crow"])
    prompt = short_prompt(drawn, STORY, looks=looks)
    assert prompt.startswith(
        "A fox (a thin red fox with a white tail) looks up at the crow (an old black bird), the fox sitting"
    )
    assert prompt.count("(") == 2


def test_prompts_when_a_person_gave_one_leave_it() -> None:
    given = [{"generation_prompt": "mine"}, {}]
    mine, ours = prompted([scene(generation_prompt="mine"), scene()], STORY, given)
    assert mine["generation_prompt"] == "mine" and "generation_prompt_long" not in mine
    assert "hungry red fox" in ours["generation_prompt_long"]
    assert "the cheese in her beak" in ours["generation_prompt_long"]


def test_checks_when_a_prompt_is_too_long_fail(drafted) -> None:
    fields = next(iter(drafted.values()))
    wrong = {"generation_prompt": "nothing of it " * 30}
    scenes = [{**drawn, **wrong} for drawn in fields["scenes"]]
    producers = [{"path": "$.scenes[*].generation_prompt", "producer": "rules@1"}]
    names = ("title", "narrative_type", "moral_label", "transitions", "questions", "variants")
    draft = {name: fields["bundle"]["record"].get(name, fields.get(name)) for name in names}
    checks = rule_checks(fields["story"], {**draft, "scenes": scenes, "producers": producers})
    found = {
        (check["code"], check["passed"])
        for check in checks
        if check["path"] == "$.scenes[0].generation_prompt" and check["code"].startswith("prompt_")
    }
    assert found == {("prompt_too_long", False)}


PLAIN = (
    "A wolf met a lamb by the stream and seized it. The lamb begged for its life, but the wolf ate the lamb"
    " anyway. The king's men killed the wolf and hanged the thief who had sent it. Everyone went home."
)
HOUSE = (
    "The house was large and old. Its walls were grey. The garden was green. There were many trees."
    " The roof was of red tiles, and the door was of oak."
)


def screen(katha, text, settings=None, duplicate_of=None, **changes):
    fields = {**katha.story(text, **changes), "duplicate_of": duplicate_of}
    fields.update(katha.run_stage("analyze_story", fields).fields)
    return katha.run_stage("screen_stories", fields, settings)


def test_fable_when_a_wolf_eats_a_lamb_passes_every_criterion(katha) -> None:
    outcome = screen(katha, PLAIN)
    assert isinstance(outcome, Made)
    verdicts = {check["code"]: check["passed"] for check in outcome.fields["screening"]}
    unjudged = {code.removeprefix("screen_") for code, passed in verdicts.items() if passed is None}
    assert unjudged == {"harmful_content", "wordplay", "external_knowledge", "several_moral_targets"}
    assert False not in verdicts.values()
    assert len(outcome.fields["screening"]) == 9


@pytest.mark.parametrize(
    ("code", "text", "quoted"),
    [
        ("personal_data", PLAIN + " Write to ann.smith@example.org now.", "ann.smith@example.org"),
        ("personal_data", PLAIN + " Call +44 20 7946 0958 at once.", "7946 0958"),
        ("personal_data", PLAIN + " His number was 078-05-1120 then.", "078-05-1120"),
        ("personal_data", PLAIN + " He lived at 221 Baker Street with his cat.", "221 Baker Street"),
        ("harmful_content", PLAIN + " He built a pipe bomb.", "pipe bomb"),
        ("wordplay", PLAIN + " It is a play on words.", "play on words"),
        ("external_knowledge", PLAIN + " See chapter four.", "See chapter"),
        ("mainly_descriptive", HOUSE, "0 of 6 clauses"),
        ("several_moral_targets", PLAIN + " Moral: be kind. Moral: be brave.", "2 stated morals"),
    ],
)
def test_story_when_it_does_not_qualify_is_rejected_with_the_evidence(katha, code, text, quoted) -> None:
    outcome = screen(katha, text)
    assert isinstance(outcome, Rejected)
    assert outcome.code == code and quoted in outcome.reason


def test_rights_when_restricted_are_rejected_and_when_nobody_said_them_are_left_open(katha) -> None:
    outcome = screen(katha, PLAIN, rights_status="restricted")
    assert isinstance(outcome, Rejected) and outcome.code == "rights_unresolved"
    assert "restricted" in outcome.reason
    checks = {
        check["code"]: check for check in screen(katha, PLAIN, rights_status="unresolved").fields["screening"]
    }
    assert checks["screen_rights_unresolved"]["passed"] is None


def test_near_duplicate_when_found_names_the_kept_story_or_is_kept_on_demand(katha) -> None:
    other = {"id": "tale_0", "similarity": 0.93}
    outcome = screen(katha, PLAIN, duplicate_of=other)
    assert isinstance(outcome, Rejected) and "93% like story tale_0" in outcome.reason
    assert isinstance(screen(katha, PLAIN, {"near_duplicates": "keep"}, duplicate_of=other), Made)


def test_other_language_when_cue_lists_do_not_apply_is_not_judged(katha) -> None:
    outcome = screen(katha, "राजा आया। वह गया। फिर वह लौटा।", language="hi")
    verdicts = {check["code"]: check["passed"] for check in outcome.fields["screening"]}
    assert verdicts["screen_personal_data"] is True
    assert verdicts["screen_wordplay"] is None and verdicts["screen_mainly_descriptive"] is None


def duplicates(katha, texts, previous=None):
    """Return what each story is a duplicate of, by the ids of the stories kept."""
    module, sign = katha.stage("find_duplicates"), katha.stage("sign_stories")
    items = []
    for key, value in texts.items():
        story = {"title": key, "normalized_text": value, "source_reference": None}
        items.append(Item(key, sign.run(Item(key, {"story": story, "source": None}), None).fields))
    found = module.run(items, katha.tools_for(module.SPEC, previous=previous or {}))
    assert module.run(items[::-1], katha.tools_for(module.SPEC, previous=previous or {})) == found
    return found


def named(found):
    return {key: fields["duplicate_of"] and fields["duplicate_of"]["id"] for key, fields in found.items()}


@pytest.fixture
def tale(samples):
    return next(iter(samples.values()))["story"]["normalized_text"]


def test_duplicates_when_three_are_alike_and_new_keep_the_first_id(katha, tale) -> None:
    texts = {"c": tale, "a": tale + " The end.", "b": tale.upper(), "d": PLAIN}
    assert named(duplicates(katha, texts)) == {"a": None, "b": "a", "c": "a", "d": None}


@pytest.mark.parametrize("added", ["{}", "{} The end."])
def test_duplicates_when_stories_are_added_keep_what_was_kept(katha, tale, added) -> None:
    before = duplicates(katha, {"k": tale, "m": tale.upper(), "d": PLAIN})
    assert named(before) == {"k": None, "m": "k", "d": None}
    more = {"k": tale, "m": tale.upper(), "d": PLAIN, "a": added.format(tale), "z": added.format(tale)}
    after = duplicates(katha, more, previous=before)
    assert named(after) == {"a": "k", "d": None, "k": None, "m": "k", "z": "k"}
    assert duplicates(katha, more, previous=after) == after
