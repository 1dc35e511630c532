"""Fetching a published version: by tag or commit, every file checked, kept in a cache, offline afterwards."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from ..errors import ConfigError, InputError, UserError
from ..schemas.canonical import Json
from ..schemas.plain_files import read_plain
from .fetching_cache import open_cache, require_room
from .fetching_files import (
    LARGEST_DOCUMENT,
    Expected,
    differences,
    expected_of_release,
    expected_of_tree,
    of_remote,
    tampered,
)
from .hub_address import Reference, parse_reference
from .hub_client import Hub, open_hub
from .hub_faults import HubFault
from .hub_retry import Retries
from .layout import RELEASE
from .loading import read_release_document
from .options import SEMVER
from .target import require_free, staged

_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """How to fetch.

    Attributes:
        endpoint: another Hub than that of ``HF_ENDPOINT``.
        cache: another cache folder than the user's.
        retries: how often to ask again.
        progress: show progress bars of downloads.
    """

    endpoint: str | None = None
    cache: Path | None = None
    retries: Retries | None = None
    progress: bool = False


@dataclass(frozen=True, slots=True)
class Fetched:
    """A version on this machine.

    Attributes:
        reference: what was asked for.
        commit: the commit that it is.
        folder: where it lies; not to be changed where it is the cache.
        cached: whether it was there already, so that no Hub was asked.
        version: the release's version; None for a repository that is no release of ours.
        files: how many files it has.
    """

    reference: Reference
    commit: str
    folder: Path
    cached: bool
    version: str | None
    files: int

    def as_json(self) -> dict[str, Json]:
        """Return the result as plain JSON."""
        return {
            "reference": str(self.reference),
            "commit": self.commit,
            "folder": str(self.folder),
            "cached": self.cached,
            "version": self.version,
            "files": self.files,
        }

    def lines(self) -> Iterator[str]:
        """Yield the result for people."""
        source = "from the cache" if self.cached else "from the Hub"
        yield f"{self.reference}: {self.files} files {source}, all of them checked"
        yield f"  commit {self.commit}"
        yield f"  release: {self.folder}"


def fetch(
    text: str,
    out: Path | None = None,
    options: FetchOptions | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Fetched:
    """Fetch a release, and check every file against its ``release.json``.

    Args:
        text: such as ``user/mine@0.2.0``; the version is a tag or a full commit.
        out: a folder that gets a copy, ``<out>/<name>-<version>``; without it, the one in the cache is used.
        options: from where, and how.
        tell: is told in one line what is being done.

    Raises:
        ConfigError: the name is wrong, or there is no such version. HubUnavailable: the Hub cannot be asked.
        InputError: a file is not the one that was published, or it is no release. TargetError: there is no
            room, or the copy's place is taken.
    """
    reference, options = parse_reference(text), options or FetchOptions()
    found = _fetch(reference, options, "releases", _release_files, tell)
    version = str(read_release_document(found.folder)["version"])
    if SEMVER.fullmatch(reference.revision) and reference.revision != version:
        raise InputError([tampered(str(reference), f"a release of version {version} under this tag")])
    place = found.folder
    if out is not None:
        place = out / f"{reference.repo.partition('/')[2]}-{version}"
        listing = open_cache("releases", options.endpoint, options.cache).listing(
            reference.repo, found.commit
        )
        _copy(found.folder, place, listing)
    return replace(found, version=version, folder=place)


def fetch_repository(
    text: str, options: FetchOptions | None = None, tell: Callable[[str], None] = lambda _: None
) -> Fetched:
    """Fetch all files of a repository that need not be a release of ours.

    Every file is checked against what the Hub lists for the commit.

    Args:
        text: such as ``user/mine@1.0``; the version is a tag or a full commit.
        options: from where, and how.
        tell: is told in one line what is being done.

    Raises:
        The same as :func:`fetch`.
    """
    return _fetch(parse_reference(text), options or FetchOptions(), "repositories", _all_files, tell)


Listing: TypeAlias = Callable[[Hub, str, str, Path], Mapping[str, Expected]]


def _fetch(
    reference: Reference, options: FetchOptions, kind: str, listing: Listing, tell: Callable[[str], None]
) -> Fetched:
    cache, repo = open_cache(kind, options.endpoint, options.cache), reference.repo
    commit = cache.known_commit(reference)
    if commit is not None:
        folder, known = cache.folder(repo, commit), cache.listing(repo, commit)
        problems = list(differences(folder, known, f"remove {folder}, and fetch it again"))
        if problems:
            raise InputError(problems)
        return Fetched(reference, commit, folder, True, None, len(known))
    with open_hub(options.endpoint, retries=options.retries, progress=options.progress) as hub:
        try:
            commit = _commit_of(hub, reference)
            tell(f"fetching {repo} at {commit[:12]}")
            with cache.filling(repo, commit) as draft:
                if draft is not None:
                    expected = listing(hub, repo, commit, draft)
                    _load(hub, repo, commit, draft, expected)
                    cache.place(repo, commit, draft, expected)
                cache.remember(reference, commit)
        except HubFault as fault:
            raise fault.for_people(hub.address(repo), repo) from None
    return Fetched(
        reference, commit, cache.folder(repo, commit), False, None, len(cache.listing(repo, commit))
    )


def _commit_of(hub: Hub, reference: Reference) -> str:
    if reference.is_commit:
        return reference.revision
    refs = hub.refs(reference.repo)
    if reference.revision in refs.tags:
        return refs.tags[reference.revision]
    versions = ", ".join(sorted(refs.tags)) or "no version at all"
    branch = reference.revision in refs.branches
    raise ConfigError(
        str(reference),
        what=f"{reference.revision} is "
        f"{'a branch, whose content can change' if branch else 'not a version of this repository'}; "
        f"the versions are: {versions}",
        fix=f"give one of them{f', or the commit {refs.head}' if branch and refs.head else ''}",
    )


def _release_files(hub: Hub, repo: str, commit: str, draft: Path) -> Mapping[str, Expected]:
    """Load ``release.json``, and return what the files of the release must be."""
    where = f"{repo}@{commit[:12]}: {RELEASE}"
    listed = hub.file(repo, commit, RELEASE)
    if listed is None or listed.size > LARGEST_DOCUMENT:
        found = "none" if listed is None else f"{listed.size:,} bytes"
        raise InputError([
            UserError(where, expected=f"a {RELEASE} of at most {LARGEST_DOCUMENT:,} bytes", found=found,
                      fix="check that the repository holds a release made by Fabula")
        ])  # fmt: skip
    problem = _get(hub, repo, commit, draft, RELEASE, of_remote(listed))
    if problem is not None:
        raise InputError([problem])
    return expected_of_release(read_plain(draft / RELEASE), where)


def _all_files(hub: Hub, repo: str, commit: str, _: Path) -> Mapping[str, Expected]:
    return expected_of_tree(hub.tree(repo, commit), f"{repo}@{commit[:12]}")


def _load(hub: Hub, repo: str, commit: str, draft: Path, expected: Mapping[str, Expected]) -> None:
    """Load what is not there yet, and check it; what is not sound is removed and told.

    Raises:
        InputError: files are not what they must be. HubFault: the Hub does not give them. OSError: there is
            no room. TargetError: there will be none.
    """
    missing = [path for path, one in sorted(expected.items()) if one.problem(draft / path) is not None]
    require_room(draft, sum(expected[path].size or 0 for path in missing))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(lambda path: _get(hub, repo, commit, draft, path, expected[path]), missing))
    problems = [problem for problem in found if problem is not None]
    if problems:
        raise InputError(problems)


def _get(hub: Hub, repo: str, commit: str, draft: Path, path: str, expected: Expected) -> UserError | None:
    """Load one file; a file that arrives damaged is asked for once more."""
    for anew in (False, True):
        place = hub.download(repo, commit, path, draft, anew=anew)
        problem = expected.problem(place)
        if problem is None:
            return None
    place.unlink(missing_ok=True)
    return tampered(f"{hub.address(repo)}/blob/{commit[:12]}/{path}", f"a file that {problem}")


def _copy(folder: Path, place: Path, expected: Mapping[str, Expected]) -> None:
    """Put a copy of a version at a place, unless it is there.

    Raises:
        TargetError: something else is there, or it cannot be written.
    """
    if place.is_dir() and any(place.iterdir()) and not list(differences(place, expected)):
        return
    require_free(place)
    with staged(place.absolute()) as (draft,):
        shutil.copytree(folder, draft, dirs_exist_ok=True)
