"""``fabula review``: people review records and outputs, from the design of a study to its votes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigError
from ..schemas.text import quoted
from .command import command
from .common import answer, emit, say, warn

if TYPE_CHECKING:
    from ..people.review.folder import Invited


@command(
    "review init", "people.review.sources.source:DrawOptions", "people.review.plan:Plan",
    owners="kinds.making_studies:owners_of_draws", source="--from", rules="--rule", protocol="--set",
    conditions="--condition", pairs="--pair",
)  # fmt: skip
def init(
    study: Path,
    *,
    given: Mapping[str, Any],
    source: Path,
    task: str | None = None,
    preset: str | None = None,
    name: str | None = None,
    title: str | None = None,
    training: Path | None = None,
    gold: Path | None = None,
    rules: Sequence[str] = (),
    protocol: Sequence[str] = (),
    simulated: bool = False,
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Make a study: draw items, deal them, freeze the protocol.

    The folder holds the items as pages show them, the key that says what each stands for, the seats, and
    protocol.json, whose hash every vote names. Invite people with `fabula review invite`, let them in with
    `fabula review serve`. `fabula review tasks` lists tasks and presets; docs/review.md is a guide.

    Options:
        study: New folder of the study.
        source: Run, release or evaluation that is reviewed.
        task: What is asked; a name, or the file, or its folder, of a task of your own.
        preset: A published study's task, plan and rules; options given go before it.
        name: Short name of the study [the folder's].
        title: What reviewers read at the top [the task's].
        training: Practice items with their right answers, as JSON Lines; they come first.
        gold: Items with known answers that are mixed in as checks, as JSON Lines.
        rules: Who is left out, and when, as attention_failures=1 or min_seconds=3.
        protocol: Another field of the protocol, as consensus=true or break_seconds=60.
        simulated: Programs take the part of reviewers; every file says so.
        dry_run: Only say how many items, seats and votes there would be.

    Examples:
        fabula review init studies/gold --preset kathabench-review --from dist/mine-0.1.0
        fabula review init studies/pref --task preference --from runs/eval-a --pair compass:base --raters 5
        fabula review init studies/events --preset storyeval --from runs/eval-b --per-seat 60
    """
    from ..kinds.making_studies import Wanted, make

    wanted = Wanted(
        task,
        preset,
        name,
        title,
        training,
        gold,
        _pairs("--rule", rules),
        _pairs("--set", protocol),
        simulated,
    )
    made = make(study, source, given, wanted, dry_run=dry_run, progress=None if as_json else _progress)
    return answer(made.as_json(), made.lines(), as_json=as_json)


@command("review tasks")
def tasks(*, as_json: bool = False) -> int:
    """List tasks, and presets of published studies.

    Examples:
        fabula review tasks
    """
    from ..people.review.plan import load_preset, preset_names
    from ..people.review.task import load_task, task_names, text_in

    listed = {name: load_task(name).card for name in task_names()}
    presets = {name: load_preset(name) for name in preset_names()}
    document = {
        "tasks": {
            name: {"title": text_in(card.title, "en"), "source": card.source} for name, card in listed.items()
        },
        "presets": {name: {"task": each.task, "source": each.source} for name, each in presets.items()},
    }
    lines = [
        "tasks:",
        *(f"  {name:<16} {text_in(card.title, 'en')}" for name, card in listed.items()),
        "presets:",
        *(
            f"  {name:<22} {each.source.partition(':')[0]}, task {each.task}"
            for name, each in presets.items()
        ),
        "where each comes from, and what of it is ours: --json",
    ]
    return answer(document, lines, as_json=as_json)


