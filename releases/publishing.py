"""Publishing a release: one commit, then a tag. It may be stopped anywhere and run again.

Nothing is written down on this side. Where a run of the command stopped is read off the repository: what is
there is not sent again, a commit that is there is not made again, a tag is made where it is missing.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import HubUnavailable, InputError, TargetError, UserError
from ..schemas.canonical import Json
from ..validators.dataset import IMPORTED, as_user_error
from .hub_address import checked_endpoint, checked_repo
from .hub_client import Hub, Refs, open_hub
from .hub_faults import HubFault
from .hub_retry import Retries
from .layout import LICENSE, README, RELEASE, files_in
from .loading import read_release_document
from .publishing_plan import (
    Local,
    PublishPlan,
    foreign,
    look,
    operations,
    require_same_benchmark,
    require_version,
)
from .verification import verify


@dataclass(frozen=True, slots=True)
class Published:
    """A release on a Hub.

    Attributes:
        plan: what there was to do.
        commit: the commit that holds the release, and that the tag points to.
        committed: whether this run of the command made it.
        tagged: whether this run of the command made the tag.
    """

    plan: PublishPlan
    commit: str
    committed: bool
    tagged: bool

    def as_json(self) -> dict[str, Json]:
        """Return the result as plain JSON."""
        done = {"commit": self.commit, "committed": self.committed, "tagged": self.tagged}
        return {**self.plan.as_json(), **done}

    def lines(self) -> Iterator[str]:
        """Yield the result for people."""
        plan = self.plan
        what = "published" if self.committed or self.tagged else "was published before, nothing to do"
        yield f"{plan.repo}@{plan.version}: {what}"
        yield f"  commit {self.commit}{'' if self.committed else ' (was there)'}"
        yield f"  {plan.address}/tree/{plan.version}"
        yield f"next: fabula fetch {plan.repo}@{plan.version}"


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """How to publish.

    Attributes:
        repo: the data set repository, such as ``user/mine``; made if it is not there.
        private: make it private.
        endpoint: another Hub than that of ``HF_ENDPOINT``.
        retries: how often to ask again.
        progress: show progress bars of uploads.
    """

    repo: str
    private: bool = False
    endpoint: str | None = None
    retries: Retries | None = None
    progress: bool = False


def plan_publishing(folder: Path, options: PublishOptions) -> PublishPlan:
    """Return what :func:`publish` would do; the Hub is only read.

    Raises:
        InputError: the release is not sound. ConfigError: the repository's name is wrong. TargetError: the
            repository holds something else, or the version with another content. HubUnavailable: the Hub
            cannot be asked.
    """
    checked_repo(options.repo)
    checked_endpoint(options.endpoint)
    local = _sound(folder)
    with _hub(options) as hub:
        return _plan(hub, local, options)


def publish(folder: Path, options: PublishOptions, tell: Callable[[str], None] = lambda _: None) -> Published:
    """Put a release into a data set repository: one commit, and a tag named as the version.

    Args:
        folder: the public folder of a release.
        options: where to.
        tell: is told in one line what is being done.

    Raises:
        InputError: the release is not sound. ConfigError: the repository's name is wrong. TargetError: the
            repository holds something else, has changed meanwhile, or has the version with another content.
            HubUnavailable: the Hub cannot be asked, or refuses us.
    """
    checked_repo(options.repo)
    checked_endpoint(options.endpoint)
    tell(f"checking {folder}")
    local = _sound(folder)
    with _hub(options) as hub:
        plan = _plan(hub, local, options)
        if plan.tagged is not None:
            return Published(plan, plan.tagged, committed=False, tagged=False)
        if plan.creates:
            tell(f"creating {plan.repo}")
            hub.create(plan.repo, private=options.private)
            plan = _plan(hub, local, options, made=True)
        commit = _commit(hub, local, plan, tell)
        tell(f"tagging {commit[:12]} as {plan.version}")
        _tag(hub, plan, commit)
        _check(hub, local, plan, commit)
    return Published(plan, commit, committed=plan.commits, tagged=True)


def _sound(folder: Path) -> Local:
    """Return the files of a release that may be published.

    Raises:
        InputError: it may not; lists why.
    """
    document = read_release_document(folder)
    require_version(document, folder)
    if document.get("visibility") == "whole":
        raise _unsound(
            folder, "the public folder of a release", "an imported package with hidden-test stories"
        )
    if document.get("visibility") != "public":
        raise _unsound(folder, "the public folder of a release", "the folder of the hidden-test stories")
    if IMPORTED in document:
        _require_documents(folder)
    for path in files_in(folder):
        if any(part.startswith(".") for part in Path(path).parts):
            raise _unsound(
                folder / path, "no hidden files in a release", "a file whose path begins with a dot"
            )
    report = verify(folder, quick=True)
    problems = [as_user_error(issue) for issue in report.issues if issue.level == "error"]
    if problems:
        raise InputError(problems)
    return Local(folder, document)


def _require_documents(folder: Path) -> None:
    """Refuse an imported package: its card and licence lie in a folder below, where no Hub looks for them.

    Raises:
        InputError: one of them is not at the top.
    """
    missing = [name for name in (README, LICENSE) if not (folder / name).is_file()]
    if missing:
        fix = f"give the package back with `fabula export katha {folder} --out PACKAGE`, and upload that"
        found = f"it is an imported package without {' and '.join(missing)} at the top"
        problem = UserError(str(folder), what=f"the release cannot be published: {found}", fix=fix)
        raise InputError([problem])


def _plan(hub: Hub, local: Local, options: PublishOptions, *, made: bool = False) -> PublishPlan:
    repo, version = options.repo, str(local.document["version"])
    remote = look(hub, repo)
    if remote.private is False and options.private:
        raise TargetError(
            repo,
            what="--private is given, but the repository is public",
            fix="make it private on the Hub, or leave --private out",
        )
    tagged = remote.refs.tags.get(version)
    if tagged is not None and not local.is_in(hub.tree(repo, tagged)):
        raise TargetError(
            f"{repo}@{version}",
            what=f"this version is published already, with other content (commit {tagged})",
            fix="pack with a higher --version; a published version is never changed",
        )
    if tagged is None:
        require_same_benchmark(local, remote, repo)
    return PublishPlan(
        repo=repo,
        address=hub.address(repo),
        version=version,
        private=options.private if remote.private is None else remote.private,
        creates=remote.private is None and not made,
        parent=remote.refs.head,
        operations=operations(local, remote) if tagged is None else (),
        foreign=foreign(local, remote),
        tagged=tagged,
    )


def _commit(hub: Hub, local: Local, plan: PublishPlan, tell: Callable[[str], None]) -> str:
    """Commit what the plan says, and return the commit that holds the release."""
    if not plan.commits:
        assert plan.parent is not None  # files are there, so there is a commit
        return plan.parent
    tell(f"committing {sum(one.kind != 'keep' for one in plan.operations)} changes in one commit")
    message = f"Version {plan.version}", f"{RELEASE} has the SHA-256 {local.sha256(RELEASE)}"

    def done() -> str | None:
        head = hub.refs(plan.repo).head
        made = head is not None and head != plan.parent and local.is_in(hub.tree(plan.repo, head))
        return head if made else None

    try:
        return hub.commit(plan.repo, plan.parent, message, lambda: _wire(local.folder, plan), done)
    except HubFault as fault:
        # Somebody was faster: if it was this very command, elsewhere or before, its commit is ours.
        found = done() if fault.kind == "moved" else None
        if found is None:
            raise
        return found


def _wire(folder: Path, plan: PublishPlan) -> Sequence[Any]:
    """Return the operations as the client has them; it can use them once only."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    return [
        CommitOperationDelete(one.path, is_folder=False)
        if one.kind == "delete"
        else CommitOperationAdd(one.path, folder / one.path)
        for one in plan.operations
        if one.kind != "keep"
    ]


