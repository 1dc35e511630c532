"""What was seen of single episodes, as a report shows it: crops, values and replies, entity by shot."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ....schemas.canonical import Json, canonical_bytes
from ....schemas.judgement import Judgement
from ...report.model import SeenCell, SeenEntity, SeenEpisode, SeenShot, Snap, Verdict
from ...report.showing import Thumbnails, kept_picture
from ..archived import ACTION_CRITERIA, CRITERIA, Answer, Appearance, EpisodeFacts, ShotFacts
from ..metrics.aggregate import ShotDetail, entity_details
from ..metrics.catalogue import Instance

Key = tuple[str, str]
"""Method and episode."""
WIDE = 480
"""Longer side in pixels of a shot's frames as embedded."""
NOT_LOOKED, NO_CROP, NO_VIDEO = "not looked for", "no crop", "no readable video"
_UNASKED = "nobody was asked"


@dataclass(frozen=True)
class Episode:
    """One episode of one method as its report looks at it."""

    shown: bool  # whether the page shows it whole
    facts: EpisodeFacts  # what is known of it
    line: Mapping[str, Json] = field(repr=False)  # its line of the archive
    # kind and entity, and shot -> what was replied
    replies: Mapping[tuple[str, str, str], Judgement] = field(repr=False)

    @property
    def entities(self) -> tuple[str, ...]:
        """The scheduled entities, in the order in which they appear."""
        return tuple(dict.fromkeys(each.entity for shot in self.facts.shots for each in shot.appearances))


def asked_about(judgements: Sequence[Judgement]) -> dict[Key, dict[tuple[str, str, str], Judgement]]:
    """Return method and episode -> kind, entity and shot -> the reply; empty where it is about neither."""
    replies: dict[Key, dict[tuple[str, str, str], Judgement]] = {}
    for judgement in judgements:
        shot, _, entity = judgement.item.partition("/")
        if judgement.kind == "pair":
            entity, _, shot = judgement.item.rsplit("/", 2)
        elif judgement.kind == "location":
            entity, shot = judgement.item, ""
        mine = replies.setdefault((judgement.method or "", judgement.unit), {})
        mine[judgement.kind, entity, shot] = judgement
    return replies


