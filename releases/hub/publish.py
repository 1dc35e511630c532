"""Publishing a release: one commit, then a tag. It may be stopped anywhere and run again.

Nothing is written down on this side. Where a run of the command stopped is read off the repository: what is
there is not sent again, a commit that is there is not made again, a tag is made where it is missing.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import ConfigError, HubUnavailable, InputError, TargetError, UserError
from ...models.spec import stand_ins_among
from ...pages.grid import Grid, Tabular
from ...schemas.canonical import Json, sha256_file
from ...schemas.layout import IMPORTED, LICENSE, README, RELEASE, STAND_INS, STATISTICS, files_in
from ...schemas.plain_files import read_json
from ...schemas.text import tallied
from ...validators.report import as_user_error
from ...validators.review_marks import MARK
from ..form import ReleaseForm
from ..loading import read_release_document
from ..options import SEMVER
from ..verify.verification import verify
from .address import checked_endpoint, checked_repo
from .client import DATASET, MAIN, Hub, open_hub
from .faults import HubFault, Retries
from .plan import Local, PublishPlan, plan_of

if TYPE_CHECKING:
    from huggingface_hub import HfApi


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
    tell(f"checking {folder}")
    local, private = _sound(folder, form, options), options.private
    with open_hub(options.repo, options.endpoint, retries=options.retries, progress=options.progress) as hub:
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


def _sound(folder: Path, form: ReleaseForm, options: PublishOptions) -> Local:
    """Return the files of a release that may be published in a repository."""
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
    report = verify(folder, form, readers=False)
    problems = [as_user_error(issue) for issue in report.issues if issue.level == "error"]
    if problems:
        raise InputError(problems)
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
        fix = f"give the package back with `fabula export katha {folder} --out PACKAGE`, and upload that"
        lacking = f"it is an imported package without {' and '.join(missing)} at the top"
        problem = UserError(str(folder), what=f"the release cannot be published: {lacking}", fix=fix)
        raise InputError([problem])


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
    return InputError([UserError(str(where), expected=expected, found=found, fix=fix)])
