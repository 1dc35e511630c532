"""Releases: pack, verify, load, compare, publish, fetch."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .calling import Place, Progress, check_names, chosen, released, teller_of

if TYPE_CHECKING:
    from ..releases.diff.compare import ReleaseDiff
    from ..releases.hub.fetch import Fetched, FetchOptions
    from ..releases.hub.publish import Published, PublishOptions, PublishPlan
    from ..releases.options import PackOptions
    from ..releases.pack.packing import PackResult
    from ..releases.verify.verification import VerifyReport


def pack(
    run: Place,
    out: Place,
    options: "PackOptions | None" = None,
    **given: Any,  # noqa: ANN401 - options by keyword, checked against PackOptions
) -> "PackResult":
    """Write a release folder from a finished run of any kind. As ``fabula release pack``.

    Args:
        run: the run folder.
        out: the new release folder; hidden-test stories go to ``OUT-hidden``.
        options: an object of :class:`fabula.PackOptions`; used as it is.
        given: options by keyword: ``version`` (needed), ``license``, ``name``, ``since``, ...; what is not
            given comes from the release before (``since``) and from ``fabula.toml``, as on the command line.

    Returns:
        What was packed, what was left out and why.

    Raises:
        FabulaError: the run is not finished, has findings, or an option is wrong.

    Example:
        >>> import fabula
        >>> packed = fabula.pack("runs/mine", "dist/mine-0.1.0", version="0.1.0", license="CC-BY-4.0",
        ...                      allow_drafts=True)
        >>> packed.version
        '0.1.0'
    """
    from ..kinds import verbs
    from ..releases.options import PackOptions

    if options is None:
        check_names(given, [*PackOptions.__dataclass_fields__])
        if given.get("since") is not None:
            given["since"] = released(given["since"])
        given.setdefault("version", "auto")
        options = verbs.pack_options(Path(run), given)
    else:
        options = chosen(PackOptions, options, given)
    return verbs.pack(Path(run), Path(out), options)


def verify(
    path: Place,
    *,
    quick: bool = False,
    hidden: Place | None = None,
    salt: Place | None = None,
    against: str | None = None,
) -> "VerifyReport":
    """Check a release: checksums, rules, documents, loaders. As ``fabula release verify``.

    Args:
        path: release folder, a version on a Hub, or a ``release.json``.
        quick: check only checksums, schemas, rules and tables; ``not_looked_at`` names the rest.
        hidden: the hidden-test folder [PATH-hidden if it exists].
        salt: the salt file of the commitments [PATH-hidden.salt if it exists].
        against: what was published: the SHA-256 of ``release.json``, its http(s) address, a copy of it, or
            ``user/name@commit``.

    Returns:
        Every finding; ``ok`` if there is no error in what was looked at.

    Raises:
        UserError: nothing can be read there.

    Example:
        >>> import fabula
        >>> fabula.verify("dist/mine-0.1.0", quick=True).ok
        True
    """
    from ..kinds import verbs

    secret = {"hidden": hidden, "salt": salt}
    paths = {name: None if given is None else Path(given) for name, given in secret.items()}
    return verbs.verify(released(path), quick=quick, against=against, **paths)


def load(path: Place, *, streaming: bool = False, verify: bool = False) -> Any:  # noqa: ANN401 - every kind has its own type
    """Load a release of any kind, or an evaluation.

    Args:
        path: a release folder, a version on a Hub such as ``user/mine@0.2.0``, or an evaluation folder.
        streaming: return a release's records one by one while they are gone through, each checked.
        verify: check the hash of every file [their sizes alone]. :func:`verify` checks all that can be.

    Returns:
        A release (:class:`fabula.releases.loading.LoadedRelease`) with typed ``records``, ``to_datasets()``,
        ``to_pandas("scenes")``; or an evaluation (:class:`fabula.api.results.Evaluation`), whose
        ``to_pandas()`` has a row for every reply.

    Raises:
        InputError: it is neither, was changed after packing, or cannot be read; every problem is listed.
        ConfigError: the kind's records cannot be streamed.
        HubUnavailable: the Hub cannot be asked.

    Example:
        >>> import fabula
        >>> release = fabula.load("dist/mine-0.1.0")
        >>> release.version, len(release.records) > 0
        ('0.1.0', True)
    """
    from ..evaluation.archive.archive import EVALUATION
    from ..kinds import verbs
    from ..schemas.paths import RELEASE

    folder = Path(path)
    if not streaming and (folder / EVALUATION).is_file() and not (folder / RELEASE).exists():
        from .results import open_evaluation

        return open_evaluation(folder)
    return verbs.load(path, streaming=streaming, verify=verify)


def diff(old: Place, new: Place) -> "ReleaseDiff":
    """Compare two releases of a benchmark, and say which version step is due. As ``fabula release diff``.

    Args:
        old: the older release, a folder or a version on a Hub.
        new: the newer one.

    Returns:
        Every change by record and JSON path; ``step``, ``due``, and ``problem`` where the version is wrong.

    Raises:
        InputError: one is no sound release. ConfigError: they are of two benchmarks.

    Example:
        >>> import fabula
        >>> str(fabula.diff("dist/mine-0.1.0", "dist/mine-0.1.0").step)
        'none'
    """
    from ..kinds import verbs

    return verbs.diff(released(old), released(new))


def publish(
    folder: Place,
    repo: str,
    options: "PublishOptions | None" = None,
    *,
    dry_run: bool = False,
    progress: Progress = True,
    **given: Any,  # noqa: ANN401 - options by keyword, checked against PublishOptions
) -> "Published | PublishPlan":
    """Put a release on a Hub: one commit and a tag. As ``fabula publish``.

    Args:
        folder: the public release folder.
        repo: the data set repository, OWNER/NAME; made if it is not there.
        options: an object of :class:`fabula.PublishOptions`.
        dry_run: only say what would be done; the Hub is only read.
        progress: as for :func:`fabula.build`.
        given: options by keyword: ``private``, ``endpoint``, ...

    Returns:
        What was done to each file, and the commit; with ``dry_run`` the plan.

    Raises:
        FabulaError: the release is not sound, the repository holds something else, or the Hub refuses.

    Example:
        >>> import fabula
        >>> plan = fabula.publish("dist/mine-0.1.0", "user/mine", dry_run=True)
        >>> plan.creates
        True
    """
    from ..kinds import verbs
    from ..releases.hub.client import Retries
    from ..releases.hub.publish import PublishOptions

    tell = teller_of(progress)
    options = chosen(PublishOptions, options, {"retries": Retries(tell=tell), **given, "repo": repo})
    if dry_run:
        return verbs.plan_publishing(Path(folder), options)
    return verbs.publish(Path(folder), options, tell)


def fetch(
    reference: str,
    out: Place | None = None,
    options: "FetchOptions | None" = None,
    *,
    progress: Progress = True,
    **given: Any,  # noqa: ANN401 - options by keyword, checked against FetchOptions
) -> "Fetched":
    """Fetch a release from a Hub into the cache, and check every file. As ``fabula fetch``.

    Args:
        reference: OWNER/NAME@TAG, or OWNER/NAME@COMMIT.
        out: also copy it to ``OUT/NAME-VERSION``.
        options: an object of :class:`fabula.FetchOptions`.
        progress: as for :func:`fabula.build`.
        given: options by keyword: ``config`` and ``split`` for one table, ``endpoint``, ``cache``, ...

    Returns:
        Where it lies, and which commit it is.

    Raises:
        FabulaError: it is not there, is not sound, or the Hub cannot be asked.

    Example:
        >>> import fabula
        >>> fetched = fabula.fetch("user/mine@0.1.0")
        >>> fetched.version
        '0.1.0'
    """
    from ..releases.hub import fetch as fetching
    from ..releases.hub.client import Retries

    tell = teller_of(progress)
    options = chosen(fetching.FetchOptions, options, {"retries": Retries(tell=tell), **given})
    return fetching.fetch(reference, None if out is None else Path(out), options, tell)
