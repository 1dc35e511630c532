"""Scoring, comparing and showing evaluations of storyboards as the commands ask for it."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from ...errors import InputError
from ...models.chat import Image
from ...releases.loading import Release, load
from ...schemas.canonical import Json, digest
from ...schemas.judgement import EvaluationManifest, Judgement
from ...schemas.katha import Question, StoryRecord
from ...schemas.text import quoted, tallied
from ..archive.archive import check_hash, read_archive, release_sha256
from ..judging.packets import EVIDENCE, Packet, contrast_packets, label_packet, question_packets
from ..judging.settings import FOLDERS, MAIN, PromptSet, SelectionSettings
from ..protocol import UNCERTAINTY, Chosen, Scoring, later
from ..recoverability.compare import (
    AIMS,
    KathaComparison,
    Strongest,
    against_strongest,
    compare_folders,
    compare_within,
)
from ..recoverability.matching import PROTOCOL, Definitions
from ..recoverability.method import DIFFERENCE
from ..recoverability.pooling import KathaScores
from ..recoverability.replies import VARIANT_QUESTION
from ..recoverability.score import Judged, judged_folder, read_weights, scores_of, write_tables
from ..report.model import ReportDocument
from .load_items import chosen_records, variant_story

# -- Which judgements of an evaluation stay valid when the release that was judged gets a new version
#
# A judgement stays valid exactly where the judge would be sent the same again: every packet is put together
# for both releases and compared, text by text. Pictures are the method's, so they are stood for by their
# number: a story with another number of scenes needs other storyboards.

Fate = Literal["valid", "redo", "gone"]
FATES: tuple[Fate, ...] = ("valid", "redo", "gone")
Place = tuple[str, str, str]
"""Kind, item and condition of a packet."""
VECTORS = "vectors"
"""Stands for the kind of a verdict that an encoder's vectors gave."""


