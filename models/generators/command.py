"""Adapter for a program that makes a picture or a video: any generator that nothing else here reaches.

The settings say how it is started, without a shell::

    [models."image:command:mine"]
    extra = { command = ["python", "gen.py", "{prompt_file}", "{out}", ["--seed", "{seed}"]] }

Each word may hold placeholders; a list in the list is left out where a placeholder in it has no value. Prompt
and references come as files. What is chosen and has no placeholder is recorded as not taken. The command is
part of ``extra``, and so of the request's key: what another command made is not taken for the same.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from pydantic import Field, ValidationError

from ...errors import ConfigError
from ...schemas.canonical import Json
from ...schemas.plain_files import reason_of
from ...schemas.values import Own
from ..chat import CallFault, ChatRequest, FaultKind, Reply, ReplyOutcome, Usage
from ..faults import one_line
from ..keys import Redactor
from ..options import ModelOptions
from ..programs import Program, ProgramStopped, allowed_environment
from ..spec import ModelSpec, setting_lines
from .request import (
    LONGEST_PICTURE,
    LONGEST_VIDEO,
    Choice,
    Generated,
    PictureRequest,
    cleaned,
    extras,
    file_of,
    not_taken,
)

OUTCOMES: Mapping[int, ReplyOutcome] = {10: "refused", 11: "blocked"}
"""Exit status -> what became of the picture. With 0 it is made."""

BUSY = 75
"""Exit status of a fault that may pass by itself (``EX_TEMPFAIL``): the program is started again."""

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_ENDINGS = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp"}
_CHOICES: Mapping[str, Choice] = {
    "seed": "seed", "width": "size", "height": "size", "steps": "steps", "seconds": "seconds",
    "negative_file": "negative", "references": "references", "first_frame": "first_frame",
}  # fmt: skip
"""Placeholder -> what is chosen with it."""

PLACEHOLDERS = ("prompt_file", "out", *_CHOICES)


class CommandOptions(Own):
    """The members of ``extra``."""

    command: tuple[str | tuple[str, ...], ...] = Field(min_length=1, description="Program and arguments.")
    env: tuple[str, ...] = Field(
        default=(), description="Variables that the program gets beside the usual ones, such as a key."
    )
    version: str | None = Field(default=None, description="Another text asks anew: for a changed program.")


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a program ended: its exit status, the file that it wrote, and the end of what it complained of."""

    status: int
    data: bytes = field(repr=False)
    complaint: str


class CommandImages:
    """A program that writes one picture.

    It ends with 0 and a file where it made one, 10 where it refuses, 11 where a filter stopped it, 75 where
    it may be tried again; with anything else the request failed. What it writes to standard error is shown.

    ``spec``: its name is only for people. ``options``: its settings; ``call_timeout`` ends the program.
    ``redactor``: learns the variables that the settings name for the program.
    """

    longest: ClassVar[int] = LONGEST_PICTURE
    ending: ClassVar[str] = ".png"

    def __init__(self, spec: ModelSpec, options: ModelOptions, redactor: Redactor) -> None:
        self._spec = spec
        self._redactor = redactor
        self._timeout = options.call_timeout

    async def complete(self, request: ChatRequest) -> Reply:
        picture = PictureRequest.of(request)
        given = self.settings(extras(request))
        with tempfile.TemporaryDirectory(prefix="fabula-") as folder:
            values = _write_inputs(Path(folder), picture, self.ending)
            words = self._words(given, values)
            ended = await self._run(words, given, Path(values["out"] or ""))
        return self._reply(ended, picture, given)

    async def close(self) -> None:
        """Do nothing: programs end with their call."""

    def settings(self, extra: Mapping[str, Json]) -> CommandOptions:
        try:
            given = CommandOptions.model_validate(dict(extra))
        except ValidationError as error:
            raise self._fault("unsupported", f"extra.{reason_of(error)}") from None
        used = _used(given)
        unknown = sorted(used - set(PLACEHOLDERS))
        if unknown:
            known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise self._fault(
                "unsupported", f"extra.command: there is no {{{unknown[0]}}}; placeholders are {known}"
            )
        missing = sorted({"prompt_file", "out"} - used)
        if missing:
            raise self._fault("unsupported", f"extra.command: {{{missing[0]}}} is missing in it")
        return given

    def _words(self, given: CommandOptions, values: Mapping[str, str | None]) -> list[str]:
        words: list[str] = []
        for entry in given.command:
            group = (entry,) if isinstance(entry, str) else entry
            empty = [name for word in group for name in _PLACEHOLDER.findall(word) if values[name] is None]
            if empty and isinstance(entry, str):
                raise self._fault(
                    "unsupported",
                    f"extra.command: the request has no value for {{{empty[0]}}}; put its words into a list"
                    f' of their own, as in ["--{empty[0]}", "{{{empty[0]}}}"], which is then left out',
                )
            if not empty:
                words += [_PLACEHOLDER.sub(lambda match: values[match[1]] or "", word) for word in group]
        return words

    async def _run(self, words: list[str], given: CommandOptions, out: Path) -> _Ended:
        for name in given.env:
            self._redactor.add(os.environ.get(name, ""))
        try:
            program = Program(words, allowed_environment(given.env))
        except (OSError, ValueError) as error:
            raise self._fault(
                "unsupported", f"extra.command: {words[0]} cannot be started: {error}"
            ) from None
        try:
            ended = await program.finished(self._timeout)
        except ProgramStopped:
            raise self._fault(
                "timeout", f"the program took more than {self._timeout:g} s (call_timeout)"
            ) from None
        data = b""
        if out.is_file():
            if out.stat().st_size > self.longest:
                raise self._fault("too_long", f"the file has more than {self.longest:,} bytes")
            data = out.read_bytes()
        return _Ended(ended.status, data, ended.complaint.decode("utf-8", "replace"))

    def _reply(self, ended: _Ended, picture: PictureRequest, given: CommandOptions) -> Reply:
        complaint = one_line(self._redactor.redact(ended.complaint)[-500:])
        model = self._spec.name if given.version is None else f"{self._spec.name}@{given.version}"
        if ended.status in OUTCOMES:
            return Reply(OUTCOMES[ended.status], "", complaint or None, None, model, Usage())
        if ended.status == BUSY:
            raise self._fault("server_error", f"the program asks to be started again: {complaint}")
        if ended.status:
            how = (
                f"ended with {ended.status}" if ended.status > 0 else f"was killed by signal {-ended.status}"
            )
            raise self._fault("bad_request", f"the program {how}: {complaint or 'it says nothing'}")
        if not ended.data:
            return Reply("empty", "", f"the program wrote no file {complaint}".strip(), None, model, Usage())
        used = _used(given)
        taken = {choice for name, choice in _CHOICES.items() if name in used}
        if not {"width", "height"} <= used:
            taken.discard("size")
        made = Generated(
            file_of(ended.data),
            seed=picture.seed if "seed" in taken else None,
            steps=picture.steps if "steps" in taken else None,
            unsupported=not_taken(picture, taken),
        )
        return Reply("ok", cleaned(made, self._redactor).packed(), None, None, model, Usage())

    def _fault(self, kind: FaultKind, text: str) -> CallFault:
        return CallFault(kind, one_line(self._redactor.redact(text)))


