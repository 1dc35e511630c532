"""Publishing a release: one commit, then a tag. It may be stopped anywhere and run again.

Nothing is written down on this side. Where a run of the command stopped is read off the repository: what is
there is not sent again, a commit that is there is not made again, a tag is made where it is missing.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ...errors import ConfigError, HubUnavailable, InputError, TargetError, UserError
from ...models.spec import stand_ins_among
from ...pages.grid import Grid, Tabular
from ...schemas.canonical import Json, sha256_bytes, sha256_file
from ...schemas.paths import IMPORTED, LICENSE, README, RELEASE, STAND_INS, STATISTICS, SUMS, files_in
from ...schemas.plain_files import parse_json, read_json, read_plain
from ...schemas.text import quoted, tallied
from ...validators.report import MARK, as_user_error
from ..form import ReleaseForm
from ..loading import read_release_document
from ..options import SEMVER
from ..verify.verification import verify
from .client import (
    DATASET,
    MAIN,
    Hub,
    HubFault,
    HubFile,
    Refs,
    Retries,
    checked_endpoint,
    checked_repo,
    open_hub,
)

if TYPE_CHECKING:
    from huggingface_hub import HfApi


# -- What publishing a release would do, from what the folder holds and what the repository holds

Kind: TypeAlias = Literal["add", "change", "delete", "keep"]
_OF_THE_HUB = (".gitattributes",)


@dataclass(frozen=True, slots=True)
class Operation:
    """What happens to one file of the repository."""

    kind: Kind
    path: str
    size: int


@dataclass(frozen=True)
class Local:
    """The release's files; each is read once, however often it is compared with the same file of the Hub."""

    folder: Path  # where they are
    document: Mapping[str, Json]  # its ``release.json``
    _compared: dict[tuple[str, HubFile], Kind] = field(default_factory=dict, repr=False)

    @property
    def paths(self) -> tuple[str, ...]:
        """Their paths, sorted."""
        return tuple(files_in(self.folder))

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return (self.folder / path).stat().st_size

    def compare(self, path: str, there: HubFile | None) -> Kind:
        """Return what has to happen so that the repository has the file."""
        if there is None:
            return "add"
        if (path, there) not in self._compared:
            self._compared[path, there] = "change" if there.problem(self.folder / path) else "keep"
        return self._compared[path, there]

    def is_in(self, files: Mapping[str, HubFile]) -> bool:
        """Return whether a revision holds the release, file by file."""
        return all(self.compare(path, files.get(path)) == "keep" for path in self.paths)


@dataclass(frozen=True, slots=True)
class Remote:
    private: bool | None  # whether it is; None where there is none
    refs: Refs  # where its names point
    files: Mapping[str, HubFile]  # what its main branch holds
    document: Mapping[str, Json]  # the ``release.json`` there; empty where there is none
    sha256: str | None = None  # of the bytes of that document; None where there is none

    @property
    def listed(self) -> set[str]:
        """The paths that its ``release.json`` says are of its release."""
        files = self.document.get("files")
        return {*(files if isinstance(files, dict) else {}), *((RELEASE, SUMS) if self.document else ())}


