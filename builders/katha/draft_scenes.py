"""Stage: divide the story into scenes and describe them (Table 7). Rules divide, and say who is named.

This is the only stage that knows how many scenes a story gets; every later one counts them. So it is also
the stage that turns away a story that so many scenes cannot tell.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from pydantic import Field

from ...engine.stage import Tools
from ...prompts.loader import load_prompt
from ...schemas.canonical import Json
from ...schemas.katha import Scene
from ...schemas.text import is_unspaced, normalize_answer, primary_language
from ...validators.katha.scene_rules import without_article
from ...validators.view import mentions
from ..step import (
    Drafted,
    PlannerSettings,
    Problems,
    Step,
    Unfit,
    ask,
    by_number,
    check_count,
    language,
    listed,
    needed,
    optional,
    told_feeling,
)
from ..text import boundaries
from ..text.boundaries import paragraph_starts, scene_spans
from ..text.segments import (
    Analysis,
    is_participle,
    is_verb,
    segment_texts,
    sentence_spans,
    word_count,
    word_set,
)
from .drafts import NARRATIVE, Sketch, scene_texts

# -- The prompts for the picture of a scene: a short one that CLIP reads whole, and a long one beside it
#
# Text encoders of the CLIP family read 77 tokens, those of beginning and end counted, and drop the rest. So
# the short prompt says first what must be visible, and what does not fit is left out from its end.

LIMIT = 77
"""Tokens that CLIP reads, its begin and end token included (Radford et al. 2021, section 2.4)."""
_LETTERS = 5
"""Letters of a word per token; see :func:`clip_tokens`."""
_ADJECTIVES = 2
_PIECES = re.compile(r"'(?:s|t|re|ve|m|ll|d)|[^\W\d_]+|\d|(?:[^\s\w]|_)+")
_NOT_LOOKS = frozenset(
    ("certain", "same", "other", "another", "first", "second", "third", "next", "last", "own", "such", "very")
)
"""Words before a name that say nothing of how its bearer looks."""


def clip_tokens(text: str) -> int:
    """Return how many tokens CLIP makes of a text at most, its begin and end token included.

    This is a bound made without CLIP's vocabulary, not its count: the text is lower-cased and split as CLIP
    splits it (words, single digits, runs of punctuation). An English function word counts one, any other word
    of ASCII letters one for each five letters begun, anything else one for each byte of UTF-8. Single rare
    words can have more pieces than that ("wept" has two), whole descriptions seldom: 135 hand-written
    prompts of 33 to 65 tokens were counted 0 to 13 tokens too high; of 135 single sentences of up to 30
    tokens ten were counted too low, by at most 3. In other scripts the bound is far above the count.
    """
    return 2 + sum(map(_tokens, _PIECES.findall(text.lower())))


def fits(text: str) -> bool | None:
    """Return whether CLIP reads all of a prompt; None if only its vocabulary can tell, in other scripts."""
    if clip_tokens(text) <= LIMIT:
        return True
    least = 2 + len(_PIECES.findall(text.lower()))
    return False if text.isascii() or least > LIMIT else None


def _tokens(piece: str) -> int:
    if piece in word_set("words", "function") or piece[0] == "'":
        return 1
    return math.ceil(len(piece) / _LETTERS) if piece.isascii() and piece.isalpha() else len(piece.encode())


_LOOK = r"(?<!\w){} \(([^()]+)\)"
_IN_BRACKETS = re.compile(r" \([^()]*\)")
_CAST = "looking the same in every scene:"
"""What stands before the characters in the long prompt, ``prompts/scene_image.j2``."""


def plain_look(look: str) -> str:
    """Return a look as prompts say it, in brackets behind the name."""
    return re.sub(r"[()\[\]{}]", "", look).strip().rstrip(".。")


def looks_in(scenes: Sequence[Json]) -> dict[str, str]:
    """Return how the characters of scenes look, as their long prompts say: plain name -> look."""
    looks: dict[str, str] = {}
    for scene in scenes:
        cast = (scene.get("generation_prompt_long") or "").rpartition(_CAST)[2]
        for name in map(without_article, scene["characters"]):
            found = re.search(_LOOK.format(re.escape(name)), cast, re.IGNORECASE)
            if found is not None:
                looks.setdefault(normalize_answer(name), found[1])
    return looks


def described(name: str, story: Json, looks: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return how prompts call a character: with its look, or the adjectives of its first mention, or as such.

    ``looks``: name without article, in its normal form -> how it looks.

    Adjectives are read between a determiner and the name, in English, and not for proper names. The answer
    depends on the story's text and the name alone, so it is the same in every scene.
    """
    bare = name.strip()[len(name.strip()) - len(without_article(name)) :]
    if (look := looks.get(normalize_answer(without_article(name)))) is not None:
        return f"{bare} ({look})"
    if primary_language(story["language"]) != "en" or bare != bare.lower():
        return bare
    first = re.search(rf"(?<!\w){re.escape(bare)}(?!\w)", story["normalized_text"], re.IGNORECASE)
    if first is None or first[0][1:] != bare[1:]:
        return bare
    runs = _looks(story["normalized_text"][: first.end()], bare)
    kept = [word for word in runs[-1] if word not in _NOT_LOOKS][-_ADJECTIVES:] if runs else []
    return " ".join((*kept, bare))