@dataclass(frozen=True)
class Affected:
    """What a new version of a release leaves of an evaluation."""

    # kind, condition and judge -> fate -> judgements: ``valid`` as they are, to ``redo`` as the judge would
    # be sent something else, or ``gone`` with what they were about
    counts: Mapping[tuple[str, str, str], Mapping[Fate, int]]
    # kind and condition -> items that only the new version has, each for every method, judge and vote
    new: Mapping[tuple[str, str], int]
    folder: Path  # the evaluation

    def totals(self) -> dict[Fate, int]:
        """Return fate -> judgements."""
        return {fate: sum(row[fate] for row in self.counts.values()) for fate in FATES}

    def as_json(self) -> dict[str, Json]:
        return {
            "folder": str(self.folder),
            "totals": self.totals(),
            "counts": [
                {"kind": kind, "condition": condition, "judge": judge, **row}
                for (kind, condition, judge), row in self.counts.items()
            ],
            "new": [
                {"kind": kind, "condition": condition, "items": count}
                for (kind, condition), count in self.new.items()
            ],
        }

    def table(self) -> list[list[str]]:
        """Return the counts as rows of text, the head first."""
        rows = [["kind", "condition", "judge", *FATES]]
        for names, row in self.counts.items():
            rows.append([*names, *(str(row[fate]) for fate in FATES)])
        return [*rows, ["all", "", "", *(str(count) for count in self.totals().values())]]

    def lines(self) -> Iterator[str]:
        totals = self.totals()
        yield (
            f"evaluation {self.folder}: "
            f"{tallied(totals['valid'], 'judgements')} still valid, {totals['redo']} to redo,"
            f" {totals['gone']} about nothing any more"
        )
        table = self.table()
        widths = [max(len(row[place]) for row in table) for place in range(len(table[0]))]
        for row in table:
            yield (
                "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            )
        for (kind, condition), count in self.new.items():
            yield f"  new: {count} of kind {kind} under {condition}, for every method, judge and vote"
        reuse = f"fabula evaluate stories --reuse {quoted(self.folder)}"
        yield f"{reuse}, with a new --out, asks only what is left"


def affected_judgements(
    evaluation: Path | str,
    old: Path | str,
    new: Path | str,
    read: Callable[[Path], Release] = load,
) -> Affected:
    """Tell which judgements of an evaluation of one version of a release stay valid under another."""
    folder = Path(evaluation)
    archive = read_archive(folder)
    if archive.manifest.kind != PROTOCOL:
        raise InputError.one(
            str(folder), what=f"this is an evaluation of kind {archive.manifest.kind}, not katha",
            fix="give the folder of a `fabula evaluate stories` run",
        )  # fmt: skip
    check_hash(archive, "release", release_sha256(old), str(old))
    before, after = read(Path(old)), read(Path(new))
    now = _chosen(after, archive.manifest)
    packets = _Packets(before, after, now, int(archive.manifest.protocol.get("seed", 0)))
    counts: dict[tuple[str, str, str], Counter[Fate]] = {}
    for one in archive.judgements:
        counts.setdefault((one.kind, one.condition, one.judge.spec), Counter())[packets.fate(one)] += 1
    asked = {(one.kind, one.condition) for one in archive.judgements if one.kind != "match"}
    return Affected(
        counts={key: {fate: row[fate] for fate in FATES} for key, row in sorted(counts.items())},
        new=packets.new_items(_chosen(before, archive.manifest), asked),
        folder=folder,
    )


class _Packets:
    """The packets of two versions of a release, put together where they are asked for."""

    def __init__(self, old: Release, new: Release, now: Sequence[StoryRecord], seed: int) -> None:
        self._old, self._new, self._seed = old, new, seed
        self._now = {record.story_id for record in now}
        self._same = {
            story_id
            for story_id, record in old.by_id.items()
            if new.by_id.get(story_id) == record and new.variants_of[story_id] == old.variants_of[story_id]
        }
        self._made: dict[tuple[str, PromptSet], tuple[dict[Place, str], dict[Place, str]]] = {}

    def fate(self, judgement: Judgement) -> Fate:
        """Return what becomes of a judgement."""
        if judgement.unit not in self._now:
            return "gone"
        if judgement.unit in self._same:
            return "valid"
        name = _set_of(judgement.prompt)
        if (judgement.unit, name) not in self._made:
            self._made[judgement.unit, name] = (
                _sent(self._old, judgement.unit, self._seed, name),
                _sent(self._new, judgement.unit, self._seed, name),
            )
        before, after = self._made[judgement.unit, name]
        # Texts that an encoder compares go without a prompt.
        by_vectors = judgement.kind == "match" and not judgement.prompt
        place = (VECTORS if by_vectors else judgement.kind, judgement.item, judgement.condition)
        if place not in after:
            return "gone"
        return "valid" if before.get(place) == after[place] else "redo"

    def new_items(
        self, then: Sequence[StoryRecord], asked: Collection[tuple[str, str]]
    ) -> dict[tuple[str, str], int]:
        """Return kind and condition -> items of the new version that the old one did not have."""
        known = {record.story_id for record in then}
        counts: Counter[tuple[str, str]] = Counter()
        for story_id in sorted(self._now - (self._same & known)):
            there = _sent(self._old, story_id, self._seed, MAIN) if story_id in known else {}
            for kind, item, condition in _sent(self._new, story_id, self._seed, MAIN):
                if (kind, condition) in asked and (kind, item, condition) not in there:
                    counts[kind, condition] += 1
        return dict(sorted(counts.items()))


def _sent(release: Release, story_id: str, seed: int, prompts: PromptSet) -> dict[Place, str]:
    """Return place -> digest of what a judge is sent, of every packet about a story."""
    record = release.by_id.get(story_id)
    if record is None:
        return {}
    pictures = tuple(Image(b"", "image/jpeg") for _ in record.scenes)
    told = [variant_story(record, one) for one in release.variants_of[story_id] if one.has_variant]
    sent: dict[Place, str] = {}
    for condition in EVIDENCE:
        shown = () if condition == "text" else pictures
        asks = [
            (kind, each, question)
            for kind, some in (("question", [record]), (VARIANT_QUESTION, told))
            for each in some
            for question in each.questions
        ]
        for kind, each, question in asks:
            place = (kind, question.question_id, condition)
            alone = each.model_copy(update={"questions": (question,)})
            asked = partial(question_packets, alone, condition, shown, seed, prompts)
            sent[place] = _question_digest(question, asked)
            # A matcher is given the answer to the question, so its verdict goes with it.
            compared = [sent[place], question.gold_answer, question.accepted_answers]
            sent[VECTORS, question.question_id, condition] = digest(compared)
            matched = [sent[place], question.accepted_answers, question.question, record.language]
            sent["match", question.question_id, condition] = digest(matched)
        label = label_packet(record, condition, shown, seed, prompts)
        if label is not None:
            sent["moral_label", label.item, condition] = _digest(label)
    for packet in contrast_packets(record, release.variants_of[story_id], pictures, seed, prompts):
        sent["contrast", packet.item, packet.condition] = _digest(packet)
        sent["variant", packet.item, packet.condition] = sent["contrast", packet.item, packet.condition]
    return sent


def _question_digest(question: Question, asked: Callable[[], Iterator[Packet]]) -> str:
    try:
        (packet,) = asked()
    except ValueError:  # of no scored dimension: nobody can be asked
        return digest(question.as_json())
    return _digest(packet)


def _digest(packet: Packet) -> str:
    texts = [part if isinstance(part, str) else None for part in packet.parts()]
    return digest([packet.prompt.label, texts])


def _chosen(release: Release, manifest: EvaluationManifest) -> tuple[StoryRecord, ...]:
    """Return the records of a release that an evaluation's choice of stories gives."""
    given = manifest.environment.get("selection")
    try:
        settings = SelectionSettings.model_validate(given if isinstance(given, dict) else {})
    except ValidationError:  # an archive of somebody else's making
        settings = SelectionSettings()
    stories = tuple(one for one in settings.stories if one in release.by_id)
    splits = tuple(one for one in settings.split if one in release.splits)
    if (settings.stories and not stories) or (settings.split and not splits):
        return ()
    return chosen_records(release, settings.model_copy(update={"stories": stories, "split": splits}))


def _set_of(label: str) -> PromptSet:
    """Return the set of a judges' prompt by its label; the main one where it is of none."""
    folder = label.partition("@")[0].rpartition("/")[0] + "/"
    return next((name for name, prefix in FOLDERS.items() if prefix == folder), MAIN)


# -- Scoring, comparing and showing evaluations of storyboards as the commands ask for it


def definitions_of(chosen: Chosen) -> Definitions:
    given = chosen.of("matcher", "nonresponse", "support", "common", "resamples", *UNCERTAINTY)
    weights = chosen.options.get("weights")
    return Definitions(weights=None if weights is None else read_weights(weights), **given)


def score(folder: Path, chosen: Chosen) -> KathaScores:
    """Return the scores, and write the tables behind them where they are asked for."""
    definitions, tables = definitions_of(chosen), chosen.options.get("tables")
    judged = judged_folder(
        folder, chosen.options.get("release"), definitions,
        splits=chosen.options.get("split", ()), read=chosen.stories,
    )  # fmt: skip
    if tables is not None:
        write_tables(tables, folder, judged, definitions)
    return scores_of(judged, definitions)


def compare(first: Path, second: Path, chosen: Chosen, allowed: Collection[str]) -> KathaComparison:
    """Return the methods of two evaluations against each other."""
    release, definitions = chosen.options.get("release"), definitions_of(chosen)
    return compare_folders(first, second, release, definitions, allowed, read=chosen.stories)


def within(folder: Path, chosen: Chosen) -> KathaComparison | Strongest:
    """Return the methods of one evaluation against each other, or against the strongest baseline."""
    release = chosen.options.get("release")
    if chosen.options.get("against"):
        definitions = definitions_of(chosen)
        return _strongest(judged_folder(folder, release, definitions, read=chosen.stories), chosen)
    return compare_within(folder, release, definitions_of(chosen), read=chosen.stories)


def report(folder: Path, chosen: Chosen) -> ReportDocument:
    from .report.page import katha_report

    release, outputs = chosen.options.get("release"), chosen.options.get("outputs", ())
    marked = partial(_strongest, chosen=chosen) if chosen.options.get("against") else None
    return katha_report(folder, release, outputs, read=chosen.stories, strongest=marked)


def _strongest(judged: Judged, chosen: Chosen) -> Strongest:
    """Return the methods against the strongest baseline, as the options ask for it."""
    given, rated = chosen.options, chosen.options.get("human")
    measures = [name for some in given.get("measures", ()) for name in some.split(",")]
    usual = [name for name in AIMS if name != "human" or rated is not None]
    methods = frozenset(method.name for method in judged.methods)
    ratings = None if rated is None else rated(judged.release.records, methods)
    return against_strongest(
        judged,
        definitions_of(chosen),
        given["against"],
        measures or usual,
        given.get("references", ()),
        ratings,
    )


def affected(folder: Path, old: Path, new: Path, chosen: Chosen) -> Affected:
    """Return which judgements stay valid under another version of the release."""
    return affected_judgements(folder, old, new, chosen.stories)


OF_STRONGEST = ("against", "measures", "references", "human")
SCORING = Scoring(
    "storyboards (stories)", score, compare, report, affected,
    (
        "release", "split", "matcher", "support", "common", "weights", "tables", "nonresponse",
        *OF_STRONGEST,
    ),
    of_report=("release", "outputs", *OF_STRONGEST), compared=later("katha.report.tables:compared_tables"),
    tables=later("katha.report.tables:score_tables"), of_people=later("katha.report.people:people_tables"),
    within=within, difference=DIFFERENCE, compared_by="gap",
)  # fmt: skip
