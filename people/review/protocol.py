"""The protocol of a study: what was decided before anybody voted, frozen and hashed; votes name its hash.

It changes only by an amendment: a new version with a reason, which names the one before. Every vote keeps the
protocol that it was given under.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, ValidationError, model_serializer

from ...errors import ConfigError, InputError, UserError
from ...schemas.canonical import Json, digest, pretty_bytes, write_atomic
from ...schemas.plain_files import read_json, reason_of, type_reason
from ...schemas.values import Own
from ...validators.careless import SECONDS_PER_ANSWER
from .design import Plan
from .plan import Rules
from .task import Texts

PROTOCOL, EARLIER = "protocol.json", "protocols"
FORMAT = 1
SIMULATED = "simulated-"
"""How ids of simulated reviewers begin; nobody else's do."""
FIXED = frozenset(
    ("format", "version", "amends", "why", "who", "task", "task_sha256", "items_sha256", "key_sha256",
     "source", "seed", "plan", "training", "created_at", "simulated", "earlier")
)  # fmt: skip
"""What an amendment cannot change: these make another study."""


EARLIER_FIELDS = ("link", "participant", "join_only")
"""Fields of recruitment platforms, which studies from before have; they say nothing any more."""


class Floor(Own):
    """Least time of a vote, pauses included: for what is read, and for what is answered.

    Four words a second are usual (Brysbaert 2019), and not all that is shown is read word for word: twenty
    are more than anybody reads with understanding. Both numbers are ours.
    """

    words_per_second: float = Field(default=20.0, gt=0)  # of all texts that the page shows of the item
    seconds_per_answer: float = Field(default=SECONDS_PER_ANSWER, ge=0)  # for each answer that was given

    def seconds(self, words: int, answers: int) -> float:
        """Return the least seconds of a vote."""
        return words / self.words_per_second + answers * self.seconds_per_answer

    def line(self) -> str:
        return (
            f"1 s for {self.words_per_second:g} words shown and {self.seconds_per_answer:g} s for each "
            "answer; faster votes stay on file and do not count"
        )


class Protocol(Own):
    """What a study does, decided before it begins."""

    format: int = FORMAT  # version of this form
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")  # short name, for files
    title: str = Field(min_length=1, max_length=200)  # what reviewers read at the top
    version: int = Field(default=1, ge=1)  # 1, and one more with each amendment
    amends: str | None = None  # hash of the version before
    why: str = ""  # why it was amended
    who: str = ""  # who amended it
    created_at: str  # when this version was made, RFC 3339, UTC
    task: str  # the task, with version and hash
    task_sha256: str  # hash of its file
    source: Mapping[str, Json]  # what is reviewed: kind, path, hashes
    items_sha256: str  # hash of what the pages show
    key_sha256: str  # hash of what the items stand for
    seed: int  # master seed of all that is random
    plan: Mapping[str, Json]  # how items are dealt to people; see :class:`.design.Plan`
    training: int = Field(default=0, ge=0)  # how many training items come first
    # share of training answers that must be right to go on; 0: nobody is turned away
    training_pass: float = Field(default=0.0, ge=0, le=1)
    rules: Rules  # who and what is left out, and when; see :class:`.plan.Rules`
    floor: Floor | None = None  # least time of a vote; None, as in studies from before: there is none
    # whether two of three decide; else 2 : 1 goes to adjudication. The value false is ours: Table 19 takes
    # the majority, A.11 routes corrections and ambiguity to adjudication.
    consensus: bool = False
    # whether no more votes are wanted: nobody gets a seat, and what is there is decided on
    closed: bool = False
    break_seconds: int = Field(default=0, ge=0, le=3600)  # least length of a break between blocks
    # hours without a sign of life after which what a person has not answered goes to another
    lease_hours: float = Field(default=48.0, gt=0)
    # pauses longer than this count as this long in active time
    idle_seconds: float = Field(default=30.0, gt=0)
    # hours after which a reviewer has to open the link again
    session_hours: float = Field(default=12.0, gt=0)
    languages: tuple[str, ...] = ("en", "zh")  # languages that reviewers may choose
    consent: Texts = Field(default={})  # what reviewers agree to before they begin
    # levels that reviewers may declare: value -> how it reads
    expertise: Mapping[str, Texts] = Field(default={})
    groups: tuple[str, ...] = ()  # groups of participants, for results by group
    publish: bool = True  # whether reviewers are asked to let their votes be published
    simulated: bool = False  # whether programs take the part of reviewers
    # fields that protocols once had, see :data:`EARLIER_FIELDS`; the hash is over them, too
    earlier: Mapping[str, Json] = Field(default={})

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        document: dict[str, Any] = write(self)  # a protocol from before has the hash that it had
        document |= document.pop("earlier")
        return {name: value for name, value in document.items() if (name, value) != ("floor", None)}

    @property
    def sha256(self) -> str:
        """Hash of all of it; votes name it."""
        return digest(self.as_json())

    @property
    def dealt(self) -> Plan:
        """How items are dealt to people."""
        return Plan(**{"seed": self.seed, **dict(self.plan)})