def check_command(spec: ModelSpec, options: ModelOptions) -> None:
    """Check, without starting anything, that a spec's settings name a program that is there."""
    fix = setting_lines(str(spec), 'extra = { command = ["PROGRAM", "{prompt_file}", "{out}"] }')
    try:
        given = CommandImages(spec, options, Redactor()).settings(options.extra)
    except CallFault as fault:
        raise ConfigError(f"model {spec}", what=str(fault), fix=f"write in fabula.toml:{fix}") from None
    first = given.command[0] if isinstance(given.command[0], str) else given.command[0][0]
    if not _PLACEHOLDER.search(first) and shutil.which(first) is None:
        what = f"extra.command: {first} is not there, or is no program"
        raise ConfigError(f"model {spec}", what=what, fix="check the path, and that it may be executed")


class CommandVideos(CommandImages):
    """A program that writes one video; as :class:`CommandImages`."""

    longest: ClassVar[int] = LONGEST_VIDEO
    ending: ClassVar[str] = ".mp4"


def _used(given: CommandOptions) -> set[str]:
    words = [word for entry in given.command for word in ((entry,) if isinstance(entry, str) else entry)]
    return {name for word in words for name in _PLACEHOLDER.findall(word)}


def _write_inputs(folder: Path, picture: PictureRequest, ending: str) -> dict[str, str | None]:
    """Write prompt and references into files, and return what stands for each placeholder."""
    prompt, negative, references = folder / "prompt.txt", folder / "negative.txt", folder / "references"
    prompt.write_text(picture.prompt, "utf-8", errors="replace")
    if picture.negative is not None:
        negative.write_text(picture.negative, "utf-8", errors="replace")
    if picture.references:
        references.mkdir()
        for number, reference in enumerate(picture.references, 1):
            name = f"{number:03}{_ENDINGS.get(reference.media_type, '.bin')}"
            (references / name).write_bytes(reference.data)
    first = picture.first_frame
    first_file = None if first is None else folder / f"first_frame{_ENDINGS.get(first.media_type, '.bin')}"
    if first is not None and first_file is not None:
        first_file.write_bytes(first.data)
    numbers = {name: getattr(picture, name) for name in ("seed", "width", "height", "steps", "seconds")}
    return {
        "prompt_file": str(prompt),
        "negative_file": None if picture.negative is None else str(negative),
        "references": str(references) if picture.references else None,
        "first_frame": None if first_file is None else str(first_file),
        "out": str(folder / f"out{ending}"),
        **{name: None if value is None else f"{value:g}" if name == "seconds" else str(value)
           for name, value in numbers.items()},
    }  # fmt: skip