def _tag(hub: Hub, plan: PublishPlan, commit: str) -> None:
    def done() -> str | None:
        return hub.refs(plan.repo).tags.get(plan.version)

    try:
        found = hub.tag(plan.repo, plan.version, commit, done)
    except HubFault as fault:
        elsewhere = done() if fault.kind == "conflict" else None
        if elsewhere is None:
            raise
        found = elsewhere
    if found != commit:
        raise TargetError(
            f"{plan.repo}@{plan.version}",
            what=f"the release is at {commit}, but the tag, made by somebody else meanwhile, is at {found}",
            fix="publish under a higher version, or have the wrong tag removed from the repository",
        )


def _check(hub: Hub, local: Local, plan: PublishPlan, commit: str) -> None:
    """Look at what was published, as somebody who fetches it would."""
    refs: Refs = hub.refs(plan.repo)
    if plan.version not in refs.tags:
        raise HubUnavailable(
            hub.address(plan.repo),
            what=f"the tag {plan.version} was just made and is not there: what answered is not a Hub, but"
            " perhaps a login page or a proxy",
            fix="check HF_ENDPOINT, and that no login page or proxy is in between; then run the command"
            " again, which goes on where it stopped",
        )
    if refs.tags[plan.version] != commit or not local.is_in(hub.tree(plan.repo, commit)):
        raise TargetError(
            f"{plan.repo}@{plan.version}",
            what="the Hub reported success, but what it holds is not the release in the folder",
            fix="look at the repository on the Hub before anybody uses it, then publish again",
        )


@contextmanager
def _hub(options: PublishOptions) -> Iterator[Hub]:
    with open_hub(options.endpoint, retries=options.retries, progress=options.progress) as hub:
        try:
            yield hub
        except HubFault as fault:
            raise fault.for_people(hub.address(options.repo), options.repo) from None


def _unsound(where: Path, expected: str, found: str) -> InputError:
    fix = "give the folder that `fabula release pack` made for the public"
    return InputError([UserError(str(where), expected=expected, found=found, fix=fix)])
