"""A story as the drafting rules see it: its clauses by scene, with their verbs, and who is in them."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from ...schemas.canonical import Json
from .emotions import Felt, told_feeling
from .referents import Referents
from .segments import Analysis, Entity, Feeling, strip_lead
from .spans import Span, scene_spans
from .statements import Link, Statement, Told, find_links, read_statements
from .words import Kind, find_verb, is_participle, lexicon, lower_words, verb_kind, word_set

_RELATIVE = ("who", "whose", "which", "where", "that", "than")

LONGEST_CLAUSE = 28
"""Words that a clause taken as an answer or an action may have."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One segment of the story.

    Attributes:
        text: as it stands in the story.
        core: without leading connectives and the punctuation at its ends.
        scene: index of its scene, from 0.
        segment: its number in the analysis.
        sentence: number of its sentence.
        kind: what its verb tells; None where no verb was found.
        motion: whether the verb is one that can be seen.
        subjectless: whether it begins with its verb, as after "and".
    """

    text: str
    core: str
    scene: int
    segment: int
    sentence: int
    kind: Kind | None
    motion: bool
    subjectless: bool


class StoryView:
    """A story, its analysis and its scenes.

    Args:
        story: ``schemas.story.Story`` as JSON.
        analysis: what :func:`Analysis.as_json` gave.
        scenes: the scenes' texts, in order.

    Raises:
        ValueError: the scenes do not cover the story.
    """

    def __init__(self, story: Json, analysis: Json, scenes: Sequence[str]) -> None:
        self.story = story
        self.id: str = story["id"]
        self.title: str = story["title"]
        self.text: str = story["normalized_text"]
        self.analysis = Analysis.from_json(analysis)
        self.english = self.analysis.english
        spans = scene_spans(self.text, scenes)
        if spans is None:
            raise ValueError(f"the scenes of {self.id} do not cover its text")
        self.spans: tuple[Span, ...] = spans

    @property
    def count(self) -> int:
        """The number of scenes."""
        return len(self.spans)

    @cached_property
    def _told(self) -> Told:
        return read_statements(self.text, self.analysis)

    @property
    def statements(self) -> tuple[Statement | None, ...]:
        """What the story says outright, in order; None stands for what is unread."""
        return self._told.statements

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """The causes that the story states, in order."""
        return find_links(self.statements)

    @property
    def referents(self) -> Referents:
        """Whom the pronouns of the story mean."""
        return self._told.referents

    def scene_at(self, statement: Statement) -> int:
        """Return the index of the scene in which a statement begins."""
        return self.scene_of_place(statement.reading.start)

    def scene_of_place(self, place: int) -> int:
        """Return the index of the scene in which a place of the text lies."""
        return bisect_right([start for start, _ in self.spans[1:]], place)

    @cached_property
    def _by_scene(self) -> tuple[tuple[Statement, ...], ...]:
        scenes: list[list[Statement]] = [[] for _ in self.spans]
        for statement in self.statements:
            if statement is not None:
                scenes[self.scene_at(statement)].append(statement)
        return tuple(map(tuple, scenes))

    def said_in(self, scene: int) -> tuple[Statement, ...]:
        """Return the statements that begin in a scene."""
        return self._by_scene[scene]

    @cached_property
    def called(self) -> frozenset[str]:
        """The last word of the name of each character, in lower case."""
        return frozenset(e.name.split()[-1].lower() for e in self.analysis.entities if e.character)

    def scene_text(self, scene: int) -> str:
        """Return the text of a scene, by index from 0."""
        start, end = self.spans[scene]
        return self.text[start:end]

    @cached_property
    def scene_of(self) -> tuple[int, ...]:
        """The scene in which each segment begins, by segment number."""
        found, scene = [], 0
        for segment in self.analysis.segments:
            while scene + 1 < self.count and segment.start >= self.spans[scene][1]:
                scene += 1
            found.append(scene)
        return tuple(found)

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """The clauses of the story, in order."""
        return tuple(self._clause(number) for number in range(len(self.analysis.segments)))

    def _clause(self, number: int) -> Clause:
        segment, scene = self.analysis.segments[number], self.scene_of[number]
        text = self.text[segment.start : min(segment.end, self.spans[scene][1])]
        if not self.english:
            return Clause(
                text,
                text.strip(" ,;:.!?，。；：！？、،؛؟।॥"),
                scene,
                number,
                segment.sentence,
                None,
                False,
                False,
            )
        core, kind, motion, headless = _read_clause(text)
        return Clause(text, core, scene, number, segment.sentence, kind, motion, headless)

    @cached_property
    def by_scene(self) -> tuple[tuple[Clause, ...], ...]:
        """The clauses of each scene."""
        return tuple(tuple(c for c in self.clauses if c.scene == scene) for scene in range(self.count))

    def events(self, scene: int) -> tuple[Clause, ...]:
        """Return the clauses of a scene that tell an event; without cue lists, all clauses."""
        clauses = self.by_scene[scene]
        if not self.english:
            return clauses
        return tuple(c for c in clauses if c.kind in ("event", "speech")) or clauses

    def entities(self, scene: int, *, characters: bool) -> tuple[str, ...]:
        """Return the names of the characters, or of the things, that a scene names, in story order."""
        return tuple(e.name for e in self._named[scene] if e.character is characters)

    @cached_property
    def _named(self) -> tuple[tuple[Entity, ...], ...]:
        scenes = [{self.scene_of[at] for at in entity.at} for entity in self.analysis.entities]
        return tuple(
            tuple(e for e, named in zip(self.analysis.entities, scenes, strict=True) if scene in named)
            for scene in range(self.count)
        )

    def feelings(self, scene: int) -> tuple[Feeling, ...]:
        """Return the words of a scene that may tell an emotion."""
        return tuple(f for f in self.analysis.feelings if self.scene_of[f.segment] == scene)

    def felt(self, scene: int) -> tuple[Felt, ...]:
        """Return the feelings that a scene tells outright, with who feels them."""
        return tuple(felt for s in self.said_in(scene) if (felt := told_feeling(s)) is not None)

    def emotion(self, scene: int) -> str | None:
        """Return the one emotion that a scene tells outright; None where it tells none or several."""
        emotions = {felt.emotion for felt in self.felt(scene)}
        return emotions.pop() if len(emotions) == 1 else None

    def full(self, clause: Clause) -> str:
        """Return a clause's core from the clause on that has its subject, if that is not too long."""
        first = clause.segment
        while self.clauses[first].subjectless and self._same_sentence(first - 1, clause):
            first -= 1
        if first == clause.segment:
            return clause.core
        start = self.analysis.segments[first].start
        end = self.analysis.segments[clause.segment].start + len(clause.text)
        joined = strip_lead(self.text[start:end])
        return joined if len(joined.split()) <= LONGEST_CLAUSE else clause.core

    def _same_sentence(self, number: int, clause: Clause) -> bool:
        if number < 0:
            return False
        other = self.clauses[number]
        return other.sentence == clause.sentence and other.scene == clause.scene