@dataclass
class Seen:
    """Makes what a page shows of episodes."""

    folder: Path  # the evaluation folder, which keeps the pictures
    snaps: Thumbnails  # makes them small

    def episode(self, episode: Episode) -> SeenEpisode:
        """Return an episode: its registry by shot, and its shots."""
        facts = episode.facts
        entities = tuple(self.entity(episode, entity) for entity in episode.entities)
        shots = tuple(
            self._shot(episode, shot, line)
            for shot, line in zip(facts.shots, episode.line["shots"], strict=True)
        )
        return SeenEpisode(
            method=facts.method, episode_id=facts.episode_id, tier=facts.tier, shots=shots, entities=entities
        )

    def entity(self, episode: Episode, entity: str) -> SeenEntity:
        """Return an entity with a cell for every shot."""
        details = {
            shot.shot: shot
            for each in entity_details(episode.facts) if each.entity == entity
            for shot in each.shots
        }  # fmt: skip
        cells: list[SeenCell | None] = []
        known: Mapping[str, Json] = {}
        kind = name = ""
        for shot, line in zip(episode.facts.shots, episode.line["shots"], strict=True):
            appearance = next((each for each in shot.appearances if each.entity == entity), None)
            if appearance is None:
                cells.append(None)
                continue
            kind, name = appearance.type, appearance.name
            known = next(each for each in line["shot"]["entities"] if each["key"] == entity)
            cells.append(self._cell(episode, shot, appearance, line, details.get(shot.key)))
        return SeenEntity(
            name=name, type=kind, description=str(known.get("description") or ""),
            cells=tuple(cells),
            replies=verdicts(episode, ("location", entity, "")),
        )  # fmt: skip

    def _cell(
        self, episode: Episode, shot: ShotFacts, appearance: Appearance, line: Json, detail: ShotDetail | None
    ) -> SeenCell:
        entity = appearance.entity
        status = (appearance.status or NOT_LOOKED) if shot.reached else "missing"
        measured: dict[str, float | str] = {
            f"fidelity: {name.replace('_', ' ')}": of_answer(appearance.fidelity, name, _why_unasked(status))
            for name in ("overall", *CRITERIA[appearance.type])
        }
        measured["crop and description"] = NO_CROP if appearance.clip is None else appearance.clip
        if detail is not None:
            measured |= _across(episode.facts, detail, entity)
        values, missing = parted(measured)
        fidelity = values.get("fidelity: overall")
        return SeenCell(
            shot=shot.key, picture=self._crop(line, entity),
            status=status, fidelity=fidelity, gate=gate_of(episode.facts, entity, shot.key), values=values,
            missing=missing,
            replies=verdicts(episode, *((kind, entity, shot.key) for kind in ("fidelity", "pair"))),
        )  # fmt: skip

    def pictures(self, episode: Episode, each: Instance) -> tuple[Snap, ...]:
        """Return what an instance of a metric is about: crops of its entity, or frames of its shots."""
        pairs = zip(episode.facts.shots, episode.line["shots"], strict=True)
        lines = {shot.key: (shot, line) for shot, line in pairs}
        keys = [key for key in (each.shot, each.other) if key in lines]
        if each.entity is None:
            return tuple(self._frames(*lines[key]) for key in keys)
        return tuple(self._crop(lines[key][1], each.entity) for key in keys)

    def _crop(self, line: Json, entity: str) -> Snap:
        seen = (line["grounded"] or {"entities": {}})["entities"].get(entity) or {}
        if seen.get("canonical") is None:
            return Snap(lost=NO_CROP)
        return self.snaps.crop(kept_picture(self.folder, seen["canonical"].get("file")), None)

    def _shot(self, episode: Episode, shot: ShotFacts, line: Json) -> SeenShot:
        unasked = _UNASKED if shot.reached else NO_VIDEO
        measured: dict[str, float | str] = {
            f"action: {name.replace('_', ' ')}": of_answer(shot.action, name, unasked)
            for name in ("overall", "depicted", *ACTION_CRITERIA)
            if shot.acts and (name != "object_interaction" or shot.names_object)
        }
        why = (line["quality"] or {}).get("why") or {}
        for name, value in (shot.quality or {}).items():
            reason = str(why.get(name, "not measured"))
            measured[name.replace("_", " ")] = reason if value is None else value
        values, missing = parted(measured)
        return SeenShot(
            shot=shot.key, picture=self._frames(shot, line),
            action=str(line["shot"]["action"] or ""), continues=not shot.cut, values=values, missing=missing,
            replies=verdicts(episode, ("action", "", shot.key)),
        )  # fmt: skip

    def _frames(self, shot: ShotFacts, line: Json) -> Snap:
        if not shot.reached:
            return Snap(lost=NO_VIDEO)
        pictures = list((line["frames"].get("pictures") or {}).values())
        file = line["grid"]["file"] if line["grid"] else pictures[len(pictures) // 2] if pictures else None
        return self.snaps.whole(kept_picture(self.folder, file), WIDE)[0]


def _across(facts: EpisodeFacts, detail: ShotDetail, entity: str) -> Iterator[tuple[str, float | str]]:
    """Yield how an appearance of a recurring entity compares with its others."""
    gate = gate_of(facts, entity, detail.shot)
    if not entity.startswith("location:"):
        why = "no centroid, or no vector" if detail.admitted else gate
        yield "to the centroid", why if detail.to_centroid is None else detail.to_centroid
    if entity in facts.locations:
        return
    answer = facts.pairs.get((entity, detail.shot))
    for label, name in (("beside the anchor", "similarity"), ("the same as the anchor", "same")):
        yield label, of_answer(answer, name, _UNASKED if gate == "compared" else gate)


def gate_of(facts: EpisodeFacts, entity: str, shot: str) -> str:
    """Return whether an appearance is compared across shots, in words."""
    gate = (facts.gate or {}).get(entity)
    if gate is None:
        return "not compared across shots"
    if shot == gate.anchor:
        return "the anchor, with which the others are compared"
    if shot in gate.pool:
        return "compared" if gate.anchor is not None else "admitted, with no other to compare with"
    return "held back by the gate: its fidelity is too low" if shot in gate.gated else "not recognised"


def of_answer(answer: Answer | None, name: str, unasked: str) -> float | str:
    """Return a value of an answer, or why there is none."""
    if answer is None:
        return unasked
    if answer.outcome != "answered":
        return f"the reply is {answer.outcome}"
    value = answer.of(name)
    return "the judge gave none" if value is None else value


def _why_unasked(status: str) -> str:
    return {"missing": NO_VIDEO, "absent": "not recognised"}.get(status, _UNASKED)


def parted(measured: Mapping[str, float | str]) -> tuple[dict[str, float], dict[str, str]]:
    """Return what has a value, and why the rest has none."""
    values = {name: value for name, value in measured.items() if not isinstance(value, str)}
    return values, {name: why for name, why in measured.items() if isinstance(why, str)}


def verdicts(episode: Episode, *asked: tuple[str, str, str]) -> tuple[Verdict, ...]:
    """Return the replies to what was asked, as they came."""
    there = [episode.replies[key] for key in asked if key in episode.replies]
    return tuple(
        Verdict(
            judge=reply.judge.spec, condition=reply.kind, vote=reply.vote, outcome=reply.outcome,
            answer=_said(reply), correct=None,
        )
        for reply in there
    )  # fmt: skip


def _said(reply: Judgement) -> str | None:
    if reply.raw is not None:
        return reply.raw
    return reply.reason if reply.parsed is None else canonical_bytes(reply.parsed).decode()