def write_protocol(folder: Path, protocol: Protocol) -> None:
    """Write a version of a study's protocol, beside the versions before it."""
    content = pretty_bytes(protocol.as_json())
    (folder / EARLIER).mkdir(exist_ok=True)
    write_atomic(folder / EARLIER / f"{protocol.version}.json", [content])
    write_atomic(folder / PROTOCOL, [content])


def read_protocol(path: Path) -> Protocol:
    try:
        return _read(read_json(path, follow=True))
    except (OSError, ValueError) as error:
        fault = reason_of(error)
    raise InputError.one(
        str(path), what=f"this is not the protocol of a study: {fault}",
        fix="restore it from protocols/; a study is made with fabula review init",
    )  # fmt: skip


def _read(document: Json) -> Protocol:
    if isinstance(document, dict):
        earlier = {name: document[name] for name in EARLIER_FIELDS if name in document}
        rest = {name: value for name, value in document.items() if name not in earlier}
        document = {**rest, "earlier": earlier} if earlier else rest
    return Protocol.model_validate(document)


def versions(folder: Path) -> tuple[Protocol, ...]:
    """Return every version of a study's protocol, oldest first; the chain of hashes is checked."""
    current = read_protocol(folder / PROTOCOL)
    chain = [read_protocol(folder / EARLIER / f"{number}.json") for number in range(1, current.version + 1)]
    before: str | None = None
    for protocol in chain:
        if protocol.amends != before:
            raise InputError([_broken(folder, protocol.version)])
        before = protocol.sha256
    if before != current.sha256:
        raise InputError([_broken(folder, current.version)])
    return tuple(chain)


def _broken(folder: Path, version: int) -> UserError:
    return UserError(
        str(folder), what=f"version {version} of the protocol is not what was frozen: its hash differs",
        fix="restore the files; change a protocol with fabula review amend",
    )  # fmt: skip


def amended(
    protocol: Protocol, changes: Mapping[str, Any], *, who: str, why: str, created_at: str
) -> Protocol:
    """Return the next version of a protocol.

    ``changes``: field -> new value, of the fields that may change.
    """
    if not who.strip() or not why.strip():
        raise ConfigError(
            "review amend", what="who amends the protocol or why is not said", fix="give --who and --why"
        )
    for name in changes:
        if name in FIXED or name not in Protocol.model_fields:
            free = ", ".join(sorted(Protocol.model_fields.keys() - FIXED))
            raise ConfigError(
                f"--set {name}", expected=f"one of {free}", found="a field that is fixed or not there",
                fix="what these hold makes another study: start one with fabula review init",
            )  # fmt: skip
    document = {**protocol.as_json(), **changes}
    if document == protocol.as_json():
        fix = "say what changes, as --set consensus=true"
        raise ConfigError("review amend", what="nothing changes", fix=fix)
    document |= {
        "version": protocol.version + 1, "amends": protocol.sha256, "who": who, "why": why,
        "created_at": created_at,
    }  # fmt: skip
    try:
        return _read(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ConfigError(
            f"--set {'.'.join(map(str, first['loc']))}", what=type_reason(first), fix="give another value"
        ) from error
