"""The rules behind the face that every planner has."""

from collections.abc import Mapping, Sequence

from ....schemas.canonical import Json
from ....schemas.text import normalize_answer, unspaced_count
from ...katha.rules.analysis import Analysis
from ...katha.rules.boundaries import divide
from ...katha.rules.lexicon import word_set
from ...katha.rules.reading import StoryView
from ...katha.rules.scenes import main_action
from ...katha.rules.words import lower_words
from ..cast import MOST_ONSTAGE, by_key, named_first
from ..planner import Drafted, Sketch
from . import cameras, kinds, people, places

PRODUCER = "rules@1"


class ShotRulesPlanner:
    """Drafts by rules; see :class:`fabula.builders.shots.planner.Planner`. It never waits.

    For Chinese it divides the story, finds the characters that the author gives, and designs perspectives.
    """

    async def plan(self, sketch: Sketch, count: int) -> Drafted | None:
        """Return the texts of the shots; None where the story has too few clauses."""
        text = sketch.story["normalized_text"]
        spans = divide(text, Analysis.from_json(sketch.analysis), count)
        return None if spans is None else Drafted([text[start:end] for start, end in spans], PRODUCER)

    async def cast(self, sketch: Sketch, given: Sequence[Json], human: str, most: int) -> Drafted:
        """Return the given characters, else those that an English text names most often."""
        if given:
            return Drafted([people.describe(sketch.story, one, human) for one in given], PRODUCER)
        return Drafted(people.find_people(sketch.story, sketch.analysis, human, most), PRODUCER)

    async def onstage(self, sketch: Sketch) -> Drafted:
        """Return who is named in each shot; a pronoun alone stands for who was on stage before."""
        shots: list[list[str]] = []
        for told in sketch.plot:
            keys = named_first(sketch.cast, told)[:MOST_ONSTAGE]
            used = set(lower_words(told))
            if not keys and shots and used & word_set("words", "pronouns"):
                plural = used & word_set("words", "plural_pronouns")
                keys = list(shots[-1]) if plural else shots[-1][:1]
            shots.append(keys)
        return Drafted(shots, PRODUCER)

    async def settings(self, sketch: Sketch) -> Drafted:
        """Return time, place and things in the words of an English text; null for other languages."""
        if not sketch.analysis["english"]:
            return Drafted([None] * len(sketch.plot), PRODUCER)
        text = sketch.story["normalized_text"]
        return Drafted(places.describe_places(sketch.analysis, text, sketch.plot, sketch.cast), PRODUCER)

    async def cameras(self, sketch: Sketch) -> Drafted:
        """Return the perspectives."""
        view = self._view(sketch)
        tense = [bool(view.feelings(place)) for place in range(view.count)]
        counts = [len(keys) for keys in sketch.onstage]
        return Drafted(cameras.design(sketch.story["id"], counts, tense), PRODUCER)

    async def statics(self, sketch: Sketch) -> Drafted:
        """Return the clause that tells what mainly happens, after who is on stage and not named in it."""
        view, cast = self._view(sketch), by_key(sketch.cast)
        statics = []
        for place, told in enumerate(sketch.plot):
            action = main_action(view, place) if view.english else None
            said = (view.full(action) if action else told).strip(" ,;:.，。；：")
            words = set(normalize_answer(said).split())
            # The rule of the validator: a word of the key stands in the description.
            missing = [
                key for key in sketch.onstage[place]
                if not words & set(normalize_answer(key).split())
                and not (unspaced_count(said) and cast[key]["name"] in said)
            ]  # fmt: skip
            statics.append(_with_names(said, missing, chinese=sketch.base == "ch"))
        return Drafted(statics, PRODUCER)

    async def translate_names(self, sketch: Sketch, language: str) -> Drafted | None:  # noqa: ARG002
        """Return None: rules do not translate."""
        return None

    async def translate(
        self,
        sketch: Sketch,  # noqa: ARG002 - the face of a planner
        names: Mapping[str, Json],  # noqa: ARG002
        language: str,  # noqa: ARG002
    ) -> Drafted | None:
        """Return None: rules do not translate."""
        return None

    async def labels(self, sketch: Sketch) -> Drafted:
        """Return story type and culture; a style is nothing that a text tells."""
        english = sketch.analysis["english"]
        return Drafted(
            {
                "story_type": kinds.story_type(sketch.story["normalized_text"]) if english else None,
                "culture": kinds.CULTURES.get(sketch.story["source_collection"]),
                "style": None,
            },
            PRODUCER,
        )

    @staticmethod
    def _view(sketch: Sketch) -> StoryView:
        return StoryView(sketch.story, sketch.analysis, list(sketch.plot))


def _with_names(said: str, missing: Sequence[str], *, chinese: bool) -> str:
    if chinese:
        return f"{'、'.join(missing)}：{said}。" if missing else f"{said}。"
    said = f"{', '.join(missing)}: {said}" if missing else said
    return f"{said[:1].upper()}{said[1:]}."
