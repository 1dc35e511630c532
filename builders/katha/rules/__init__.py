"""The rules planner: deterministic, without any model; English cue lists, language-independent elsewhere."""

from collections.abc import Sequence

from ....schemas.canonical import Json
from ....schemas.ids import primary_language
from .analysis import Analysis
from .contrast import write_variants
from .emotions import find_feelings
from .labels import moral_label, narrative_type
from .mentions import MentionFinder
from .questions import ask_questions
from .reading import StoryView
from .scenes import describe_scenes, draft_scene_texts
from .segments import segment_text
from .transitions import describe_transitions
from .words import words_of

PRODUCER = "rules@1"


class Rules:
    """Drafts KathaBench parts by rules, in the shapes of ``schemas.katha``.

    What the text does not tell is null or empty. For languages other than English only segmentation,
    scene boundaries, temporal-order questions and reordered variants are made.
    """

    def analyze(self, story: Json) -> Json:
        """Return the analysis of a story as compact JSON."""
        text, language = story["normalized_text"], story["language"]
        english = primary_language(language) == "en"
        segments = segment_text(text, language, english)
        if not english:
            return Analysis(False, segments, (), ()).as_json()
        words = words_of(text)
        entities = MentionFinder(text, words).find(segments)
        return Analysis(True, segments, entities, find_feelings(words, segments)).as_json()

    def divide(self, story: Json, analysis: Json, count: int) -> tuple[str, ...] | None:
        """Return the scene texts, or None where the story has too few clauses."""
        return draft_scene_texts(story["normalized_text"], analysis, count)

    def scenes(self, story: Json, analysis: Json, texts: Sequence[str]) -> list[Json]:
        """Return the scenes with all fields."""
        return describe_scenes(self._view(story, analysis, texts))

    def labels(self, story: Json) -> tuple[str | None, str | None]:
        """Return narrative type and moral label, each null where cue words do not settle it."""
        if primary_language(story["language"]) != "en":
            return None, None
        return narrative_type(story["normalized_text"]), moral_label(story["normalized_text"])

    def transitions(
        self, story: Json, analysis: Json, scenes: Sequence[Json], moral: str | None
    ) -> list[Json]:
        """Return the transitions between the scenes."""
        return describe_transitions(self._view(story, analysis, _texts(scenes)), moral)

    def questions(
        self,
        story: Json,
        analysis: Json,
        scenes: Sequence[Json],
        transitions: Sequence[Json],
        moral: str | None,
    ) -> list[Json]:
        """Return the recoverability questions."""
        return ask_questions(self._view(story, analysis, _texts(scenes)), transitions, moral)

    def variants(
        self,
        story: Json,
        analysis: Json,
        scenes: Sequence[Json],
        labels: tuple[str | None, str | None],
        count: int,
    ) -> list[Json]:
        """Return up to ``count`` contrastive variants; labels are narrative type and moral label."""
        return write_variants(self._view(story, analysis, _texts(scenes)), count, *labels)

    @staticmethod
    def _view(story: Json, analysis: Json, texts: Sequence[str]) -> StoryView:
        return StoryView(story, analysis, texts)


def _texts(scenes: Sequence[Json]) -> list[str]:
    return [scene["scene_text"] for scene in scenes]
