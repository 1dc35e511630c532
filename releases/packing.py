"""Packing a finished run into a release folder.

The bytes depend on the run, the options and the versions of the tools only. Nothing here reads the clock.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..engine.manifest import read_manifest
from ..engine.privacy import keep_private
from ..errors import ConfigError, InputError
from ..schemas.canonical import pretty_bytes
from .additions import Additions, Wanted, add, wanted
from .changes_since import compare_with_previous, open_previous
from .composition import SIZES
from .diffing.sides import Side
from .documents import (
    checksums,
    file_entries,
    hidden_document,
    origin_of,
    release_document,
    story_documents,
)
from .facts import Facts
from .flat_kinds import flat_kind
from .hidden.commitments import salt_beside, write_salt
from .layout import RELEASE, SUMS, VOTE_FILES, hidden_folder
from .licence import Licence, licence, one_licence
from .options import PackOptions
from .pack_result import PackResult
from .reviews import Reviews, check_against
from .run_folder import FinishedRun, finished_run
from .selection import LeftOut, Selection, left_out_files, left_out_reason, require_records
from .target import remove_half_placed, require_free, require_outside, staged, taken_back
from .write_data import DataFiles, write_data


def pack(run: Path, out: Path, options: PackOptions) -> PackResult:
    """Pack a finished run into a release folder (paper, A.15, Table 23).

    Args:
        run: the folder of a finished run.
        out: the folder to make; hidden-test stories go to its sibling ``<out>-hidden``, the salt of the
            commitments to them to ``<out>-hidden.salt``.
        options: version, name, licence and authors, the version before, subsets, reviews.

    Raises:
        ConfigError: an option has a wrong value.
        TargetError: ``out`` exists, is a file or cannot be written.
        RunError: ``run`` is no finished run, or its records are not up to date with it. RunBusy: another
            process is at it.
        InputError: the run has findings, or no record can be released; lists why.
    """
    flat = flat_kind(read_manifest(run).kind)
    if flat is not None:
        from .suite_packing import pack_flat

        _require_plain(options, flat.what)
        return pack_flat(run, out, options, flat)
    options.checked()
    if options.license is not None:
        licence(options.license)
    require_outside(out, run)
    require_free(out)
    hidden_out = hidden_folder(out.absolute())
    remove_half_placed(out.absolute(), hidden_out)
    require_free(hidden_out)
    previous = None if options.since is None else open_previous(options.since, options)
    want = wanted(options)
    with finished_run(run) as finished:
        selection = _select(finished, want.reviews)
        released_under = one_licence(selection.licences, options, str(run))
        targets = staged(out.absolute(), hidden_out, private={hidden_out})
        with taken_back() as made, targets as (draft, hidden_draft):
            data = write_data(
                finished, selection, (draft, hidden_draft), want.reviews, str(released_under.spdx_id)
            )
            more = add(want, finished, selection, options, (draft, hidden_draft))
            facts = _facts(finished, selection, data, options, released_under, more)
            if previous is not None:
                document = release_document(facts, origin_of(finished), data.public_hashes, {})
                side = Side(draft, document, facts.statistics)
                news = compare_with_previous(previous, side, options, finished.folder, selection.hidden)
                facts = replace(facts, options=news.options, since=news)
            _write_public(draft, finished, facts, data)
            if selection.hidden:
                keep_private(finished.folder)
                _write_hidden(hidden_draft, finished, facts, data, selection)
            if more.salt is not None and write_salt(salt_beside(hidden_out), more.salt):
                made.append(salt_beside(hidden_out))
    return PackResult(
        folder=out,
        hidden=hidden_out if selection.hidden else None,
        version=facts.options.version,
        counts=facts.composition.totals,
        left_out=(*selection.left_out, *selection.left_out_hidden),
        notes=(*(facts.since.notes if facts.since is not None else ()), *_notes(selection, want, more)),
    )


def _require_plain(options: PackOptions, what: str) -> None:
    """Refuse options that mean nothing to a flat release."""
    given = {"--subset": options.subsets, "--reviews": options.reviews, "--salt": options.salt}
    for option in (name for name, value in given.items() if value):
        raise ConfigError(
            option,
            what=f"only runs of `fabula build katha` have subsets, reviews and a hidden test; this is {what}",
            fix="leave the option out",
        )


def _select(run: FinishedRun, reviews: Reviews) -> Selection:
    """Decide about every story, and refuse a run that the validators find fault with."""
    from ..validators import incomplete_reason, validate
    from ..validators.dataset import as_user_error

    # Rights that do not allow release keep a story out; every other error keeps the whole run out.
    findings = [one for one in validate(run.folder).issues if one.level == "error" and one.code != "rights"]
    if findings:
        raise InputError([as_user_error(issue) for issue in findings])
    selection, labels = Selection(), {}
    for bundle in run.bundles():
        record, variants = bundle["record"], bundle["variants"]
        labels[record["story_id"]] = record["moral_label"]
        incomplete = incomplete_reason(record, variants)
        selection.add(
            record, left_out_reason(record, incomplete, rejected=reviews.rejects(record["story_id"]))
        )
    check_against(reviews, labels, {*labels, *(item.id for item in run.report.items)})
    selection.add_unmade(run.report.items, run.splits)
    require_records(selection, str(run.folder))
    return selection


def _facts(
    run: FinishedRun,
    selection: Selection,
    data: DataFiles,
    options: PackOptions,
    released_under: Licence,
    more: Additions,
) -> Facts:
    from ..validators.statistics import HiddenCounts, moral_balance

    labels: Counter[str | None] = data.counted.moral_labels
    return Facts(
        options=options,
        licence=released_under,
        created_at=run.created_at,
        composition=data.counted.composition,
        statistics=data.counted.statistics.result(HiddenCounts(**data.hidden)),
        balance=moral_balance(labels.elements()),
        hidden={size: data.hidden.get(size, 0) for size in SIZES},
        left_out=tuple(selection.left_out),
        left_out_hidden=len(selection.left_out_hidden),
        left_out_files=left_out_files(more.files if more.reviewed else ()),
        rows=data.rows,
        more=more,
        withdrawn=tuple(selection.withdrawn),
        withdrawn_hidden=len(selection.withdrawn_hidden),
    )


def _write_public(draft: Path, run: FinishedRun, facts: Facts, data: DataFiles) -> None:
    documents = story_documents(facts, origin_of(run), data.public_hashes, file_entries(draft))
    for name, content in documents.items():
        (draft / name).write_bytes(content)


def _write_hidden(draft: Path, run: FinishedRun, facts: Facts, data: DataFiles, selection: Selection) -> None:
    document = hidden_document(facts, origin_of(run), selection, data.hidden_hashes, file_entries(draft))
    (draft / RELEASE).write_bytes(pretty_bytes(document))
    (draft / SUMS).write_bytes(checksums(draft))


def _named(entries: Sequence[LeftOut], selection: Selection) -> str:
    hidden = sum(entry in selection.left_out_hidden for entry in entries)
    return _all_but(hidden)


def _stories(count: int) -> str:
    return f"{count} {'story' if count == 1 else 'stories'}"


def _all_but(hidden: int) -> str:
    return f"release.json names {f'all but {hidden} of the hidden test' if hidden else 'them'}"


def _notes(selection: Selection, want: Wanted, more: Additions) -> tuple[str, ...]:
    notes = [
        f"subset {subset.request.name}: {_stories(len(subset.members))}"
        + ("" if subset.kept is None else f", {subset.kept} of them as before")
        for subset in more.subsets
    ]
    for status in ("left_out", "rejected", "failed"):
        entries = [
            entry for entry in (*selection.left_out, *selection.left_out_hidden) if entry.status == status
        ]
        if entries:
            codes = Counter(entry.code for entry in entries)
            why = ", ".join(f"{count} {code}" for code, count in sorted(codes.items()))
            verb = {"left_out": "left out of the release"}.get(status, f"{status} by the run")
            notes.append(f"{_stories(len(entries))} {verb} ({why}); {_named(entries, selection)}")
    gone = len(selection.withdrawn) + len(selection.withdrawn_hidden)
    if gone:
        named = _all_but(len(selection.withdrawn_hidden))
        notes.append(f"{_stories(gone)} withdrawn; {named}, with reasons")
    if want.reviews.path is None:
        notes.append("no reviewer votes are on file, so no human validation and no gold files are written")
    elif not set(VOTE_FILES) & set(more.files):
        notes.append(f"no review of {want.reviews.path} accepts a story that is packed in public")
    return tuple(notes)