@command("review invite")
def invite(
    study: Path,
    *,
    count: Annotated[int, typer.Option(min=0)] = 0,
    role: str = "reviewer",
    group: str | None = None,
    revoke: Sequence[str] = (),
    drop: Sequence[str] = (),
    why: str = "",
    url: str | None = None,
    as_json: bool = False,
) -> int:
    """Give people personal links, or list the links.

    Works while the study is served. A link is as good as a password: send each to one person. Who has which
    pseudonym is nowhere in the study; keep that list elsewhere if you need it.

    Options:
        study: Folder of the study.
        count: How many more people [none: only list].
        role: reviewer or adjudicator.
        group: Group of participants, one of the protocol's.
        revoke: Take back somebody's link; their answers stay, the rest of their seat goes to others.
        drop: Have others answer anew what somebody answered; the votes stay on file and do not count.
        why: The reason, with --drop.
        url: Address under which people reach the server [the last one given, or where it was served last].

    Examples:
        fabula review invite studies/gold --count 3
        fabula review invite studies/gold --count 1 --role adjudicator --url https://review.example.org
        fabula review invite studies/gold --drop r-5f2c91aa --why 'answered without looking'
    """
    from ..people.review import folder
    from ..people.review.folder import open_study
    from ..people.review.serve.running import clock
    from ..people.review.standing import VoteJournal

    opened, address = open_study(study), url or folder.address_of(study)
    if url is not None:
        folder.keep_address(study, url)
    with VoteJournal(study) as journal:
        if revoke:
            folder.revoke(opened, journal, clock(), revoke)
        if drop:
            folder.drop(opened, journal, clock(), drop, why)
        people = (
            folder.invite(opened, journal, clock(), count, role=role, group=group)
            if count
            else list(folder.invited(opened, opened.standing()))
        )
    people = [replace(each, link=folder.link_of(opened, each.reviewer, address)) for each in people]
    return answer({"people": [_invited(each) for each in people]}, list(_links(people)), as_json=as_json)


def _invited(each: "Invited") -> dict[str, str | None]:
    return {"reviewer": each.reviewer, "role": each.role, "group": each.group, "link": each.link}


def _links(people: Sequence["Invited"]) -> Iterator[str]:
    if not people:
        yield "nobody is invited yet; --count 3 makes links for three"
    for each in people:
        group = "" if each.group is None else f", {each.group}"
        yield f"{each.reviewer} ({each.role}{group}): {each.link}"


@command("review serve")
def serve(
    study: Path,
    *,
    host: str = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8765,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    behind_proxy: bool = False,
    as_json: bool = False,
) -> int:
    """Serve the pages of a study until you stop it.

    Every vote is on disk before the page says that it is saved, so the server may be stopped or killed at any
    moment; pages send again what was not acknowledged, and it counts once.

    Options:
        study: Folder of the study.
        host: Interface; the usual one is reached from this machine only.
        port: Port; 0 takes a free one.
        tls_cert: TLS certificate (PEM), needed for other interfaces.
        tls_key: Its key (PEM).
        behind_proxy: A proxy on this machine speaks TLS in front of it.

    Examples:
        fabula review serve studies/gold
        fabula review serve studies/gold --host 0.0.0.0 --port 443 --tls-cert cert.pem --tls-key key.pem
    """
    from ..people.review.folder import keep_address, open_study
    from ..people.review.serve.running import Address, serve

    opened = open_study(study)

    def started(address: str) -> None:
        if host == "127.0.0.1" and not behind_proxy:
            keep_address(study, address, served=True)
        if as_json:
            emit({"study": opened.protocol.name, "address": address})
            return
        say(f"{opened.protocol.name} is served at {address}", f"next: fabula review invite {quoted(study)}")
        say("stop it with Ctrl-C; everything that was acknowledged is on disk")

    serve(opened, Address(host, port, tls_cert, tls_key, behind_proxy), started=started)
    return 0


@command("review status")
def status(study: Path, *, results: bool = False, as_json: bool = False) -> int:
    """Show how far a study is, and what is short of votes.

    Also people, seats, and what did not load. Works while the study is served.

    Options:
        study: Folder of the study.
        results: Show agreement, pass rates and times, too, with the exclusion rules applied.

    Examples:
        fabula review status studies/gold
        fabula review status studies/gold --results --json
    """
    from ..people.review.folder import open_study
    from ..people.review.serve.running import clock
    from ..people.review.status import lines
    from ..people.review.status import status as made

    opened = open_study(study)
    standing = opened.standing()
    document = made(opened, standing, clock())
    shown = list(lines(document))
    if results:
        from ..people.review.results import lines as result_lines
        from ..people.review.results import results as result_document

        document["results"] = result_document(opened, standing)
        shown += ["", *result_lines(document["results"])]
    return answer(document, shown, as_json=as_json)


