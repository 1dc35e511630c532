"""All rules for KathaBench records behind one face, for tests and stand-ins."""

from collections.abc import Sequence

from ..builders.katha.annotate_transitions import describe_transitions
from ..builders.katha.contrast_rules import write_variants
from ..builders.katha.draft_scenes import describe_scenes, draft_scene_texts
from ..builders.katha.label_story import draft_labels
from ..builders.katha.question_rules import ask_questions
from ..builders.text.analyze_story import analyze
from ..builders.text.reading import StoryView
from ..schemas.canonical import Json


class Rules:
    """Drafts KathaBench parts by rules, in the shapes of ``schemas.katha``.

    What the text does not tell is null or empty. For languages other than English only segmentation,
    scene boundaries, temporal-order questions and reordered variants are made.
    """

    def analyze(self, story: Json) -> Json:
        """Return the analysis of a story as compact JSON."""
        return analyze(story)

    def divide(self, story: Json, analysis: Json, count: int) -> tuple[str, ...] | None:
        """Return the scene texts, or None where the story has too few clauses."""
        return draft_scene_texts({"text": story["normalized_text"], **story}, analysis, count)

    def scenes(self, story: Json, analysis: Json, texts: Sequence[str]) -> list[Json]:
        """Return the scenes with all fields."""
        return describe_scenes(self._view(story, analysis, texts))

    def labels(self, story: Json) -> tuple[str | None, str | None]:
        """Return narrative type and moral label, each null where cue words do not settle it."""
        labels = draft_labels(story)
        return labels["narrative_type"], labels["moral_label"]

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