@dataclass(frozen=True, slots=True)
class PublishPlan(Tabular):
    """What publishing would do."""

    repo: str  # the repository
    address: str  # of its page
    version: str  # the release's version, and the name of its tag
    private: bool  # whether the repository is to be private, or is
    creates: bool  # whether the repository is made
    parent: str | None  # the commit that the main branch is at
    operations: tuple[Operation, ...]  # file by file, sorted by path
    foreign: tuple[str, ...]  # files of the repository that are of no release and stay as they are
    tagged: str | None  # the commit that already has the tag; None if there is no such tag

    @property
    def changes(self) -> tuple[Operation, ...]:
        """The operations that there is something to commit for."""
        return tuple(operation for operation in self.operations if operation.kind != "keep")

    def grids(self) -> Iterator[Grid]:
        rows = ((step.kind, step.path, step.size) for step in self.operations)
        title = f"{self.repo}@{self.version}"
        yield Grid("operations", title, ("operation", "file", "bytes"), tuple(rows), words=(1,))

    def as_json(self) -> dict[str, Json]:
        return {
            "repo": self.repo,
            "address": self.address,
            "version": self.version,
            "private": self.private,
            "create_repository": self.creates,
            "parent_commit": self.parent,
            "operations": [
                {"kind": step.kind, "path": step.path, "bytes": step.size} for step in self.operations
            ],
            "left_alone": list(self.foreign),
            "create_tag": self.tagged is None,
        }

    def lines(self) -> Iterator[str]:
        """Yield the plan for people, every operation on a line of its own."""
        if self.creates:
            yield f"create {'private' if self.private else 'public'} data set {self.repo}"
        counts = Counter(step.kind for step in self.operations)
        for step in self.changes:
            yield f"  {step.kind:<6} {step.path} ({step.size:,} bytes)"
        for path in self.foreign:
            yield f"  leave  {path} (not part of a release)"
        if self.changes:
            uploaded = sum(step.size for step in self.changes if step.kind != "delete")
            shown = ", ".join(f"{counts[kind]} to {kind}" for kind in ("add", "change", "delete", "keep"))
            onto = f"one commit on {self.parent}" if self.parent else "the first commit"
            yield f"{onto}: {shown}; {uploaded:,} bytes"
        else:
            yield f"nothing to commit: all {counts['keep']} files are there"
        yield f"tag {self.version}: {'make it' if self.tagged is None else f'there, at {self.tagged}'}"


def plan_of(hub: Hub, local: Local, *, private: bool, made: bool = False) -> PublishPlan:
    """Return what publishing a release would do; nothing is changed."""
    repo, version, remote = hub.repo, str(local.document["version"]), look(hub)
    if remote.private is False and private:
        raise TargetError(
            repo,
            what="--private is given, but the repository is public",
            fix="make it private on the Hub, or leave --private out",
        )
    tagged = remote.refs.tags.get(version)
    if tagged is not None and not local.is_in(hub.tree(tagged)):
        raise TargetError(
            f"{repo}@{version}",
            what=f"this version is published already, with other content (commit {tagged})",
            fix="pack with a higher --version; a published version is never changed",
        )
    if tagged is None:
        require_same_benchmark(local, remote, repo)
    return PublishPlan(
        repo=repo,
        address=hub.address,
        version=version,
        private=private if remote.private is None else remote.private,
        creates=remote.private is None and not made,
        parent=remote.refs.head,
        operations=_operations(local, remote) if tagged is None else (),
        foreign=tuple(sorted(set(remote.files) - {*local.paths, *remote.listed, *_OF_THE_HUB})),
        tagged=tagged,
    )


def look(hub: Hub) -> Remote:
    try:
        info = hub.ask("look at the repository", lambda api: api.repo_info(hub.repo, repo_type=DATASET))
    except HubFault as fault:
        if fault.kind == "no_repository":
            return Remote(None, Refs(None, {}), {}, {})
        raise
    private, refs = bool(info.private), hub.refs()
    files = {} if refs.head is None else hub.tree(refs.head)
    if refs.head is None or RELEASE not in files:
        return Remote(private, refs, files, {})
    with tempfile.TemporaryDirectory(prefix="fabula-hub-") as folder:
        hub.download(refs.head, files, [RELEASE], Path(folder))
        content = read_plain(Path(folder) / RELEASE)
    document: Json = None
    with suppress(ValueError):
        document = parse_json(content)
    return Remote(private, refs, files, document if isinstance(document, dict) else {}, sha256_bytes(content))


def _operations(local: Local, remote: Remote) -> tuple[Operation, ...]:
    """Return what has to happen so that the main branch holds the release, sorted by path."""
    gone = (remote.listed & set(remote.files)) - set(local.paths)
    steps = [
        Operation(local.compare(path, remote.files.get(path)), path, local.size(path)) for path in local.paths
    ]
    steps += [Operation("delete", path, remote.files[path].size) for path in gone]
    return tuple(sorted(steps, key=lambda step: step.path))


