"""The checks behind ``fabula doctor``. Each looks at one thing and changes nothing."""

import ctypes.util
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from packaging.markers import Marker
from packaging.requirements import Requirement

from ..errors import MissingRequirement
from ..models.keys import KEY_VARIABLES, SHORT_KEY, key_status
from ..models.spec import parse_spec
from .command import command
from .common import emit, say

PACKAGE = "fabula"
TOKENS = ("HF_TOKEN",)
CV2_OWNERS = (
    "opencv-python",
    "opencv-python-headless",
    "opencv-contrib-python",
    "opencv-contrib-python-headless",
)
LOW_DISK = 2 * 1024**3
"""Bytes below which free disk space is reported as low."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the check-up."""

    name: str  # what was looked at
    # ``ok``; ``absent`` (optional and not there); ``warning``; ``missing`` (the core needs it)
    status: Literal["ok", "absent", "warning", "missing"]
    detail: str  # what was found
    fix: str = ""  # what to do, if anything

    def as_dict(self) -> dict[str, str]:
        """Return the finding as plain JSON."""
        return asdict(self)


def checkup(folder: Path) -> list[Finding]:
    """Return every finding about this machine, for work in a folder."""
    return [
        _python(),
        *_core(),
        *_extras(),
        _cv2(),
        *_system_libraries(),
        *_keys(),
        *_tokens(),
        *_servers(),
        _disk(folder),
        _cache(),
    ]


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _python() -> Finding:
    return Finding(
        "python", "ok", f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"
    )


def _core() -> Iterator[Finding]:
    for name in _required(""):
        version = _version(name)
        if version is None:
            yield Finding(name, "missing", "not installed", f"pip install {name}")
        else:
            yield Finding(name, "ok", version)


def _extras() -> Iterator[Finding]:
    """Look for what each extra would install, as the metadata of the package says."""
    for extra in metadata.metadata(PACKAGE).get_all("Provides-Extra", ()):
        absent = [name for name in _required(extra) if _version(name) is None]
        if absent:
            cure = f'pip install "{PACKAGE}[{extra}]"'
            apart = "" if {*absent} <= {*_required("all")} else "; the extra all leaves it out"
            yield Finding(f"extra {extra}", "absent", f"not installed: {', '.join(absent)}{apart}; {cure}")
        else:
            yield Finding(f"extra {extra}", "ok", "installed")


def _required(extra: str) -> list[str]:
    """Return the distributions that an extra of the package asks for here; those of the core for no extra.

    An extra may be made of others, as ``all`` is.
    """
    names: dict[str, None] = {}
    seen, todo = {extra}, [extra]
    while todo:
        wanted = todo.pop(0)
        for line in metadata.requires(PACKAGE) or ():
            requirement = Requirement(line)
            if not _applies(requirement.marker, wanted):
                continue
            if requirement.name == PACKAGE:
                todo += [extra for extra in sorted(requirement.extras) if extra not in seen]
                seen |= requirement.extras
            else:
                names[requirement.name] = None
    return list(names)


def _applies(marker: Marker | None, extra: str) -> bool:
    """Whether a requirement is one of an extra, and of no fewer: what the core needs is not told again."""
    if marker is None:
        return not extra
    return marker.evaluate({"extra": extra}) and (not extra or not marker.evaluate({"extra": ""}))


def _cv2() -> Finding:
    owners = [name for name in CV2_OWNERS if _version(name) is not None]
    if not owners:
        return Finding("cv2", "absent", "no OpenCV; only video and image metrics need it")
    named = " and ".join(f"{name} {_version(name)}" for name in owners)
    if len({_version(name) for name in owners}) == 1:  # the extras need two, which write the same files
        return Finding("cv2", "ok", named)
    # Not to be uninstalled: what one takes away are files of the other.
    cure = f"install one version of them: pip install --force-reinstall {' '.join(owners)}"
    return Finding("cv2", "warning", f"{named} write the same files", cure)


def _system_libraries() -> Iterator[Finding]:
    for library, need in (("GL", "libgl1"), ("glib-2.0", "libglib2.0-0")):
        file = ctypes.util.find_library(library)
        if file:
            yield Finding(f"lib{library}", "ok", file)
        else:
            yield Finding(f"lib{library}", "absent", f"only OpenCV needs it (Debian package {need})")


def _keys() -> Iterator[Finding]:
    """Look for the key of each service where the models look for it; the key itself is never shown."""
    for service, variables in KEY_VARIABLES.items():
        name = f"key {service}"
        try:
            status = key_status(parse_spec(f"{service}:any"))
        except MissingRequirement as error:
            yield Finding(name, "warning", f"{error.where}: {error.found}", error.fix)
            continue
        if status.source is None:
            yield Finding(name, "absent", f"{' or '.join(variables)} not set; only its models need it")
        else:
            where = f"{status.variable} set, in {place_of(status.source)}"
            yield Finding(name, *(("warning", where, SHORT_KEY) if status.is_short else ("ok", where)))


def place_of(source: str) -> str:
    """Return where a key was found, for people."""
    return "the environment" if source == "environment" else f"the file {source}"


def _tokens() -> Iterator[Finding]:
    for name in TOKENS:
        present = bool(os.environ.get(name))
        yield Finding(name, "ok" if present else "absent", "set" if present else "not set")


def _servers() -> Iterator[Finding]:
    """Look for the programs that serve open models."""
    from ..models.local.servers import SERVERS, find_program, recipe_of

    for provider in SERVERS:
        words = find_program(provider)
        if words is not None:
            yield Finding(f"server {provider}", "ok", words[0])
        else:
            detail = f"not found; only {provider}: models need it. To have it: {recipe_of(provider)}"
            yield Finding(f"server {provider}", "absent", detail)


def _disk(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    detail = f"{free / 1024**3:.1f} GiB free in {folder}"
    if free < LOW_DISK:
        return Finding("disk", "warning", detail, "free some space, or work elsewhere")
    return Finding("disk", "ok", detail)


def _cache() -> Finding:
    from platformdirs import user_cache_path

    folder = user_cache_path("fabula")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Finding(
            "cache", "warning", f"{folder}: {error.strerror}", "set XDG_CACHE_HOME to a writable folder"
        )
    return Finding("cache", "ok", str(folder))


# -- ``fabula doctor``: what this machine has, and what that allows


@command("doctor")
def doctor(*, as_json: bool = False) -> int:
    """Check this machine: Python, libraries, extras, keys, disk.

    System libraries and the cache are checked too. Keys are never shown.

    Exits with 3 if something that the core needs is missing.

    Examples:
        fabula doctor
        fabula doctor --json
    """
    findings = checkup(Path.cwd())
    if as_json:
        emit([finding.as_dict() for finding in findings])
    else:
        for finding in findings:
            say(f"{finding.status:8}{finding.name:24}{finding.detail}")
            if finding.fix:
                say(f"{'':8}fix: {finding.fix}")
    sys.stdout.flush()
    return 3 if any(finding.status == "missing" for finding in findings) else 0
