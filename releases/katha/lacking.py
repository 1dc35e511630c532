"""Packed records that lack a required field: a release says that it holds drafts, or does not take them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...errors import ConfigError
from ...schemas.canonical import Json
from ...schemas.layout import HIDDEN_SPLIT
from ...validators.katha.field_rules import names_judges
from .composition import is_draft

_SHOWN = 10


@dataclass(slots=True)
class Lacking:
    """What is known of the packed records.

    Attributes:
        hidden_drafts: how many hidden records are drafts, or lack a required field.
        stories: id of a public record that lacks a required field -> what it lacks.
        drafts: how many public records are drafts by their status.
        judged: whether checks of public records say who judged; else a release does not count drafts.
    """

    hidden_drafts: int = 0
    stories: dict[str, str] = field(default_factory=dict)
    drafts: int = 0
    judged: bool = False

    def add(self, record: Json, checks: Sequence[Json], lacks: str | None) -> None:
        """Take one packed record, with the status of its review.

        Args:
            record: the record.
            checks: its checks.
            lacks: what the rule ``incomplete`` says about it.
        """
        draft = is_draft(record)
        if record["split"] == HIDDEN_SPLIT:
            self.hidden_drafts += draft or lacks is not None
            return
        self.drafts += draft
        self.judged = self.judged or names_judges(checks)
        if lacks is not None:
            self.stories[record["story_id"]] = lacks

    def require_said(self) -> None:
        """Refuse public records that lack a required field where ``release.json`` would tell of no drafts.

        Such a release would not pass ``fabula release verify``.

        Raises:
            ConfigError: there are such records; names them.
        """
        if not self.stories or (self.judged and self.drafts):
            return
        named = [f"{name} ({lacks})" for name, lacks in sorted(self.stories.items())]
        more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
        raise ConfigError(
            "--allow-drafts",
            what="records that lack required fields are packed as drafts alone, and no public record is "
            f"marked as one (review_needed): {'; '.join(named[:_SHOWN])}{more}",
            fix="fill the fields with `fabula edit`, or leave the option out: then they are left out",
        )