def require_same_benchmark(local: Local, remote: Remote, repo: str) -> None:
    """Refuse a repository with something else, a newer version, or another version of this number."""
    if not remote.document:
        touched = [RELEASE] if RELEASE in remote.files else _touched(local, remote)
        if touched:
            raise TargetError(
                repo,
                what="the repository has files that are not a release of Fabula and would be "
                f"overwritten: {', '.join(touched[:5])}",
                fix="give another --repo",
            )
        return
    here, there = _name(local.document), _name(remote.document)
    if here != there:
        raise TargetError(
            repo,
            what=f"the repository holds another benchmark, {there!r}; this release is called {here!r}",
            fix=f"give another --repo; or, if it is the same benchmark, pack again with --name {there}",
        )
    ours, theirs = str(local.document.get("version")), str(remote.document.get("version"))
    if _order(ours) < _order(theirs):
        raise TargetError(
            repo,
            what=f"the repository already has version {theirs}, which is newer than {ours}",
            fix="pack with a higher --version; an older one would take the main branch back",
        )
    previous = local.document.get("previous")
    since = isinstance(previous, dict) and previous.get("version") == theirs and theirs in remote.refs.tags
    if since and isinstance(previous, dict) and previous.get("sha256") != remote.sha256:
        raise TargetError(
            repo,
            what=f"this release was packed --since another {theirs} than the one in the repository: their "
            f"{RELEASE} differ",
            fix=f"fetch {repo}@{theirs}, and pack again with --since that folder",
        )


def _touched(local: Local, remote: Remote) -> list[str]:
    """Return the files that publishing would change though no release put them there."""
    ours = (path for path in local.paths if path != README and path in remote.files)
    return [path for path in ours if local.compare(path, remote.files[path]) == "change"]


def _name(document: Mapping[str, Json]) -> str:
    about = document.get("about")
    return str(about.get("name")) if isinstance(about, dict) else "a release without a name"


def _order(version: str) -> tuple[int, ...]:
    match = SEMVER.match(version)
    return tuple(int(match[group]) for group in (1, 2, 3)) if match else (0, 0, 0)


# -- Publishing


@dataclass(frozen=True, slots=True)
class Published(Tabular):
    """A release on a Hub."""

    plan: PublishPlan  # what there was to do
    commit: str  # the commit that holds the release, and that the tag points to
    committed: bool  # whether this run of the command made it
    tagged: bool  # whether this run of the command made the tag

    def grids(self) -> Iterator[Grid]:
        """Yield what was done to each file."""
        yield from (replace(grid, note=f"Commit {self.commit}.") for grid in self.plan.grids())

    def as_json(self) -> dict[str, Json]:
        done = {"commit": self.commit, "committed": self.committed, "tagged": self.tagged}
        return {**self.plan.as_json(), **done}

    def lines(self) -> Iterator[str]:
        plan = self.plan
        what = "published" if self.committed or self.tagged else "was published before, nothing to do"
        yield f"{plan.repo}@{plan.version}: {what}"
        yield f"  commit {self.commit}{'' if self.committed else ' (was there)'}"
        yield f"  {plan.address}/tree/{plan.version}"
        yield f"next: fabula fetch {plan.repo}@{plan.version}"


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """How to publish."""

    repo: str  # the data set repository, such as ``user/mine``; made if it is not there
    private: bool = False  # make it private
    endpoint: str | None = None  # another Hub than that of ``HF_ENDPOINT``
    retries: Retries | None = None  # how often to ask again
    progress: bool = False  # show progress bars of uploads
    allow_stand_in: bool = False  # publish records that a stand-in for a model wrote or checked


def plan_publishing(folder: Path, form: ReleaseForm, options: PublishOptions) -> PublishPlan:
    """Return what :func:`publish` would do; the Hub is only read."""
    checked_repo(options.repo)
    checked_endpoint(options.endpoint)
    local = _sound(folder, form, options)
    with open_hub(options.repo, options.endpoint, retries=options.retries, progress=options.progress) as hub:
        return plan_of(hub, local, private=options.private)


def publish(
    folder: Path, form: ReleaseForm, options: PublishOptions, tell: Callable[[str], None] = lambda _: None
) -> Published:
    """Put a release into a data set repository: one commit, and a tag named as the version."""
    checked_repo(options.repo)
    checked_endpoint(options.endpoint)
    private = options.private
    with open_hub(options.repo, options.endpoint, retries=options.retries, progress=options.progress) as hub:
        tell(f"checking {folder}")
        local = _sound(folder, form, options, lambda: _require_writer(hub))
        plan = plan_of(hub, local, private=private)
        if plan.tagged is not None:
            return Published(plan, plan.tagged, committed=False, tagged=False)
        if plan.creates:
            tell(f"creating {plan.repo}")
            hub.ask(
                "create the repository",
                lambda api: api.create_repo(hub.repo, repo_type=DATASET, private=private, exist_ok=True),
            )
            plan = plan_of(hub, local, private=private, made=True)
        commit = _commit(hub, local, plan, tell)
        tell(f"tagging {commit[:12]} as {plan.version}")
        _tag(hub, plan, commit)
        _check(hub, local, plan, commit)
    return Published(plan, commit, committed=bool(plan.changes), tagged=True)