def _looks(text: str, bare: str) -> list[tuple[str, ...]]:
    """Return for each mention of a name the adjectives before it, as far as they can be read."""
    determiners, function = word_set("words", "determiners"), word_set("words", "function")
    runs: list[tuple[str, ...]] = []
    for mention in re.finditer(rf"((?:[\w'’-]+ ){{0,5}}){re.escape(bare)}(?!\w)", text, re.IGNORECASE):
        words = mention[1].lower().split()
        at = max((n for n, word in enumerate(words) if word in determiners), default=-1)
        run = words[at + 1 :]
        odd = any(word in function or is_verb(words, at + 1 + n) for n, word in enumerate(run))
        if at < 0:  # without a determiner only after a mark, where no verb can stand before the name
            begins = not text[: mention.start()].rstrip(" ")[-1:].isalnum()
            odd |= not begins or any(is_participle(word) or word.endswith("ly") for word in run)
        runs.append(() if odd else tuple(run))
    return runs


def with_prompts(
    scene: Json, story: Json, total: int, looks: Mapping[str, str] = MappingProxyType({})
) -> Json:
    """Return a scene with both prompts for its picture, which follow from its other fields and the story."""
    short = short_prompt(scene, story, looks=looks)
    return {**scene, "generation_prompt": short, **_long_prompt(scene, story, total, looks)}


def prompted(scenes: Sequence[Json], story: Json, given: Sequence[Json] | None = None) -> list[Json]:
    """Return scenes with prompts made anew, but for those that a person gave; looks stay."""
    looks = looks_in(scenes)
    return [
        scene
        if given is not None and "generation_prompt" in given[number]
        else with_prompts(scene, story, len(scenes), looks)
        for number, scene in enumerate(scenes)
    ]


