"""Answers that judges and people gave and no key accepts: what people decide about right answers.

Question: how often does an answer say the same as an accepted one, though it is none of them?
Input: the answers of an evaluation, and those of people if given; those that are alike after normalisation
    count once, as they were written most often. Those that say that nothing can be told are left out.
Controls: a share of what is drawn are answers that the key accepts; of these the key shows the others only,
    so that nobody sees that they are controls. Questions with one accepted answer have none.
Source: KathaTrace, E.6 and Table 61 (matchers of answers compared with people); shares and draw are ours.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ....errors import InputError
from ....evaluation.archive.archive import JUDGEMENTS, Archive, read_archive, release_sha256
from ....evaluation.archive.replies import last_attempts
from ....evaluation.recoverability.matching import UNCERTAIN, Key
from ....schemas.canonical import Json, digest, sha256_file
from ....schemas.judgement import HumanRow
from ....schemas.katha import Question
from ....schemas.text import normalize_answer
from ...read import Known, read_human
from ..items import Drawn
from .source import Drawing, Material, Source
from .storyboards import chosen_records, judged_release

CONTROLS = 0.1
"""Usual share of accepted answers."""
CONTROL, UNMATCHED = "control", "unmatched"


@dataclass(frozen=True)
class GivenAnswer:
    """A different answer to a question: as it is compared, as it is shown, and whether the key accepts it."""

    question: Question
    compared: str
    shown: str
    accepted: bool

    @property
    def others(self) -> tuple[str, ...]:
        """The accepted answers that the key shows beside this one, the canonical one first."""
        kept = {
            normalize_answer(text): text
            for text in reversed((self.question.gold_answer, *self.question.accepted_answers))
        }
        kept.pop(self.compared, None)
        return tuple(reversed([text for text in kept.values() if text.strip()]))


def draw_answers(material: Material) -> Drawing:
    options, archive = material.options, read_archive(material.path)
    release = judged_release(material, archive)
    records = chosen_records(release, options)
    questions = {question.question_id: question for record in records for question in record.questions}
    said = _by_judges(archive)
    if options.human is not None:
        every = Known.of_records(release.records, frozenset(archive.manifest.subject.get("methods", ())))
        said = [*said, *_by_people(read_human(options.human, every))]
    given = answers_of(questions, said)
    share = CONTROLS if options.controls is None else options.controls
    drawn = sampled(given, options.count, share, options.seed)
    if not drawn:
        what = "every answer is an accepted one, or says that nothing can be told"
        raise InputError.one(str(material.path), what=what, fix="there is nothing to compare")
    source: dict[str, Json] = {
        "kind": material.what, "path": material.path.resolve().name,
        "release_sha256": release_sha256(release.path),
        "judgements_sha256": sha256_file(material.path / JUDGEMENTS),
        "human_sha256": None if options.human is None else sha256_file(options.human),
        "answers": {"different": len(given), "accepted": sum(each.accepted for each in given)},
    }  # fmt: skip
    wanted = len(drawn) if options.count is None else options.count
    short = (f"{len(drawn)} of {wanted} answers wanted",) if len(drawn) < wanted else ()
    return Drawing(tuple(map(_item, drawn)), source, short)


def _by_judges(archive: Archive) -> list[tuple[str, str]]:
    """Return question id and answer of every reply that counts."""
    listed = []
    for reply in last_attempts(archive.judgements):
        if reply.kind == "question" and reply.parsed is not None:
            answer = reply.parsed.get("final_answer" if reply.condition == "text_image" else "answer")
            if isinstance(answer, str):
                listed.append((reply.item, answer))
    return listed


def _by_people(rows: Iterable[HumanRow]) -> Iterator[tuple[str, str]]:
    return ((str(row.item), str(row.answer)) for row in rows if row.kind == "answer" and not row.repeat)


def answers_of(questions: Mapping[str, Question], said: Iterable[tuple[str, str]]) -> list[GivenAnswer]:
    """Return the different answers to questions, by question and answer.

    ``questions``: question id -> question; answers to others are left out.
    """
    forms: dict[tuple[str, str], Counter[str]] = {}
    for item, answer in said:
        compared = normalize_answer(answer)
        if item in questions and compared and compared not in UNCERTAIN:
            forms.setdefault((item, compared), Counter())[answer.strip()] += 1
    keys = {name: Key.of(question) for name, question in questions.items()}
    return [
        GivenAnswer(
            questions[item], compared, _usual(counts),
            compared in keys[item].accepted,
        )
        for (item, compared), counts in sorted(forms.items())
    ]  # fmt: skip


def _usual(forms: Counter[str]) -> str:
    """Return the form that was written most often; of several, the first in the alphabet."""
    return min(forms, key=lambda text: (-forms[text], text))


def sampled(given: Iterable[GivenAnswer], count: int | None, controls: float, seed: int) -> list[GivenAnswer]:
    """Return answers that no key accepts, with a share of accepted ones; drawn, sorted as they came.

    ``controls``: share of accepted answers, in [0, 1).
    """
    listed = list(given)
    unmatched = [number for number, each in enumerate(listed) if not each.accepted]
    known = [number for number, each in enumerate(listed) if each.accepted and each.others]
    if not unmatched:
        return []
    wanted = round(len(unmatched) / (1 - controls)) if count is None else count
    draw = random.Random(seed)
    some = draw.sample(known, min(len(known), round(wanted * controls)))
    rest = draw.sample(unmatched, min(len(unmatched), wanted - round(wanted * controls)))
    return [listed[number] for number in sorted([*some, *rest])]


def _item(given: GivenAnswer) -> Drawn:
    question = given.question
    texts: dict[str, Json] = {
        "question": question.question, "accepted": list(given.others), "answer": given.shown
    }  # fmt: skip
    return Drawn(
        question.question_id, question.story_id, texts, stratum=CONTROL if given.accepted else UNMATCHED,
        digest=digest([question.question, sorted(question.accepted_answers), given.compared]),
    )  # fmt: skip


SOURCE = Source(
    "answers to questions", {"evaluation": ("katha",)},
    "an evaluation of storyboards or stories with questions (fabula evaluate stories)",
    ("stories", "splits", "limit", "count", "controls", "release", "human"), draw_answers,
)  # fmt: skip