@command("review amend", protocol="--set")
def amend(
    study: Path, *, protocol: Sequence[str] = (), who: str = "", why: str = "", as_json: bool = False
) -> int:
    """Change a frozen protocol, as a new version.

    Every vote keeps the version, by its hash, that it was given under. What another study would have (task,
    items, source, plan, seed) cannot change. Results are shown per version, and say when versions are pooled.
    Stop the server first.

    Options:
        study: Folder of the study.
        protocol: A field of the protocol and its new value, as lease_hours=72 or consensus=true.
        who: Who amends it.
        why: The reason.

    Examples:
        fabula review amend studies/gold --set consensus=true --who ana --why 'as agreed on 3 March'
    """
    from ..engine.lock import hold
    from ..people.review.folder import open_study, replace_protocol
    from ..people.review.protocol import amended
    from ..people.review.serve.running import clock

    opened = open_study(study)
    with hold(study):
        made = amended(opened.protocol, _pairs("--set", protocol), who=who, why=why, created_at=clock())
        replace_protocol(opened, made)
    document = {"version": made.version, "sha256": made.sha256, "amends": made.amends}
    return answer(document, [f"protocol version {made.version}: {made.sha256}"], as_json=as_json)


@command("review adjudicate")
def adjudicate(
    study: Path, *, take: Path | None = None, who: str = "", everything: bool = False, as_json: bool = False
) -> int:
    """List disagreements, or take decisions from a file.

    An adjudicator decides on the pages, too: invite one with --role adjudicator. Nobody decides about what
    they reviewed themselves. A decision needs a reason; the last one on a case counts, all are kept.

    Options:
        study: Folder of the study.
        take: Decisions as JSON Lines: case, value, reason, and edits where fields are corrected.
        who: Pseudonym of the adjudicator.
        everything: List decided cases, too.

    Examples:
        fabula review adjudicate studies/gold
        fabula review adjudicate studies/gold --take decisions.jsonl --who a-91b00c2d
    """
    from ..people.review import points
    from ..people.review.folder import open_study
    from ..people.review.serve.running import clock
    from ..people.review.standing import VoteJournal

    opened = open_study(study)
    if take is not None:
        with VoteJournal(study) as journal:
            taken = points.decide_from_file(opened, journal, take, who, clock())
        if not as_json:
            say(f"decisions taken: {taken}")
    cases = points.cases(opened, opened.standing(), everything=everything)
    return answer([case.as_json() for case in cases], points.lines(cases), as_json=as_json)


@command("review export")
def export(
    study: Path,
    *,
    out: Path,
    to: str = "files",
    seat: Annotated[int | None, typer.Option(min=1)] = None,
    withdraw: bool = False,
    language: str = "en",
    embed: bool = False,
    as_json: bool = False,
) -> int:
    """Write what came out, or items for another tool.

    `files`: votes.jsonl for `fabula calibrate --human`, results.json, and for a review of records the files
    that `fabula release pack --reviews` and `fabula edit --from` take. `publication`: the votes of those who
    agreed to it, under names made for that, and what should be read before. `label-studio` and `csv`: the
    items of a seat, to be answered elsewhere; `fabula review import` takes them back.

    Options:
        study: Folder of the study.
        out: New folder.
        to: files, publication, label-studio or csv.
        seat: Which seat, for another tool [every free one].
        withdraw: Records that reviewers rejected are withdrawn by the edits.
        language: Of the texts for another tool.
        embed: Label Studio gets pictures within its tasks.

    Examples:
        fabula review export studies/gold --out reviews/gold
        fabula review export studies/pref --to publication --out votes/pref-public
        fabula review export studies/pref --to csv --seat 1 --out for-ana
    """
    from ..people.review.exchange.forms import ExportOptions, export_seat
    from ..people.review.exporting import export_files, write_published
    from ..people.review.folder import open_study

    opened = open_study(study)
    if to == "files":
        files = export_files(opened, out, withdraw=withdraw)
        return answer(files.as_json(), files.lines(), as_json=as_json)
    if to == "publication":
        published = write_published(opened, out)
        return answer(published.as_json(), published.lines(), as_json=as_json)
    made = export_seat(opened, out, to, seat, ExportOptions(language=language, embed=embed))
    return answer(made.as_json(), made.lines(), as_json=as_json)


