"""Finding what a submission gives away of a hidden test: texts and ids, in names and contents of files."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from ..errors import InputError, UserError
from ..evaluation.archive.archive import Archive
from ..evaluation.judging.leakage import WINDOW_WORDS, Secret
from ..releases.hidden.commitments import read_salt
from ..releases.hidden.marks import Marks, marks_of
from ..releases.hidden.search import search, search_rows
from ..releases.loading import read_release_document
from ..schemas.layout import RELEASE
from ..schemas.text import normalize_answer
from ..schemas.values import Issue
from .opening import USUAL, Opened

LEAK = "take it out: a leaderboard is public"
_DIGITS = re.compile(r"\d+")
_WORDS = re.compile(r"[^\w]+|_+")


@dataclass(frozen=True)
class Secrets:
    """What may be in no submission.

    Attributes:
        marks: finds hidden stories.
        salt: of their commitments.
    """

    marks: Marks = field(repr=False)
    salt: bytes | None = field(default=None, repr=False)


def public(issue: Issue) -> Issue:
    """Return a finding as a public page may show it: without chosen names of files, and no leak."""
    where = issue.where if issue.where in USUAL else "a file"
    message = "something of the hidden test" if issue.code == "hidden-leak" else issue.message
    return replace(issue, where=where, message=message)


def secrets_of(release: Path | None, hidden: Path | None, salt: Path | None) -> Secrets | None:
    """Return what may be in no submission to a board; None where no hidden test is given.

    Raises:
        InputError: the hidden test cannot be read.
    """
    if release is None or hidden is None:
        return None
    try:
        document = read_release_document(hidden)
        ids = [name for listed in document.get("records", {}).values() for name in listed]
        return Secrets(marks_of(release, hidden, ids), None if salt is None else read_salt(salt))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        problem = UserError(str(hidden), what=f"the hidden test cannot be read: {error}", fix="pack it again")
        raise InputError([problem]) from error


def leaks_of(files: Opened, release: Path | None, secrets: Secrets | None) -> Iterator[Issue]:
    """Yield hidden stories in names and contents of files, and ids that the public release does not have."""
    known = _public_ids(release)
    for name in files.names:
        messages = _quoted(name, secrets)
        named = None if secrets is None else secrets.marks.named(name)
        if named is not None or (named := _foreign(name, known)) is not None:
            messages = [f"names {named!r}, which is not of the public release", *messages]
        for message in messages:
            yield Issue(name, "$", "hidden-leak", f"the name of the file: {message}", LEAK)
    if files.usable:
        yield from (replace(issue, cure=LEAK) for issue in search_rows(files.folder))
        if secrets is not None:
            leaks = search(files.folder, secrets.marks, secrets.salt)
            yield from (replace(issue, cure=LEAK) for issue in leaks if not issue.where.startswith("store/"))


def strangers_in(archive: Archive, release: Path | None) -> Iterator[Issue]:
    """Yield judgements about what has the form of an id of the release and is none of it."""
    known = _public_ids(release)
    strange = sorted({judgement.unit for judgement in archive.judgements} - known) if known else []
    strange = [unit for unit in strange if _foreign(unit, known) is not None]
    for unit in strange[:20]:
        message = f"a judgement is about {unit!r}, which is not of the public release"
        yield Issue("judgements.jsonl", "$", "hidden-leak", message, LEAK)


def _quoted(name: str, secrets: Secrets | None) -> list[str]:
    """Return what the name of a file tells of hidden texts; names of few words tell none."""
    text = normalize_answer(" ".join(_WORDS.split(name)))
    if secrets is None or len(text.split()) < WINDOW_WORDS:
        return []
    quoted = any(Secret("$", normalize_answer(whole)).shown_in(text) for whole in secrets.marks.whole)
    return ["holds words of a hidden story"] if quoted else []


def _public_ids(release: Path | None) -> frozenset[str]:
    if release is None or not (release / RELEASE).is_file():
        return frozenset()
    records = read_release_document(release).get("records", {})
    return frozenset(name for listed in records.values() for name in listed)


def _foreign(text: str, known: frozenset[str]) -> str | None:
    """Return what has the form of an id of the release and is none of it."""
    for pattern in _forms(known):
        for match in pattern.finditer(text):
            if match[0] not in known:
                return match[0]
    return None


@lru_cache(8)
def _forms(known: frozenset[str]) -> tuple[re.Pattern[str], ...]:
    """Return patterns for ids of these forms, such as ``kb25k_`` and digits."""
    forms = {_DIGITS.sub("0", name) for name in known if _DIGITS.search(name) and len(name) >= 6}
    return tuple(
        re.compile(rf"(?<![A-Za-z0-9]){_DIGITS.sub('[0-9]+', re.escape(form))}(?![A-Za-z0-9])")
        for form in sorted(forms)
    )
