"""Participants of a recruitment platform: who of them is which reviewer, without their ids being kept.

The platform's id of a participant is hashed with a salt of the study's own. Hashes and pseudonyms lie in
``participants.sqlite``, the salt in ``participants.salt``; no other file of the study says who anybody is.
Without the salt nobody can tell any more whether somebody took part.

Completion codes are per outcome, as Prolific and others take them: everybody who finished gets the same code,
those who were screened out another, those who left a third. Each is made up for the study and is given to the
platform before it begins. Who gets paid is decided there; the study need not know an id for it.
"""

import hmac
import os
import re
import secrets
from collections.abc import Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path

from ...engine.journal_file import connect, explained
from ...errors import RunError
from ...schemas.plain_files import read_text, reason_of
from .flow import expired, open_places
from .folder import Study
from .items import opaque
from .protocol import SIMULATED
from .standing import Standing, hours_between

FILE, SALT = "participants.sqlite", "participants.salt"
SALT_BYTES = 32
LONGEST_ID = 128
ID = re.compile(r"[A-Za-z0-9_.:@+-]+")
OUTCOMES = ("finished", "screened_out", "returned")
"""How somebody can be through who then goes back to the platform, each with a code."""
TABLE = """CREATE TABLE IF NOT EXISTS participants (
    hash TEXT PRIMARY KEY, reviewer TEXT NOT NULL UNIQUE, at TEXT NOT NULL
) WITHOUT ROWID"""


def code_of(study: Study, outcome: str) -> str:
    """Return the code that tells a platform how somebody ended: the same for all who ended so."""
    return opaque(study.secret, "code", outcome, prefix="F")[:9].upper()


def codes(study: Study) -> dict[str, str]:
    """Return outcome -> the code to enter at the platform."""
    return {outcome: code_of(study, outcome) for outcome in OUTCOMES}


def is_id(text: str) -> bool:
    """Return whether a text can be the id of a participant."""
    return len(text) <= LONGEST_ID and ID.fullmatch(text) is not None


class Participants:
    """The participants of a study.

    Args:
        study: the study.

    Raises:
        RunError: there are participants, and their salt is missing or damaged.
        TargetError: the files cannot be written.
    """

    def __init__(self, study: Study) -> None:
        self.path = study.folder / FILE
        self.begin = SIMULATED if study.protocol.simulated else "r-"
        self._salt = _salt(study.folder)
        with explained(self.path):
            if not self.path.exists():
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600))
            with closing(connect(self.path, read_only=False)) as connection:
                connection.execute(TABLE)

    def reviewer(self, participant: str) -> str | None:
        """Return the pseudonym of a participant; None where they are new.

        Raises:
            TargetError: the file cannot be read.
        """
        with explained(self.path), closing(connect(self.path, read_only=True)) as connection:
            sql = "SELECT reviewer FROM participants WHERE hash = ?"
            row = connection.execute(sql, (self._hash(participant),)).fetchone()
        return None if row is None else str(row[0])

    def add(self, participant: str, now: str) -> str:
        """Return the pseudonym of a participant, a new one where they are new; it is on disk then.

        Args:
            participant: the platform's id.
            now: the time; only its day is kept.

        Raises:
            TargetError: the file cannot be written.
        """
        name = f"{self.begin}{secrets.token_hex(4)}"
        with explained(self.path), closing(connect(self.path, read_only=False)) as connection:
            sql = "INSERT OR IGNORE INTO participants VALUES (?, ?, ?)"
            connection.execute(sql, (self._hash(participant), name, now[:10]))
        known = self.reviewer(participant)
        return known if known is not None else self.add(participant, now)  # somebody else had that name

    def _hash(self, participant: str) -> str:
        return hmac.new(self._salt, participant.encode("utf-8"), sha256).hexdigest()


def _salt(folder: Path) -> bytes:
    path = folder / SALT
    if not path.exists() and not (folder / FILE).exists():
        with explained(path):
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                file.write(secrets.token_bytes(SALT_BYTES).hex() + "\n")
    try:
        salt = bytes.fromhex(read_text(path).strip())
        why = "" if len(salt) == SALT_BYTES else "it is too short"
    except (OSError, ValueError) as error:
        salt, why = b"", reason_of(error)
    if why:
        raise RunError(
            str(path), what=f"the salt of the participants cannot be used: {why}",
            fix="restore it from a backup; to serve without a platform, amend with --set participant=null",
        )  # fmt: skip
    return salt


def room(study: Study, standing: Standing, now: str) -> int:
    """Return how many more people can take part: seats that are free, less those who are on their way to one.

    A seat whose holder gave no sign of life for longer than a lease lasts is free; so long somebody who has
    no seat yet is expected to take one.
    """
    if study.protocol.closed:
        return 0
    free = sum(
        number not in standing.holders and bool(open_places(study, standing, number))
        for number in study.seats
    )
    free += sum(1 for _ in expired(study, standing, now))
    waiting = sum(
        person.role == "reviewer" and person.seat is None and person.ended is None and not person.revoked
        and not person.dropped and hours_between(person.last, now) <= study.protocol.lease_hours
        for person in standing.reviewers.values()
    )  # fmt: skip
    return max(0, free - waiting)


def fits_platform(study: Study, given: Mapping[str, str]) -> bool:
    """Return whether an address of the platform has the values that the protocol wants of it."""
    return all(given.get(name) == value for name, value in study.protocol.join_only.items())