def _require_writer(hub: Hub) -> None:
    """Refuse a token that is not there, or may not write: asking takes a second, the check minutes."""
    if not hub.api.token:
        raise HubFault("no_token", "there is none")
    try:
        who = hub.ask("ask whose token it is", lambda api: api.whoami())
    except HubFault as fault:
        if fault.kind == "no_repository":  # a Hub that does not know the question
            return
        raise
    if lacking := lacking_right(who, hub.repo):
        raise HubFault("refused", lacking)


def lacking_right(who: Mapping[str, Any], repo: str) -> str:
    """Return why a token may not write to a repository, from what the Hub says of it; empty where it may.

    What is not known of a token, such as rights of a sort that the Hub has not yet, counts for it.
    """
    owner, token = repo.partition("/")[0].lower(), who.get("auth", {}).get("accessToken", {})
    if token.get("role") == "read":
        return "it may only read"
    scopes = token.get("fineGrained", {}).get("scoped")
    if scopes is not None:
        named = {
            str(scope.get("entity", {}).get("name")).lower()
            for scope in scopes
            if "repo.write" in scope.get("permissions", ())
        }
        return (
            "" if named & {owner, repo.lower()} else f"it is a fine-grained one without repo.write for {repo}"
        )
    orgs = {str(org.get("name")).lower(): org.get("roleInOrg") for org in who.get("orgs", ())}
    if orgs.get(owner) == "read":
        return f"{who.get('name')} may only read in {owner}"
    if owner not in {str(who.get("name")).lower(), *orgs}:
        return f"it is of {who.get('name')}, who is not in {owner}"
    return ""


def _sound(
    folder: Path, form: ReleaseForm, options: PublishOptions, before: Callable[[], None] = lambda: None
) -> Local:
    """Return the files of a release that may be published; ``before`` runs ahead of what takes long."""
    document = read_release_document(folder)
    if SEMVER.fullmatch(version := str(document.get("version"))) is None:
        what = f"{version!r} is not a semantic version"
        raise ConfigError(str(folder / RELEASE), what=what, fix="pack it again")
    about = document.get("about")
    named = about.get("repo") if isinstance(about, dict) else None
    repo = options.repo
    if named not in (None, repo):
        raise ConfigError(
            f"--repo {repo}",
            what=f"the card of this release tells people to load it from {named}",
            fix=f"give --repo {named}, or pack it again with --repo {repo}",
        )
    if document.get("visibility") != "public":
        whole = document.get("visibility") == "whole"
        held = "an imported package with" if whole else "the folder of the"
        raise _unsound(folder, "the public folder of a release", f"{held} hidden-test stories")
    if IMPORTED in document:
        _require_documents(folder)
    for path in files_in(folder):
        if any(part.startswith(".") for part in Path(path).parts):
            raise _unsound(
                folder / path, "no hidden files in a release", "a file whose path begins with a dot"
            )
    before()
    report = verify(folder, form, readers=False)
    if not report.ok:
        raise InputError(
            [report.cause] if report.cause else [as_user_error(issue) for issue in report.errors]
        )
    if document.get(MARK):
        raise InputError([_reviewed_by_programs(folder)])
    if not options.allow_stand_in:
        _require_models(folder, document)
    return Local(folder, document)


def _require_models(folder: Path, document: Mapping[str, Any]) -> None:
    """Refuse stand-ins for models that a release names; one of an earlier edition, its statistics."""
    if not (folder / STATISTICS).is_file():  # imported from an official form, which names no producers
        return
    made = read_json(folder / STATISTICS).get("producers", ())
    makers = (name.partition(": ")[2] or name for name in made)
    if names := stand_ins_among([*document.get(STAND_INS, ()), *makers]):
        raise ConfigError(
            "--allow-stand-in",
            what=f"a stand-in for a model wrote or checked records of this release: {'; '.join(names)}",
            fix="publish what a model or people made, or give --allow-stand-in where a trial is to be public",
        )


