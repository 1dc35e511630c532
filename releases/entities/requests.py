"""What a generator of videos is given for each shot of an episode: prompt, entities, name of the result.

Generators differ in what they take, and scripts are converted to the form that each expects (EntityBench,
section 5.1): names or abstract ids, with or without a header that describes entities, with the stored
descriptions of those that were shown before (section 4, stage 3), shot by shot or the whole episode at once.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import ConfigError
from ...schemas.canonical import Json, jsonl_lines, write_atomic
from ...schemas.entities import ALL, TYPES, EntityType, EpisodeShot
from ...validators.entities.view import EntityKey, EpisodeView, view_of
from ..shots.tree import cut_at_space
from ..target import require_free, staged
from .tree import EntitySet

REQUESTS = "requests.jsonl"
HEADERS = ("official", "none", "first", "all")
"""Header of a prompt: as the file has it; none; the entities that are new in the shot; all that it shows."""
PER = ("shot", "episode")


@dataclass(frozen=True)
class RequestOptions:
    """How scripts are adapted to a generator.

    Attributes:
        header: entities that a prompt describes: ``official`` (as in the file), ``none``, ``all``, or
            ``first`` (new ones). Other descriptions are those of the registry; what it does not have cannot
            be described.
        ids: write ids such as ``[character1]`` for names of this type: character, location, object.
        max_chars: most characters of a prompt; what is beyond is cut at a space and counted [all].
        per: a line per ``shot``, or per ``episode`` for generators that take all shots at once.
        tier: only episodes of this tier [all].
        split: split file that says the tier [that of most episodes].
        seed: seed of the first shot of each episode; every shot adds 1.
    """

    header: str = "official"
    ids: tuple[str, ...] = ()
    max_chars: int | None = None
    per: str = "shot"
    tier: str | None = None
    split: str | None = None
    seed: int = 42

    def checked(self) -> "RequestOptions":
        """Return the options after checking them."""
        for option, value, allowed in (("--header", self.header, HEADERS), ("--per", self.per, PER)):
            if value not in allowed:
                raise _wrong(option, f"one of {', '.join(allowed)}", value)
        unknown = [kind for kind in self.ids if kind not in TYPES]
        if unknown:
            raise _wrong("--ids", f"some of {', '.join(TYPES)}", ", ".join(unknown))
        for option, number, least in (("--max-chars", self.max_chars, 1), ("--seed", self.seed, 0)):
            if number is not None and number < least:
                raise _wrong(option, f"{least} or more", str(number))
        return self


def result_name(episode_id: str, shot: EpisodeShot) -> str:
    """Return the path of a generated shot below the folder of results, as the official evaluator has it."""
    return f"{episode_id}/{shot.scene:03d}_{shot.number:03d}.mp4"


def entity_requests(entity_set: EntitySet, options: RequestOptions | None = None) -> Iterator[Json]:
    """Yield one request per shot, or per episode, in order.

    A request of a shot holds ``episode_id``, ``shot`` (its number in the episode), ``key``, ``file`` (where
    the result goes), ``prompt``, ``cut_off`` (characters cut off the prompt), ``cut`` (whether it begins
    anew), ``continues`` (the file of the shot that it continues), ``entities`` and ``seed``. Each entity has
    ``name``, ``as`` (how the prompt calls it), ``type``, ``label``, ``description``, ``described`` (whether
    the prompt does) and ``shown_in`` (files of earlier shots). That of an episode holds ``episode_id``,
    ``overview`` and the same of all its ``shots``.
    """
    chosen = (options or RequestOptions()).checked()
    tiers = entity_set.tiers(chosen.split)
    if chosen.tier is not None and chosen.tier not in tiers:
        raise _wrong("--tier", f"one of {', '.join(tiers)}", chosen.tier)
    wanted = set(tiers[chosen.tier]) if chosen.tier not in (None, ALL) else set(entity_set.by_id)
    for episode in entity_set.episodes:
        if episode.episode_id not in wanted:
            continue
        view = view_of(episode.episode_id, episode.script)
        adapter = _Adapter(view, chosen)
        shots = adapter.requests()
        if chosen.per == "shot":
            yield from shots
        else:
            overview = adapter.renamed(episode.script.story_overview or "")
            yield {"episode_id": view.episode_id, "overview": overview, "shots": list(shots)}


def write_requests(entity_set: EntitySet, out: Path, options: RequestOptions | None = None) -> dict[str, int]:
    """Write what a generator is given into a new folder: ``requests.jsonl``.

    Returns:
        How many ``requests`` and ``shots`` there are, and how many prompts were ``cut``.
    """
    require_free(out)
    lines = list(entity_requests(entity_set, options))
    with staged(out.absolute()) as (draft,):
        write_atomic(draft / REQUESTS, jsonl_lines(lines))
    shots = [shot for line in lines for shot in line.get("shots", [line])]
    return {"requests": len(lines), "shots": len(shots), "cut": sum(shot["cut_off"] > 0 for shot in shots)}


class _Adapter:
    """Adapts the shots of one episode."""

    def __init__(self, view: EpisodeView, options: RequestOptions) -> None:
        self._view, self._options = view, options
        self._calls = _calls(view, options.ids)
        # All names, longest first: a name within another one is not its own.
        known = {*view.labels, *(name for _, name in view.appearances)} if self._calls else set()
        names = sorted(known, key=lambda name: (-len(name), name))
        joined = "|".join(map(re.escape, names))
        self._names = re.compile(rf"(?<!\w)(?:{joined})(?!\w)") if names else None
        self._first = {key: numbers[0] for key, numbers in view.appearances.items()}

    def requests(self) -> Iterator[dict[str, Json]]:
        """Yield the request of each shot."""
        before: EpisodeShot | None = None
        for number, shot in enumerate(self._view.shots, 1):
            described = self._described(number, shot)
            prompt, cut_off = cut_at_space(self._prompt(number, shot, described), self._options.max_chars)
            continued = before is not None and not shot.cut
            yield {
                "episode_id": self._view.episode_id,
                "shot": number,
                "key": shot.key,
                "file": result_name(self._view.episode_id, shot),
                "prompt": prompt,
                "cut_off": cut_off,
                "cut": shot.cut,
                "continues": result_name(self._view.episode_id, before) if continued and before else None,
                "entities": [self._entity(number, key, described) for key in _shown(shot)],
                "seed": self._options.seed + number - 1,
            }
            before = shot

    def _described(self, number: int, shot: EpisodeShot) -> Sequence[str]:
        """Return the names that the prompt of a shot describes, in order."""
        if self._options.header == "official":
            lines = self._view.headers[number - 1].lines
            return [line.name for line in lines if line.name is not None]
        known = [key for key in _shown(shot) if self._view.descriptions.get(key[1])]
        if self._options.header == "none":
            return []
        return [
            name for kind, name in known if self._options.header == "all" or self._first[kind, name] == number
        ]

    def _prompt(self, number: int, shot: EpisodeShot, described: Sequence[str]) -> str:
        header = self._view.headers[number - 1]
        if self._options.header == "official" and (not header.ends_with_action or not self._calls):
            return self.renamed(shot.prompt)
        if self._options.header == "official":
            lines = [self.renamed(line.text) for line in header.lines]
        else:
            lines = [
                f"{self._calls.get(name, name)}: {self.renamed(self._view.descriptions[name])}"
                for name in described
            ]
        return "\n".join(lines) + ("\n\n" if lines else "") + self.renamed(shot.action)

    def renamed(self, text: str) -> str:
        """Return a text with ids in the place of names, where they are asked for."""
        if self._names is None:
            return text
        return self._names.sub(lambda match: self._calls.get(match[0], match[0]), text)

    def _entity(self, number: int, key: EntityKey, described: Sequence[str]) -> dict[str, Json]:
        kind, name = key
        shown = [one for one in self._view.appearances[key] if one < number]
        return {
            "name": name,
            "as": self._calls.get(name, name),
            "type": kind,
            "label": next(iter(self._view.labels.get(name, ())), None),
            "description": self._view.descriptions.get(name),
            "described": name in described,
            "shown_in": [result_name(self._view.episode_id, self._view.shots[one - 1]) for one in shown],
        }


def _shown(shot: EpisodeShot) -> list[EntityKey]:
    return [(kind, name) for kind in TYPES for name in dict.fromkeys(shot.scheduled.names(kind))]


def _calls(view: EpisodeView, kinds: Sequence[str]) -> Mapping[str, str]:
    """Return name -> id, for names of some types: numbered as in the registry, then as they appear."""
    counts: dict[EntityType, int] = {}
    calls: dict[str, str] = {}
    for name in (*view.labels, *(name for _, name in view.appearances)):
        kind = view.type_of(name)
        if kind in kinds and kind is not None and name not in calls:
            counts[kind] = counts.get(kind, 0) + 1
            calls[name] = f"[{kind}{counts[kind]}]"
    return calls


def _wrong(option: str, expected: str, found: str) -> ConfigError:
    return ConfigError(option, expected=expected, found=repr(found), fix="correct the option")
