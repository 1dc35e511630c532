"""The planner that asks a language model; see :class:`fabula.builders.katha.planner.Planner`."""

from collections.abc import Callable, Sequence

from ....engine.stage import Tools
from ....models.settings import ModelSettings
from ....schemas.canonical import Json
from ...replies import Drafted, ask, language
from ..rules.analysis import segment_texts
from ..rules.transitions import quotas
from . import shown
from .read_labels import read_labels
from .read_questions import read_corrected_questions, read_questions
from .read_scenes import read_descriptions, read_division
from .read_transitions import read_transitions
from .read_variants import read_corrected_variants, read_variants
from .repair import corrected, in_words

_Labels = tuple[str | None, str | None]
_Reader = Callable[[Json], list[Json]]


class ModelPlanner:
    """Drafts the parts of a record by asking the model that the stage's settings name, once for each part.

    Args:
        tools: the stage's tools; their settings name the model, their asker answers.
    """

    def __init__(self, tools: Tools) -> None:
        assert isinstance(tools.settings, ModelSettings)
        self._tools, self._settings = tools, tools.settings

    async def _ask(self, prompt_id: str, read: Callable[[Json], Json], **inputs: Json) -> Drafted[Json]:
        return await ask(self._tools, prompt_id, read, **inputs)

    async def scenes(self, story: Json, analysis: Json, count: int) -> Drafted[Json] | None:
        """Return the scenes; None, without asking, where the story has fewer segments than scenes."""
        segments = segment_texts(story, analysis)
        if len(segments) < count:
            return None
        return await self._ask(
            "katha/draft_scenes",
            lambda reply: read_division(reply, story, analysis, count),
            count=count,
            language=language(story),
            segments=segments,
            title=story["title"],
        )

    async def describe(
        self,
        story: Json,
        analysis: Json,  # noqa: ARG002 - the face of a planner
        texts: Sequence[str],
    ) -> Drafted[Json]:
        """Return the scenes for given texts."""
        return await self._describe(story, texts, [], [])

    async def _describe(
        self, story: Json, texts: Sequence[str], previous: Json, findings: Sequence[str]
    ) -> Drafted[Json]:
        return await self._ask(
            "katha/describe_scenes",
            lambda reply: read_descriptions(reply, story, texts),
            findings=list(findings),
            language=language(story),
            previous=previous,
            scenes=list(texts),
            title=story["title"],
        )

    async def labels(self, story: Json) -> Drafted[Json]:
        """Return the labels; the moral label is null where the model finds none or several."""
        return await self._ask(
            "katha/label_story",
            read_labels,
            language=language(story),
            story=story["normalized_text"],
            title=story["title"],
        )

    async def transitions(
        self,
        story: Json,
        analysis: Json,  # noqa: ARG002 - the face of a planner
        scenes: Sequence[Json],
        moral: str | None,
    ) -> Drafted[Json]:
        """Return the transitions."""
        return await self._transitions(story, scenes, moral, [], [])

    async def _transitions(
        self, story: Json, scenes: Sequence[Json], moral: str | None, previous: Json, findings: Sequence[str]
    ) -> Drafted[Json]:
        return await self._ask(
            "katha/annotate_transitions",
            lambda reply: read_transitions(reply, story, len(scenes), moral),
            findings=list(findings),
            language=language(story),
            moral_label=moral,
            previous=previous,
            quotas=quotas(len(scenes) - 1),
            scenes=shown.scene_texts(scenes),
            title=story["title"],
        )

    async def questions(
        self,
        story: Json,
        analysis: Json,  # noqa: ARG002 - the face of a planner
        scenes: Sequence[Json],
        transitions: Sequence[Json],
        moral: str | None,
    ) -> Drafted[Json]:
        """Return the questions: of each type as many as the id says, fewer where the text has none."""
        wanted = shown.questions_wanted(story["id"], moral)
        return await self._ask(
            "katha/write_questions",
            lambda reply: read_questions(reply, story, scenes, moral, wanted),
            **self._about_questions(story, scenes, transitions, moral),
            findings=[],
            previous=[],
            wanted=wanted,
        )

    @staticmethod
    def _about_questions(
        story: Json, scenes: Sequence[Json], transitions: Sequence[Json], moral: str | None
    ) -> dict[str, Json]:
        return {
            "language": language(story),
            "moral_label": moral,
            "scenes": shown.scene_texts(scenes),
            "title": story["title"],
            "transitions": shown.transitions_shown(transitions),
        }

    async def variants(
        self,
        story: Json,
        analysis: Json,  # noqa: ARG002 - the face of a planner
        scenes: Sequence[Json],
        labels: _Labels,
        count: int,
    ) -> Drafted[Json]:
        """Return ``count`` variants."""
        if count == 0:
            return Drafted([], f"{self._settings.model}")
        return await self._variants(
            (story, scenes, labels),
            (count, [], []),
            lambda reply: read_variants(reply, story, scenes, labels, count),
        )

    async def _variants(
        self,
        about: tuple[Json, Sequence[Json], _Labels],
        order: tuple[int, Json, Sequence[str]],
        read: _Reader,
    ) -> Drafted[Json]:
        (story, scenes, labels), (count, previous, findings) = about, order
        return await self._ask(
            "katha/write_contrastives",
            read,
            casts=shown.casts(scenes),
            count=count,
            findings=list(findings),
            language=language(story),
            moral_label=labels[1],
            previous=previous,
            scenes=shown.scene_texts(scenes),
            title=story["title"],
        )

    async def repair(
        self, story: Json, draft: Json, part: str, findings: Sequence[Json]
    ) -> Drafted[Json] | None:
        """Return a list in which the elements that checks fault were asked for anew; the others stay."""
        before = draft[part]
        if not findings or not before:
            return None
        words = in_words(findings)
        scenes, labels = draft["scenes"], (draft["narrative_type"], draft["moral_label"])
        if part == "scenes":
            texts = shown.scene_texts(scenes)
            drafted = await self._describe(story, texts, shown.scenes_shown(scenes), words)
        elif part == "transitions":
            previous = shown.transitions_shown(before)
            drafted = await self._transitions(story, scenes, labels[1], previous, words)
        elif part == "questions":
            drafted = await self._ask(
                "katha/write_questions",
                lambda reply: read_corrected_questions(reply, story, scenes, labels[1], before),
                **self._about_questions(story, scenes, draft["transitions"], labels[1]),
                findings=words,
                previous=shown.questions_shown(before),
                wanted={},
            )
        else:
            count = len(before)
            drafted = await self._variants(
                (story, scenes, labels),
                (count, shown.variants_shown(before), words),
                lambda reply: read_corrected_variants(reply, story, scenes, labels, count),
            )
        return Drafted(corrected(part, before, drafted.value, findings), drafted.maker)