@command("review import", source="--from", people="--person", tool="--tool")
def take_in(
    study: Path,
    *,
    source: Path,
    tool: str = "csv",
    people: Sequence[str] = (),
    dry_run: bool = False,
    as_json: bool = False,
) -> int:
    """Take in answers that people gave in another tool.

    Every answer is checked like one from the pages; if any is wrong, all are listed and nothing is taken. The
    same file twice adds nothing. Stop the server first.

    Options:
        study: Folder of the study.
        source: What the other tool exported.
        tool: label-studio or csv.
        people: Who of the other tool is which reviewer here, as 12=r-5f2c91aa.
        dry_run: Only check.

    Examples:
        fabula review import studies/pref --from answers.csv --person ana=r-5f2c91aa
    """
    from ..people.review.exchange.forms import import_answers
    from ..people.review.folder import open_study
    from ..people.review.serve.running import clock

    named = dict(_split("--person", text) for text in people)
    made = import_answers(open_study(study), source, tool, named, clock(), dry_run=dry_run)
    return answer(made.as_json(), made.lines(), as_json=as_json)


@command("review power")
def power(
    kind: str,
    *,
    width: float,
    share: Annotated[float, typer.Option(min=0, max=1)] = 0.5,
    deviation: float = 1.0,
    raters: Annotated[int, typer.Option(min=1)] = 3,
    by_item: Annotated[float, typer.Option(min=0, max=1)] = 0.0,
    as_json: bool = False,
) -> int:
    """Say how many items an interval of a width needs, by the normal approximation.

    Options:
        kind: What is measured: a share, or a mean of ratings or preferences.
        width: Width of the 95 % interval, from end to end.
        share: The share that is expected.
        deviation: Standard deviation of one rating or preference.
        raters: Votes of each item.
        by_item: Share of the variance that is due to items, in [0, 1].

    Examples:
        fabula review power share --width 0.1 --share 0.6 --raters 3 --by-item 0.4
        fabula review power mean --width 0.2 --deviation 1.1 --raters 10
    """
    from ..people.review.plan import items_for

    variances = {"share": share * (1 - share), "mean": deviation**2}
    if kind not in variances:
        raise ConfigError(
            "review power", expected="share or mean", found=repr(kind), fix="choose one of them"
        )
    items, effect = items_for(width, variances[kind], raters, by_item), 1 + (raters - 1) * by_item
    document = {"items": items, "votes": items * raters, "design_effect": effect}
    lines = [
        f"{items:,} items, {items * raters:,} votes: width {width:g} or less",
        f"design effect: {effect:.2f} (variance beside that of as many independent votes)",
    ]
    return answer(document, lines, as_json=as_json)


def _progress(done: int, total: int) -> None:
    if done == total or done % 100 == 0:
        warn(f"items ready: {done:,} of {total:,}")


def _pairs(option: str, texts: Sequence[str]) -> dict[str, Any]:
    """Return name -> value from texts such as ``consensus=true``; values are JSON, or else text."""
    pairs = {}
    for text in texts:
        name, value = _split(option, text)
        try:
            pairs[name] = json.loads(value)
        except ValueError:
            pairs[name] = value
    return pairs


def _split(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise ConfigError(option, what=f"{text!r} is not NAME=VALUE", fix=f"write it as {option} name=value")
    return name.strip(), value.strip()