def _reviewed_by_programs(folder: Path) -> UserError:
    """Return why a release that programs reviewed is not published: readers would take them for people."""
    return UserError(
        str(folder / RELEASE),
        what=f"the release cannot be published: programs took part in its review ({MARK} is true), and what "
        "they say would pass for a review by people",
        fix="pack the run again without --reviews, or with the review of people",
    )


def _require_documents(folder: Path) -> None:
    """Refuse an imported package: its card and licence lie in a folder below, where no Hub looks for them."""
    missing = [name for name in (README, LICENSE) if not (folder / name).is_file()]
    if missing:
        fix = f"write it with `fabula export stories {quoted(folder)} --out PACKAGE`, and upload that"
        lacking = f"it is an imported package without {' and '.join(missing)} at the top"
        raise InputError.one(str(folder), what=f"the release cannot be published: {lacking}", fix=fix)


def _commit(hub: Hub, local: Local, plan: PublishPlan, tell: Callable[[str], None]) -> str:
    """Commit what the plan says, and return the commit that holds the release."""
    if not plan.changes:
        assert plan.parent is not None  # files are there, so there is a commit
        return plan.parent
    tell(f"committing {tallied(len(plan.changes), 'changes')} in one commit")
    hub.settle_xet()
    document_hash = sha256_file(local.folder / RELEASE)

    def make(api: "HfApi") -> str:
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        # The client can use an operation once only, so each attempt has its own.
        operations = [
            CommitOperationDelete(step.path, is_folder=False)
            if step.kind == "delete"
            else CommitOperationAdd(step.path, local.folder / step.path)
            for step in plan.changes
        ]
        info = api.create_commit(
            hub.repo,
            operations,
            repo_type=DATASET,
            revision=MAIN,
            parent_commit=plan.parent,
            commit_message=f"Version {plan.version}",
            commit_description=f"{RELEASE} has the SHA-256 {document_hash}",
        )
        return str(info.oid)

    def done() -> str | None:
        head = hub.refs().head
        made = head is not None and head != plan.parent and local.is_in(hub.tree(head))
        return head if made else None

    try:
        return hub.ask("commit the files", make, done)
    except HubFault as fault:
        # Somebody was faster: if it was this very command, elsewhere or before, its commit is ours.
        commit = done() if fault.kind == "moved" else None
        if commit is None:
            raise
        return commit


def _tag(hub: Hub, plan: PublishPlan, commit: str) -> None:
    """Give the commit a tag that is not there yet."""

    def make(api: "HfApi") -> str:
        # With exist_ok, the client would be content with a tag that points elsewhere.
        api.create_tag(hub.repo, tag=plan.version, revision=commit, repo_type=DATASET, exist_ok=False)
        return commit

    def done() -> str | None:
        return hub.refs().tags.get(plan.version)

    try:
        tagged = hub.ask("set the tag", make, done)
    except HubFault as fault:
        elsewhere = done() if fault.kind == "conflict" else None
        if elsewhere is None:
            raise
        tagged = elsewhere
    if tagged != commit:
        raise TargetError(
            f"{plan.repo}@{plan.version}",
            what=f"the release is at {commit}, but the tag, made by somebody else meanwhile, is at {tagged}",
            fix="publish under a higher version, or have the wrong tag removed from the repository",
        )


def _check(hub: Hub, local: Local, plan: PublishPlan, commit: str) -> None:
    """Look at what was published, as somebody who fetches it would."""
    tags = hub.refs().tags
    if plan.version not in tags:
        raise HubUnavailable(
            hub.address,
            what=f"the tag {plan.version} was just made and is not there: what answered is not a Hub, but"
            " perhaps a login page or a proxy",
            fix="check HF_ENDPOINT, and that no login page or proxy is in between; then run the command"
            " again, which goes on where it stopped",
        )
    if tags[plan.version] != commit or not local.is_in(hub.tree(commit)):
        raise TargetError(
            f"{plan.repo}@{plan.version}",
            what="the Hub reported success, but what it holds is not the release in the folder",
            fix="look at the repository on the Hub before anybody uses it, then publish again",
        )


def _unsound(where: Path, expected: str, found: str) -> InputError:
    fix = "give the folder that `fabula release pack` made for the public"
    return InputError.one(str(where), expected=expected, found=found, fix=fix)
