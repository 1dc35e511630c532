"""Which votes count after the rules of the protocol: of a vote, lines of some kinds may be left out."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from ...schemas.judgement import HumanRow
from .exclusions import Excluded, answer_of, apply
from .folder import Study
from .standing import Standing
from .task import Question
from .votes import Counted, counted_votes, rows_of

Key = tuple[str, str, int]


@dataclass(frozen=True)
class KeptVotes:
    """Which votes count.

    Attributes:
        excluded: who and what is left out, and why.
        dropped: vote (person, item, repetition) -> kinds of its lines that are left out.
        kinds: vote -> all kinds of its lines.
    """

    excluded: Excluded
    dropped: Mapping[Key, frozenset[str]]
    kinds: Mapping[Key, frozenset[str]]

    def counts(self, vote: Counted) -> bool:
        """Return whether anything of a vote counts."""
        key, nothing = _key(vote), frozenset[str]()
        whole = self.kinds.get(key, nothing)
        return vote.person.id not in self.excluded.people and (not whole or whole != self.dropped.get(key))

    def counts_for(self, vote: Counted, question: Question) -> bool:
        """Return whether the answer to a question of a vote counts."""
        return self.counts(vote) and question.row not in self.dropped.get(_key(vote), ())

    def as_json(self) -> dict[str, Any]:
        """Return who and what is left out, as plain JSON."""
        return self.excluded.as_json()


def kept_votes(study: Study, standing: Standing) -> KeptVotes:
    """Return which votes of a study count after the rules of its protocol."""
    origins: dict[int, Counted] = {}
    rows: list[HumanRow] = []
    kinds: dict[Key, frozenset[str]] = {}
    for vote in counted_votes(study, standing):
        own = rows_of(study, vote)
        origins |= {id(row): vote for row in own}
        kinds[_key(vote)] = frozenset(row.kind for row in own)
        rows += own

    def pressed(row: HumanRow) -> Hashable:
        if row.kind != "preference" or row.value is None:
            return answer_of(row)
        return -row.value if origins[id(row)].vote.flip else row.value

    excluded = apply(rows, study.protocol.rules, pressed)
    dropped: dict[Key, frozenset[str]] = {}
    for each in excluded.rows:
        key = _key(origins[id(each.row)])
        dropped[key] = dropped.get(key, frozenset()) | {each.row.kind}
    return KeptVotes(excluded, dropped, kinds)


def _key(vote: Counted) -> Key:
    return vote.person.id, vote.item, vote.repeat
