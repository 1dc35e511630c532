"""Taking answers that were given in another tool into a study: all of them, or none if anything is wrong."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ....engine.lock import hold
from ....errors import ConfigError, InputError, RunBusy
from ....schemas.canonical import Json, sha256_file
from ..folder import Study
from ..journal import VoteJournal
from ..protocol import SIMULATED
from ..standing import Standing
from .exporting import form_of
from .taking import Taking

PSEUDONYM = re.compile(r"r-[0-9a-z]{4,32}|simulated-[0-9a-z-]{1,32}")


@dataclass(frozen=True)
class Imported:
    """What an import took.

    Attributes:
        votes: how many votes were new.
        known: how many were there already.
        people: reviewer -> seat.
        passed: what was passed over on purpose -> how often.
        written: whether anything was written; not with a dry run.
    """

    votes: int
    known: int
    people: Mapping[str, int]
    passed: Mapping[str, int]
    written: bool

    def as_json(self) -> dict[str, Json]:
        """Return it as plain JSON."""
        return {
            "votes": self.votes, "known": self.known, "people": dict(self.people),
            "passed_over": dict(self.passed), "written": self.written,
        }  # fmt: skip

    def lines(self) -> Iterator[str]:
        """Return it for people."""
        yield f"votes taken: {self.votes}{'' if self.written else ' (dry run: nothing is written)'}"
        if self.known:
            yield f"votes that were there already: {self.known}"
        yield from (f"  {reviewer}: seat {seat}" for reviewer, seat in self.people.items())
        yield from (f"passed over: {count} {what}" for what, count in self.passed.items() if count)


def import_answers(
    study: Study, path: Path, tool: str, people: Mapping[str, str], now: str, *, dry_run: bool = False
) -> Imported:
    """Take the answers of a file into a study as votes of the seats that they were exported for.

    The same answers again add nothing; other answers of the same person to an item are a changed vote.

    Args:
        study: the study; nobody serves it meanwhile.
        path: what the other tool exported.
        tool: one of :data:`.exporting.FORMS`.
        people: who somebody is in the other tool -> their pseudonym in the study. Only pseudonyms are kept.
        now: the time, RFC 3339, UTC; votes have it where the tool does not say when.
        dry_run: only check.

    Raises:
        ConfigError: there is no such tool, or a pseudonym cannot be one.
        InputError: anything is wrong; everything is listed, and nothing is taken.
        RunBusy: the study is served.
    """
    form = form_of(tool)
    _check_names(study, people)
    reading = form.read(path, study)
    try:
        with hold(study.folder), VoteJournal(study.folder) as journal:
            standing = Standing.of(journal.events())
            taking = Taking(
                study, standing, dict(people), {"tool": tool, "file": sha256_file(path)}, now, reading
            )
            events = taking.events()
            if reading.problems:
                raise InputError(reading.problems)
            if not dry_run:
                journal.add_now(*events)
    except RunBusy as error:
        fix = "stop the server (Ctrl-C), import, and start it again"
        raise RunBusy(
            str(study.folder), what="the study is served, so nothing can be imported", fix=fix
        ) from error
    votes = sum(event.kind == "voted" for event in events)
    return Imported(votes, taking.known, taking.seats, reading.passed, written=not dry_run)


def _check_names(study: Study, people: Mapping[str, str]) -> None:
    twice = [name for name, count in Counter(people.values()).items() if count > 1]
    if twice:
        raise ConfigError("--person", what=f"{twice[0]} stands for two people", fix="give each a pseudonym")
    for name in people.values():
        simulated = name.startswith(SIMULATED)
        if not PSEUDONYM.fullmatch(name) or simulated != study.protocol.simulated:
            begin = SIMULATED if study.protocol.simulated else "r-"
            raise ConfigError(
                "--person", expected=f"a pseudonym that begins with {begin}", found=repr(name),
                fix="use what fabula review invite gave, or a new one such as r-5f2c91aa; no names of people",
            )  # fmt: skip