def short_prompt(
    scene: Json, story: Json, lead: str | None = None, looks: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return the short prompt of a scene, which :data:`LIMIT` tokens hold.

    It has the action with the looks of who acts; then what must be visible, characters, things and feeling,
    as far as they fit. Each is said once. Names alone are no picture: where neither action nor what must be
    visible is known, it begins with the first sentence of the scene that fits, and is empty without one.

    ``scene``: the scene (Table 7). ``lead``: what is shown in place of the action and of what must be
    visible.
    """
    cast = {without_article(name): described(name, story, looks) for name in scene["characters"]}
    first, *more = [scene["action"] or "", *scene["visual_must_show"]] if lead is None else [lead]
    if not (first or any(more)):
        text = scene["scene_text"]
        sentences = (text[start:end] for start, end in sentence_spans(text, story["language"]))
        first = next((sentence for sentence in sentences if fits(sentence) is not False), "")
        if not first:
            return ""
    text = _with_looks(first.strip().rstrip(".。"), cast)
    mood = [f"mood: {scene['emotion']}"] if scene["emotion"] else []
    for phrase in (*more, *cast.values(), *scene["objects"], *mood):
        said = phrase.strip().rstrip(".。")
        plain = _IN_BRACKETS.sub("", text)
        if said and not mentions(normalize_answer(plain), without_article(_IN_BRACKETS.sub("", said))):
            longer = _with_looks(f"{text}, {said}" if text else said, cast)
            text = longer if clip_tokens(longer) <= LIMIT or not text else text
    return text


def _with_looks(text: str, cast: Mapping[str, str]) -> str:
    """Return a text in which the first mention of each character says how it looks, as far as that fits."""
    for bare, called in cast.items():
        longer = _called(text, bare, called)
        text = longer if fits(longer) is not False else text
    return text


def _called(text: str, bare: str, called: str) -> str:
    """Return a text in which the first mention of a name is how its character is called."""
    if called.lower() == bare or mentions(normalize_answer(text), called):
        return text

    def anew(mention: re.Match[str]) -> str:
        article = mention[1] or ""
        if article.strip().lower() in ("a", "an"):
            article = f"{article[0]}{'n' if called[0] in 'aeiou' else ''} "
        return f"{article}{called}"

    return re.sub(rf"(?<!\w)(an? )?{re.escape(bare)}(?!\w)", anew, text, count=1, flags=re.IGNORECASE)


def _long_prompt(scene: Json, story: Json, total: int, looks: Mapping[str, str]) -> Json:
    prompt = load_prompt("scene_image").render(
        index=scene["scene_index"],
        total=total,
        title=story["title"],
        text=scene["scene_text"],
        must_show=list(scene["visual_must_show"]),
        characters=[described(name, story, looks) for name in scene["characters"]],
        **{name: scene[name] for name in ("objects", "action", "emotion")},
    )
    return {"generation_prompt_long": prompt}


# --


def draft_scene_texts(story: Json, analysis: Json, count: int) -> tuple[str, ...] | None:
    """Return the texts of the scenes, or None where the story has fewer clauses than scenes."""
    text: str = story["normalized_text"]
    paragraphs = paragraph_starts(story["text"], text)
    spans = boundaries.divide(text, Analysis.from_json(analysis), count, paragraphs)
    return None if spans is None else tuple(text[start:end] for start, end in spans)


def describe_scenes(story: Json, analysis: Json, texts: Sequence[str]) -> list[Json]:
    """Return the scenes with these texts: who is named in each; all that only a reader can tell is null."""
    casts = scene_casts(story, analysis, texts)
    scenes = [
        {
            "story_id": story["id"], "scene_index": number, "scene_text": text, "characters": cast,
            "objects": [], "action": None, "state": None, "emotion": None, "visual_evidence": None,
            "visual_must_show": [],
        }
        for number, (text, cast) in enumerate(zip(texts, casts, strict=True), start=1)
    ]  # fmt: skip
    return prompted(scenes, story)


def scene_casts(story: Json, analysis: Json, texts: Sequence[str]) -> list[list[str]]:
    """Return who is named in each scene, in the order of their first mentions in the story."""
    spans, read = scene_spans(story["normalized_text"], texts), Analysis.from_json(analysis)
    assert spans is not None, "scenes cover the story"
    later = [start for start, _ in spans[1:]]
    named = [{bisect_right(later, read.segments[at].start) for at in one.at} for one in read.entities]
    return [
        [one.name for one, scenes in zip(read.entities, named, strict=True) if scene in scenes]
        for scene in range(len(texts))
    ]


SCENE_FIELDS = (
    "characters", "objects", "action", "state", "emotion", "visual_evidence", "visual_must_show",
)  # fmt: skip
"""Fields of a scene that are drafted, but for its prompts, which follow from them."""


LONGEST_SCENE = 150
"""Words that one picture can tell."""


class Settings(PlannerSettings):
    scenes: int = Field(default=5, ge=2, le=100, description="Scenes per story, T in the paper.")
    max_scene_words: int = Field(
        default=LONGEST_SCENE,
        ge=1,
        description="Words that one picture can tell; twice as many characters without spaces.",
    )
    keep_unfit: bool = Field(
        default=False, description="Keep a story that contiguous scenes cannot tell; a person must review it."
    )


def _rules(sketch: Sketch, settings: Settings) -> Json:
    given, texts = sketch.given_list("scenes"), None
    if given is not None:
        texts = scene_texts(given)
    elif len(sketch.narrated) == settings.scenes:
        texts = list(sketch.narrated)
    elif divided := draft_scene_texts(sketch.story, sketch.analysis, settings.scenes):
        texts = list(divided)
    return None if texts is None else describe_scenes(sketch.story, sketch.analysis, texts)


async def _ask(tools: Tools, sketch: Sketch) -> Drafted[Json]:
    """Return the scenes; nothing, without asking, where the story has fewer segments than scenes."""
    settings, given = tools.own(Settings), sketch.given_list("scenes")
    if given is not None or len(sketch.narrated) == settings.scenes:
        texts = list(sketch.narrated) if given is None else scene_texts(given)
        return await ask_scenes(tools, sketch.story, texts)
    segments = segment_texts(sketch.story, sketch.analysis)
    if len(segments) < settings.scenes:
        return Drafted(None, "")
    return await ask(
        tools,
        "katha/draft_scenes",
        lambda reply: read_division(reply, sketch.story, sketch.analysis, settings.scenes),
        **{**_shown(sketch.story, ()), "count": settings.scenes, "segments": segments},
    )


async def ask_scenes(
    tools: Tools,
    story: Json,
    texts: Sequence[str],
    before: Sequence[Json] = (),
    again: Mapping[int, Sequence[str]] = MappingProxyType({}),
) -> Drafted[list[Json]]:
    """Return the scenes with given texts.

    ``again``: number of a scene that is to be described again -> what was found in it; then only these scenes
    are returned, in order.
    """
    numbers, looks = sorted(again) or range(1, len(texts) + 1), looks_in(before)
    names = dict.fromkeys(name for scene in before for name in scene["characters"])
    known = {name: looks.get(normalize_answer(without_article(name))) for name in names}
    more = {
        "again": sorted(again),
        "cast": [{"name": name, "look": look} for name, look in known.items() if look],
        "findings": [finding for number in sorted(again) for finding in again[number]],
        "previous": scenes_shown(before),
    }
    return await ask(
        tools,
        "katha/draft_scenes",
        lambda reply: read_scenes(reply, story, texts, numbers, looks),
        **{**_shown(story, texts), **(more if again else {})},
    )


def _shown(story: Json, texts: Sequence[str]) -> dict[str, Json]:
    return {
        "again": [], "cast": [], "count": len(texts), "findings": [], "language": language(story),
        "previous": [], "scenes": list(texts), "segments": [], "title": story["title"],
    }  # fmt: skip


def scenes_shown(scenes: Sequence[Json]) -> list[Json]:
    """Return the described fields of scenes, each with its number."""
    return [
        {"scene": scene["scene_index"], **{name: scene[name] for name in SCENE_FIELDS}} for scene in scenes
    ]


def read_division(reply: Json, story: Json, analysis: Json, count: int) -> list[Json]:
    """Return the scenes that a reply to ``katha/draft_scenes`` makes of a story.

    Their texts are spans of the story that hold all of it but white space, whatever the reply says.
    """
    check_count(reply["scenes"], count, "scenes")
    numbers = range(1, count + 1)
    entries = by_number(reply["scenes"], "scene", numbers, "scenes")
    problems = Problems()
    for number, entry in enumerate(entries, start=1):
        if entry["first_segment"] is None:
            problems.add(f"scene {number}: first_segment is null; give the number of its first segment")
    problems.settle()
    texts = boundaries.read_division(entries, count, "scene", story, analysis)
    return read_scenes(reply, story, texts, numbers)


def read_scenes(
    reply: Json,
    story: Json,
    texts: Sequence[str],
    numbers: Sequence[int],
    looks: Mapping[str, str] = MappingProxyType({}),
) -> list[Json]:
    """Return the scenes of some numbers, as a reply to ``katha/draft_scenes`` describes them.

    ``looks``: name of a character -> how it looks, where that is known and stays.
    """
    entries = by_number(reply["scenes"], "scene", numbers, "scenes")
    problems = Problems()
    scenes = [
        _scene(entry, story, number, texts[number - 1], problems)
        for number, entry in zip(numbers, entries, strict=True)
    ]
    told = {
        normalize_answer(without_article(entry["name"])): plain_look(needed(entry, "look", "cast", problems))
        for entry in reply["cast"]
    }
    told |= {normalize_answer(without_article(name)): look for name, look in looks.items()}
    _check_characters(scenes, story, told, problems)
    problems.check_script(story, [[scene["action"], scene["state"], scene["emotion"]] for scene in scenes])
    problems.settle()
    return [with_prompts(scene, story, len(texts), told) for scene in scenes]


def _check_characters(
    scenes: Sequence[Json], story: Json, told: Mapping[str, str], problems: Problems
) -> None:
    text = normalize_answer(story["normalized_text"])
    for scene in scenes:
        number = scene["scene_index"]
        unseen = [name for name in scene["characters"] if normalize_answer(without_article(name)) not in told]
        if unseen:
            problems.add(f"scene {number}: {', '.join(map(repr, unseen))} stands in characters, not in cast")
        strange = [name for name in scene["characters"] if not mentions(text, without_article(name))]
        if strange:
            problems.add(
                f"scene {number}: the story does not name {', '.join(map(repr, strange))}; copy the names of"
                " characters letter for letter from the story, in a form that stands there"
            )


def _scene(entry: Json, story: Json, number: int, text: str, problems: Problems) -> Json:
    where = f"scene {number}"
    must_show = listed(entry, "visual_must_show", where, problems)
    if not must_show:
        problems.add(
            f"{where}: visual_must_show is empty; name two to five things that the picture must show"
        )
    return {
        "story_id": story["id"],
        "scene_index": number,
        "scene_text": text,
        "characters": listed(entry, "characters", where, problems),
        "objects": listed(entry, "objects", where, problems),
        "action": needed(entry, "action", where, problems),
        "state": needed(entry, "state", where, problems),
        "emotion": told_feeling(entry, text, where, problems),
        "visual_evidence": optional(entry, "visual_evidence", where, problems),
        "visual_must_show": must_show,
    }


def _settle(drafted: Json, sketch: Sketch, settings: Settings) -> Json:
    if drafted is None:
        text = sketch.story["normalized_text"]
        reason = f"fewer clauses than the {settings.scenes} scenes asked for in: {text[:120]!r}"
        raise Unfit("too_short", reason)
    unfit = unfit_scenes(sketch.story, scene_texts(drafted), settings.max_scene_words)
    divided = sketch.given_list("scenes") or sketch.narrated
    if unfit and settings.planner == "rules" and not (settings.keep_unfit or divided):
        raise Unfit("not_five_scenes", unfit)
    given = sketch.given_list("scenes")
    return drafted if given is None else prompted(sketch.filled("scenes", drafted), sketch.story, given)


def unfit_scenes(story: Json, texts: Sequence[str], longest: int = LONGEST_SCENE) -> str | None:
    """Return why contiguous scenes cannot tell a story, or None where they can.

    ``texts``: of its scenes, in order. ``longest``: words of a scene, at most; twice as many characters in a
    script without spaces.
    """
    text = story["normalized_text"]
    sentences = len(sentence_spans(text, story["language"]))
    if sentences < len(texts):
        return f"{sentences} sentences for {len(texts)} scenes: scenes would begin inside of sentences"
    most = max(map(word_count, texts))
    if most > longest * (2 if is_unspaced(text) else 1):
        return f"a scene of {most} words; a scene has at most {longest}"
    return None


STEP = Step(
    id="katha/draft_scenes",
    version=10,
    writes=("scenes",),
    reads=("story", *NARRATIVE, "given", "analysis"),
    sketch=Sketch.of,
    rules=_rules,
    ask=_ask,
    given=lambda sketch, settings: sketch.complete("scenes", Scene),
    settle=_settle,
    settings=Settings,
    reject_codes={
        "too_short": "The story has fewer sentences and clauses than scenes.",
        "not_five_scenes": "Contiguous scenes cannot tell the story: too few sentences, or scenes too long.",
    },
    keep={
        "too_short": "--set draft_scenes.scenes=N with a smaller N",
        "not_five_scenes": "--keep-unfit, --set draft_scenes.scenes=N with another N, or --model",
    },
    libraries=("jinja2",),
    prompts=("scene_image",),
)
