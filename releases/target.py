"""The folder that something is made in: checked first, filled beside itself, renamed when whole."""

import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from .. import version
from ..engine.config import RunSettings
from ..engine.journal import decisions
from ..engine.lock import hold, keep_private
from ..engine.manifest import EDITS, Manifest, RunPart, SourceEntry, read_manifest, write_manifest
from ..engine.manifest import NAME as MANIFEST
from ..engine.status import NAME as REPORT
from ..engine.status import RunReport, read_report, write_report
from ..errors import ConfigError, RunError, TargetError
from ..schemas.canonical import Json, sha256_file
from ..schemas.paths import RELEASE
from ..schemas.plain_files import open_plain, read_json, read_plain, reason_of, type_reasons
from ..schemas.text import quoted
from ..schemas.values import Own
from .form import FinishedRun, ReleaseForm

_MARK = ".packing-"


def require_free(target: Path) -> None:
    """Check that a new folder can be put at a path."""
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise TargetError(
            str(target),
            expected="a folder that does not exist yet",
            found="a file",
            fix="choose another folder",
        )
    try:
        filled = target.is_dir() and any(target.iterdir())
    except OSError as error:
        raise _unwritable(target, error) from error
    if filled:
        raise TargetError(
            str(target),
            expected="a folder that does not exist yet, or an empty one",
            found="a folder with files",
            fix="choose another folder, or remove the folder yourself: nothing is overwritten",
        )


def require_outside(target: Path, run: Path) -> None:
    """Check that a release is not put into the run that it is made from."""
    if target.absolute().resolve().is_relative_to(run.absolute().resolve()):
        raise TargetError(
            str(target),
            what=f"it lies inside the run {run}",
            fix="choose another --out, such as dist/NAME-VERSION",
        )


def remove_half_placed(public: Path, hidden: Path) -> None:
    """Remove a hidden folder that a pack put in place before it was killed, so that packing can be repeated.

    Only such a folder: the draft of its public sibling, of the same name and version, still lies there, and
    the process that made it is gone.
    """
    identity = _identity(hidden)
    if identity is not None and any(_identity(draft) == identity for draft in _abandoned(public)):
        shutil.rmtree(hidden, ignore_errors=True)


def _identity(folder: Path) -> tuple[Json, Json] | None:
    with suppress(OSError, ValueError, TypeError, KeyError):
        document = read_json(folder / RELEASE)
        return document["about"]["name"], document["version"]
    return None


