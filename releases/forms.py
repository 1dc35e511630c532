"""The forms of releases by the name of their kind, and the verbs with the form looked up."""

from importlib import import_module
from pathlib import Path
from typing import Any

from ..engine.manifest import NAME as MANIFEST
from ..engine.manifest import read_manifest
from ..errors import RunError
from .form import ReleaseForm
from .hub.fetch import release_folder
from .layout import ANNOTATIONS, EPISODES, PROMPTS, SHOT_SCRIPTS
from .loading import kind_of, require_release
from .options import PackOptions
from .packing import PackResult
from .packing import pack as pack_as
from .verification import VerifyReport
from .verification import verify as verify_as

_FORMS = {
    "katha": ("katha_form", ("katha",), ANNOTATIONS),
    "events": ("event_form", ("events",), PROMPTS),
    "entities": ("entity_form", ("entities", "import-entities"), EPISODES),
    "shots": ("shot_form", ("shots", "import-shots"), SHOT_SCRIPTS),
}
"""Name of a kind -> module of its form, its kinds of runs, and a file that each of its releases has."""


def form_named(kind: str) -> ReleaseForm:
    """Return the form of releases of a kind.

    Raises:
        LookupError: there is no such kind.
    """
    form: ReleaseForm = import_module(f".{_FORMS[kind][0]}", __package__).FORM
    return form


def form_of_run(run: Path) -> ReleaseForm:
    """Return the form of releases of a run.

    Raises:
        RunError: it is no run folder, or of no kind that has releases.
    """
    kind = read_manifest(run).kind
    for name, (_, runs, _) in _FORMS.items():
        if kind in runs:
            return form_named(name)
    raise RunError(
        str(run / MANIFEST),
        what=f"this is a run of kind {kind!r}, and only runs of {', '.join(_FORMS)} have releases",
        fix="give the folder of a `fabula build` run",
    )


def form_of_release(folder: Path) -> ReleaseForm:
    """Return the form of a release: that of the kind that it names; if damaged, that of its records."""
    kind = kind_of(folder)
    if kind in _FORMS:
        return form_named(kind)
    there = (name for name, (_, _, records) in _FORMS.items() if (folder / records).exists())
    return form_named(next(there, next(iter(_FORMS))))


def pack(run: Path, out: Path, options: PackOptions) -> PackResult:
    """Pack a finished run of any kind; see :func:`.packing.pack`."""
    return pack_as(run, out, options, form_of_run(run))


def verify(path: str | Path, **how: Any) -> VerifyReport:  # noqa: ANN401 - as the verb has them
    """Verify a release of any kind; see :func:`.verification.verify`."""
    return verify_as(path, form_of_release(Path(path)), **how)


def load(path: str | Path) -> Any:  # noqa: ANN401 - every kind has its own type
    """Load a release of any kind: stories, a prompt suite, episodes, or shot scripts.

    Args:
        path: its folder, or a version on a Hub such as ``user/mine@0.2.0``, which is fetched first.

    Raises:
        InputError: as :func:`.loading.load`. For a version on a Hub, the errors of :func:`.hub.fetch.fetch`.
    """
    folder = release_folder(path)
    return form_named(require_release(folder, *_FORMS)).load(folder)
