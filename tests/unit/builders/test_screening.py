import pytest

from fabula.engine.stage import Item, Made, Rejected

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


@pytest.mark.parametrize("status", ["unresolved", "restricted"])
def test_rights_when_not_releasable_are_rejected(katha, status) -> None:
    outcome = screen(katha, PLAIN, rights_status=status)
    assert isinstance(outcome, Rejected) and outcome.code == "rights_unresolved" and status in outcome.reason


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