@contextmanager
def staged(*targets: Path, private: Collection[Path] = ()) -> Iterator[tuple[Path, ...]]:
    """Give an empty folder beside each target; at the end rename them into place, the first target last.

    Targets that are ``private`` are for their owner's eyes only, from the first byte on.

    A folder that was not filled is dropped. When anything fails, no target exists. When the process is
    killed, none exists in part, and the next one removes what it left (see :func:`remove_half_placed`).
    """
    drafts = tuple(target.with_name(f".{target.name}{_MARK}{os.getpid()}") for target in targets)
    try:
        for target, draft in zip(targets, drafts, strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            for left in _abandoned(target):
                shutil.rmtree(left, ignore_errors=True)
            draft.mkdir(mode=0o700 if target in private else 0o777)
        yield drafts
        for target, draft in zip(targets, drafts, strict=True):
            if target in private:
                keep_private(draft)
        _place(dict(zip(reversed(targets), reversed(drafts), strict=True)))
    except OSError as error:
        raise _unwritable(targets[0], error) from error
    finally:
        for draft in drafts:
            shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def taken_back() -> Iterator[list[Path]]:
    """Give a list of files made outside the drafts; when anything fails, they are removed."""
    made: list[Path] = []
    try:
        yield made
    except BaseException:
        for path in made:
            path.unlink(missing_ok=True)
        raise


def _place(drafts: Mapping[Path, Path]) -> None:
    """Rename each draft to its target; when one cannot be, take the others back."""
    placed: list[Path] = []
    try:
        for target, draft in drafts.items():
            if any(draft.iterdir()):
                draft.replace(target)
                placed.append(target)
    except BaseException:
        for target in placed:
            shutil.rmtree(target, ignore_errors=True)
        raise


def _abandoned(target: Path) -> Iterator[Path]:
    """Yield the drafts of a target whose processes are gone."""
    import psutil

    for draft in target.parent.glob(f".{_escaped(target.name)}{_MARK}*"):
        owner = draft.name.rpartition("-")[2]
        if owner.isdigit() and (int(owner) == os.getpid() or not psutil.pid_exists(int(owner))):
            yield draft


def _escaped(name: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def _unwritable(target: Path, error: OSError) -> TargetError:
    if isinstance(error, shutil.Error) and isinstance(error.args[0], list):
        # It holds a triple (source, copy, text) for every file that could not be copied.
        count, (_, copy, why) = len(error.args[0]), error.args[0][0]
        others = f", and {count - 1} more" if count > 1 else ""
        error = OSError(f"{why.partition(': ')[0].rpartition('] ')[2]} ({Path(copy).name}{others})")
    return TargetError(
        str(target),
        expected="a place that can be written, with enough room",
        found=f"{error.strerror or error} ({error.filename})" if error.filename else str(error),
        fix="choose another --out, or free the disk",
    )


# -- What packing needs of a run folder: its manifest, its report, what it assigned, its finished records


@contextmanager
def finished_run(folder: Path, form: ReleaseForm) -> Iterator[FinishedRun]:
    """Open a run folder for packing; nobody can work on the run meanwhile.

    ``form``: the form of releases of the kind that it must be of.
    """
    read_manifest(folder)  # before the lock, whose file would be put into any folder
    with hold(folder.absolute(), to_read=True):
        manifest, report = read_manifest(folder), _finished_report(folder)
        if manifest.kind not in form.runs:
            raise RunError(
                str(folder / MANIFEST),
                what=f"this is a run of kind {manifest.kind!r}, not {form.kind!r}",
                fix=f"give the folder of a `fabula build {form.kind}` run",
            )
        stale = next(_stale(folder, manifest, report, form.runs[manifest.kind]), None)
        if stale is not None:
            raise RunError(
                str(folder),
                what=f"the records are not up to date with the run's settings and edits: {stale}",
                fix=f"bring the run up to date with `fabula run retry {quoted(folder)}`",
            )
        yield FinishedRun(folder, manifest, report, _splits(folder, report, form.split_stage))


def _finished_report(folder: Path) -> RunReport:
    shard = read_manifest(folder).shard
    if shard is not None:
        raise RunError(
            str(folder), what=f"this is shard {shard} of a run, not a whole one",
            fix="make one run of all shards: fabula run merge SHARD... --out RUN",
        )  # fmt: skip
    report = read_report(folder)
    pending = report.totals["pending"]
    if pending:
        raise RunError(
            str(folder),
            what=f"the run is not finished: {pending} items are still to do",
            fix=f"finish it with `fabula run retry {quoted(folder)}`",
        )
    return report


def _stale(folder: Path, manifest: Manifest, report: RunReport, records: str) -> Iterator[str]:
    """Yield what shows that the records are not those that the run would have now."""
    if report.manifest_sha256 != sha256_file(folder / MANIFEST):
        yield f"{MANIFEST} changed after the run last finished"
    for name, sha256 in sorted({records: None, **report.outputs}.items()):
        if not (folder / name).is_file():
            yield f"there is no {name}"
        elif sha256_file(folder / name) != sha256:
            yield f"{name} is not the one that {REPORT} names"
    own = (folder / EDITS).absolute()
    applied = {source.sha256 for source in manifest.sources if (folder / source.path).absolute() == own}
    if applied != ({sha256_file(own)} if own.exists() else set()):
        yield f"corrections in {EDITS} are not applied yet"


def _splits(folder: Path, report: RunReport, stage: str | None) -> dict[str, str]:
    if stage is None or not report.items:  # every split stands in a record
        return {}
    return {story_id: str(fields["split"]) for story_id, fields in decisions(folder, stage).items()}


def write_imported_run(folder: Path, kind: str, source: SourceEntry, lines: str, time: str) -> None:
    """Write ``run.json`` and ``report.json``: where records are from, and that nothing is left to do."""
    usual = RunSettings()
    write_manifest(
        folder,
        Manifest(
            kind=kind,
            created_at=time,
            fabula_version=version.__version__,
            seed=usual.seed,
            threshold=usual.threshold,
            run=RunPart(item_timeout=usual.item_timeout, threshold=usual.threshold, seed=usual.seed),
            settings={},
            stages=(),
            prompts={},
            sources=(source,),
        ),
    )
    with open_plain(folder / lines) as file:
        made = sum(1 for _ in file)
    write_report(
        folder,
        RunReport(
            totals={"made": made, "rejected": 0, "failed": 0, "pending": 0},
            stages=(),
            items=(),
            manifest_sha256=sha256_file(folder / MANIFEST),
            outputs={lines: sha256_file(folder / lines)},
        ),
    )


# -- The documents of a release from their templates: what comes from data stays text in them
#
# A card is Markdown: every value is escaped there, unless a template says that its own words are markup.
# A licence notice is plain text. The responsible-AI properties are YAML that is read before anything is
# filled in, so that no value passes through a second writer's escapes.

_MARKUP = re.compile(
    r"[\\`*\[\]<>|~$#]"  # what begins or ends markup anywhere
    r"|(?<![^\W_])_|_(?![^\W_])"  # emphasis; an underscore inside a word is none
    r"|&(?=#?\w+;)|:(?=//)|(?<=www)\."  # entities, and what would become a link
    r"|(?:^|(?<=^ ))(?:[-+=](?=[\s=+-]|$)|\d+(?=[.)](?:\s|$)))"  # lists and rules
)


_SPACE = re.compile(r"\s+")


class Markup(str):
    """A text that is Markdown already."""

    __slots__ = ()


def markdown(value: object) -> str:
    """Return a value as one line of Markdown that shows it as it is, in text, headings, lists and tables."""
    if isinstance(value, Markup):
        return value
    return _MARKUP.sub(_escaped_text, one_line(value))


def one_line(value: object) -> str:
    """Return a value as text in one line, with single spaces."""
    return _SPACE.sub(" ", str(value))


def render(name: str, **values: object) -> str:
    """Return a document of a release from its template; every value is escaped for Markdown."""
    return str(_template(_source(name), escaped=True).render(**values))


def render_plain(name: str, **values: object) -> str:
    """Return a document in plain text from its template; arguments as for :func:`render`."""
    return str(_template(_source(name), escaped=False).render(**values))


def render_properties(name: str, **values: object) -> dict[str, Json]:
    """Return a YAML template as the object that it is, its texts filled in after it was read."""

    def filled(value: Json) -> Json:
        if isinstance(value, list):
            return [filled(part) for part in value]
        return _template(value, escaped=False).render(**values) if isinstance(value, str) else value

    return {key: filled(value) for key, value in _properties(name).items()}


@cache
def _source(name: str) -> str:
    package, _, file = name.rpartition(":")
    return (files(package or __package__) / file).read_text("utf-8")


@cache
def _properties(name: str) -> dict[str, Json]:
    import yaml

    return dict(yaml.safe_load(_source(name)))


@cache
def _template(source: str, *, escaped: bool) -> Any:  # noqa: ANN401 - jinja2 is imported late
    return _environment(escaped=escaped).from_string(source)


@cache
def _environment(*, escaped: bool) -> Any:  # noqa: ANN401 - jinja2 is imported late
    import jinja2

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        finalize=markdown if escaped else None,
    )
    environment.filters.update(n=_number, line=one_line, markup=Markup, cell=_cell, code=_code)
    return environment


def _escaped_text(match: re.Match[str]) -> str:
    character = match[0]
    return f"{character}\\" if character.isdigit() else f"\\{character}"


def _number(value: int) -> str:
    return f"{value:,}"


def _cell(text: str) -> Markup:
    """Return words of ours, with their markup, for a table."""
    return Markup(one_line(text).replace("|", "\\|").replace("<", "&lt;"))


def _code(value: object) -> Markup:
    """Return a value as code in a line or a table."""
    text = one_line(value).replace("|", "\\|")
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return Markup(f"{ticks}{space}{text}{space}{ticks}")


# -- What a generator reads, from a description of its files
#
# A description is a TOML file. It says which files there are, what is in them, and where pictures and results
# go. Texts in it are Jinja templates, run in Jinja's sandbox. The bundled ones lie below ``generators/`` of
# the package that exports for them.

Value = str | int | float


class DescribedFile(Own):
    """One file that a generator reads."""

    path: str = Field(description="Where it lies below the new folder; a template.")
    form: Literal["json", "jsonl", "text"] = Field(
        default="json",
        description="json and jsonl are read back and written anew; jsonl is a list, one entry a line.",
    )
    indent: int | None = Field(default=None, ge=0, le=8, description="Spaces by level of JSON [one line].")
    content: str = Field(description="A template.")


class Description(Own):
    """What a generator reads."""

    about: str = Field(description="The generator, and where the form is known from.")
    values: dict[str, Value] = Field(
        default_factory=dict, description="Values that --value can change, with their defaults."
    )


Described = TypeVar("Described", bound=Description)


def bundled(package: str) -> tuple[str, ...]:
    """Return the names of the descriptions that a package brings."""
    names = (file.name for file in files(package).joinpath("generators").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def read_description(name: str, kind: type[Described], package: str, page: str) -> Described:
    """Return a description by its bundled name, or by the path of a TOML file.

    ``page``: of the documentation, which tells how to write one.
    """
    fix = f"{page} tells how to describe a generator"
    try:
        if name.endswith(".toml"):
            text = read_plain(Path(name), follow=True).decode("utf-8")
        elif name in bundled(package):
            text = files(package).joinpath("generators", f"{name}.toml").read_text("utf-8")
        else:
            what = f"{name} is none of {', '.join(bundled(package))}, and no TOML file"
            raise ConfigError("--for", what=what, fix=fix)
        return kind.model_validate(tomllib.loads(text))
    except ValidationError as error:
        raise ConfigError(
            f"--for {name}", what="; ".join(type_reasons(error)), fix=f"correct the description; {fix}"
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"--for {name}", what=f"it cannot be read: {reason_of(error)}", fix=fix) from error


class Templates:
    """The templates of a description, filled with ``common`` and what each is given.

    Args:
        name: of the description.
        description: it.
        values: in place of the description's defaults.
        page: of the documentation, which tells its form.
        filters: more filters of Jinja.
    """

    def __init__(
        self, name: str, description: Description, values: Mapping[str, Value], page: str,
        filters: Mapping[str, Callable[..., Any]],
    ) -> None:  # fmt: skip
        import jinja2
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        unknown = sorted(set(values) - set(description.values))
        if unknown:
            known = ", ".join(sorted(description.values)) or "no values"
            what = f"{name} has no value {', '.join(unknown)}; it has: {known}"
            raise ConfigError("--value", what=what, fix="check the spelling")
        self.name, self._page = name, page
        self.common: dict[str, Any] = {"values": {**description.values, **values}}
        self._env = ImmutableSandboxedEnvironment(
            undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
        )
        self._env.filters.update(filters)

    def filled(self, template: str, where: str, **given: Any) -> str:  # noqa: ANN401 - values of templates
        """Return the text of a template; ``where`` it stands in the description."""
        import jinja2

        try:
            return str(self._env.from_string(template).render(**self.common, **given))
        except (jinja2.TemplateError, TypeError) as error:
            raise self.bad(f"{where}: {error}") from error

    def path(self, template: str, where: str, **given: Any) -> str:  # noqa: ANN401 - values of templates
        """Return the path of a template, below the new folder."""
        path = self.filled(template, where, **given)
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or "\\" in path or "\0" in path:
            raise self.bad(f"{where}: {path!r} is no path below the new folder")
        return "/".join(parts)

    def written(self, file: DescribedFile, where: str, **given: Any) -> str:  # noqa: ANN401 - as filled
        """Return what is in a file; JSON is read back, so that it is JSON."""
        text = self.filled(file.content, where, **given)
        if file.form == "text":
            return text
        try:
            content = json.loads(text)
        except ValueError as error:
            raise self.bad(f"{where} gives no JSON: {error}") from error
        if file.form == "json":
            return json.dumps(content, indent=file.indent, ensure_ascii=False) + "\n"
        if not isinstance(content, list):
            raise self.bad(f"{where}: jsonl needs a list")
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in content)

    def bad(self, what: str) -> ConfigError:
        return ConfigError(
            f"--for {self.name}", what=what, fix=f"correct the description; {self._page} tells its form"
        )
