"""What a judge said of episodes, as people are asked it: instances, their verdict and their scores.

The judge gives no verdict on presence by itself; it says ``present`` where its overall score reaches the
gate's threshold (EntityBench, Eq. 22). Section B.1 does not say how its verdict was had.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import InputError, UserError
from ..evaluation.archive.archive import Archive
from ..evaluation.entities.archived import answers_of
from ..evaluation.entities.entities import CRITERIA, entity_parts
from ..evaluation.entities.gate import FIDELITY_GATE
from ..schemas.entities import EntityType

VERDICT = {"fidelity": "present", "pair": "same"}
OVERALL = {"fidelity": "overall", "pair": "similarity"}


@dataclass(frozen=True)
class Judged:
    """An instance and what the judge said of it: verdicts 0 or 1, scores in [0, 1]; None where unusable."""

    kind: str
    type: EntityType
    values: Mapping[str, float | None]

    @property
    def asked(self) -> dict[str, tuple[int, int]]:
        """What people are asked -> least and greatest answer."""
        scores = dict.fromkeys((*CRITERIA[self.type], OVERALL[self.kind]), (1, 10))
        return {VERDICT[self.kind]: (0, 1), **scores}


def appearance_item(episode: str, shot: str, entity: str) -> str:
    """Return how answers of people name an appearance."""
    return f"{episode}/fidelity/{shot}/{entity}"


def pair_item(episode: str, pair: str) -> str:
    """Return how answers of people name a pair: ``<entity>/<anchor>/<other>`` of an episode."""
    return f"{episode}/pair/{pair}"


def least_of(archive: Archive) -> float:
    """Return the gate's threshold of an evaluation."""
    return float(archive.manifest.protocol["definitions"].get("gate_appearances.least", FIDELITY_GATE))


def judged(archive: Archive) -> dict[tuple[str, str], Judged]:
    """Return method and item -> what the judge said, for every appearance and pair.

    Raises:
        InputError: there are no replies, as in imported results, or they are of several judges.
    """
    if "imported" in archive.manifest.protocol:
        what = "these are imported results, without the judge's replies, with which people are compared"
        raise InputError([UserError("judges", what=what, fix="give what fabula evaluate episodes wrote")])
    least = least_of(archive)
    listed: dict[tuple[str, str], Judged] = {}
    for (method, episode), answers in answers_of(archive.judgements).items():
        for (kind, item), answer in answers.items():
            if kind == "pair":
                entity = item.rsplit("/", 2)[0]
                listed[method, pair_item(episode, item)] = Judged(
                    kind, entity_parts(entity)[0], answer.values
                )
            elif kind == "fidelity":
                shot, _, entity = item.partition("/")
                overall = answer.of(OVERALL[kind])
                present = None if overall is None else float(overall >= least)
                named = appearance_item(episode, shot, entity)
                values = {**answer.values, VERDICT[kind]: present}
                listed[method, named] = Judged(kind, entity_parts(entity)[0], values)
    return listed
