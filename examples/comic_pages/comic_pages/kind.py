"""Comics: pages of panels, each judged by the recoverability questions that it can answer by itself."""

from pathlib import Path
from typing import TYPE_CHECKING

from fabula.kinds.kind import Judging, Kind, Marks

if TYPE_CHECKING:
    from fabula.builders.drafting import Drafting
    from fabula.evaluation.protocol import Protocol
    from fabula.releases.form import ReleaseForm
    from fabula.releases.loading import Release
    from fabula.validators.report import RuleSet


def _release() -> "ReleaseForm":
    from fabula.examples.comic_pages.comic_pages.form import FORM

    return FORM


def _drafting() -> "Drafting":
    from fabula.examples.comic_pages.comic_pages.building import DRAFTING

    return DRAFTING


def _protocol() -> "Protocol":
    from fabula.examples.comic_pages.comic_pages.evaluating import PROTOCOL

    return PROTOCOL


def _order() -> "Protocol":
    from fabula.examples.comic_pages.comic_pages.evaluating_order import PROTOCOL

    return PROTOCOL


def _rules() -> "RuleSet":
    from fabula.examples.comic_pages.comic_pages.form import RULES

    return RULES


def _stories(folder: Path) -> "Release":
    from fabula.examples.comic_pages.comic_pages.form import load_comics

    return load_comics(folder).stories


MARKS = Marks(("pages.jsonl",))
JUDGING = (Judging("comics", _protocol), Judging("comic-order", _order))
KIND = Kind("comics", _release, _drafting, JUDGING, rules=_rules, marks=MARKS, stories=_stories)