@lru_cache(maxsize=4096)
def _read_clause(text: str) -> tuple[str, Kind | None, bool, bool]:
    """Return core, kind, motion and subjectless of an English clause. The stages of a story share it."""
    core = strip_lead(text)
    words = lower_words(core)
    headless = _begins_with_verb(words)
    verb = 0 if headless else find_verb(words)
    if verb is None:
        return core, None, False, headless
    kind = "stative" if words[0] in _RELATIVE else verb_kind(words, verb)
    return core, kind, words[verb] in word_set("verbs", "motion"), headless


def _begins_with_verb(words: Sequence[str]) -> bool:
    if not words:
        return False
    first = words[0]
    if first in word_set("verbs", "not_verbs") or first in word_set("words", "function"):
        return False
    if len(words) > 1 and words[1] == "by":
        return True
    past = first in lexicon("verbs")["irregular"] or (len(first) > 3 and first.endswith("ed"))
    return past or is_participle(first)


_RANK = {"event": 2, "speech": 1, "stative": 0, None: -1}


def main_action(view: StoryView, scene: int) -> Clause | None:
    """Return the clause that tells what mainly happens in a scene, the first of equals; None without verb."""
    named = view.entities(scene, characters=True)

    def worth(clause: Clause) -> int:
        acts = any(name.lower() in clause.core.lower() for name in named)
        short = len(clause.core.split()) <= LONGEST_CLAUSE
        return 4 * _RANK[clause.kind] + 2 * clause.motion + acts + short

    told = [clause for clause in view.by_scene[scene] if clause.kind is not None]
    return max(told, key=worth, default=None)


def main_statement(view: StoryView, scene: int) -> Statement | None:
    """Return what a scene says that is done in it: what can be seen rather than said, the first of equals."""

    def worth(statement: Statement) -> int:
        seen = statement.kind == "event" and statement.verb in word_set("verbs", "motion")
        return 2 * (statement.kind == "event") + seen

    done = [s for s in view.said_in(scene) if s.kind in ("event", "speech") and not s.negated]
    return max(done, key=worth, default=None)
