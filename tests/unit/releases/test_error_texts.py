"""Every error text of packing, verifying and loading, pinned by ``tests/golden/releases/errors.txt``."""

import os
import re
from pathlib import Path

from fabula.errors import UserError
from fabula.kinds.verbs import load, pack, verify
from fabula.releases.options import PackOptions
from fabula.schemas.canonical import canonical_bytes
from fabula.testing.katha_samples import sample_bundles

GOLDEN = Path(__file__).parents[2] / "golden" / "releases" / "errors.txt"


def text_of(function, *arguments):
    try:
        function(*arguments)
    except UserError as error:
        return f"{type(error).__name__} (exit {int(error.exit_code)})\n{error}"
    raise AssertionError("nothing was raised")


def damaged_runs(folder, helpers):
    """Yield a name and a run folder for everything that packing can find wrong with one."""
    bundles = sample_bundles(2)
    yield "no run", folder / "nothing"
    for name, file, change in (
        ("newer run", "run.json", lambda found: found.update(format=2)),
        ("another kind", "run.json", lambda found: found.update(kind="clips")),
        ("unfinished run", "report.json", lambda found: found["totals"].update(pending=3)),
    ):
        run = helpers.write_run(folder / name, bundles)
        helpers.edit_json(run / file, change)
        yield name, run
    run = helpers.write_run(folder / "changed settings", bundles)
    helpers.edit_json(run / "run.json", lambda found: found["settings"]["draft_scenes"].update(scenes=4))
    yield "changed settings", run
    run = helpers.write_run(folder / "changed records", bundles)
    with (run / "records.jsonl").open("ab") as file:
        file.write(b"\n")
    yield "changed records", run
    run = helpers.write_run(folder / "waiting edits", bundles)
    (run / "edits.jsonl").write_text("{}")
    yield "waiting edits", run
    run = helpers.write_run(folder / "no report", bundles)
    (run / "report.json").unlink()
    yield "no report", run
    run = helpers.write_run(folder / "broken report", bundles)
    (run / "report.json").write_text("{,")
    yield "broken report", run
    run = helpers.write_run(folder / "no records", bundles)
    (run / "records.jsonl").unlink()
    yield "no records", run
    run = helpers.write_run(folder / "nothing releasable", bundles)
    for number in (0, 1):
        helpers.edit_line(
            run / "records.jsonl",
            number,
            lambda row: row["payload"]["record"]["provenance"].update(source_rights_status="restricted"),
        )
    helpers.settle(run)
    yield "nothing releasable", run
    run = helpers.write_run(folder / "a finding", bundles)
    helpers.edit_line(
        run / "records.jsonl",
        0,
        lambda row: row["payload"]["record"]["provenance"].update(source_prompt_hash="0" * 64),
    )
    helpers.settle(run)
    yield "a finding", run


def collect(tmp_path, run, packed, helpers):
    out = tmp_path / "out"
    texts = {}
    for name, folder in damaged_runs(tmp_path / "runs", helpers):
        texts[name] = text_of(pack, folder, out, PackOptions("1.0.0", allow_drafts=True))
    for name, options in {
        "version": PackOptions("1.0", allow_drafts=True),
        "name": PackOptions("1.0.0", name="a b", allow_drafts=True),
        "title": PackOptions("1.0.0", title="", allow_drafts=True),
        "url": PackOptions("1.0.0", url="here", allow_drafts=True),
        "creators": PackOptions("1.0.0", creators=(), allow_drafts=True),
        "citation": PackOptions("1.0.0", citation="```", allow_drafts=True),
        "unknown licence": PackOptions("1.0.0", license="CC BY 4.0", allow_drafts=True),
        "hopeless licence": PackOptions("1.0.0", license="%", allow_drafts=True),
        "other licence": PackOptions("1.0.0", license="CC0-1.0", allow_drafts=True),
    }.items():
        texts[name] = text_of(pack, run, out, options)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "filled").mkdir()
    (tmp_path / "filled" / "note").write_text("mine")
    for name in ("file", "filled"):
        texts[f"target is {name}"] = text_of(
            pack, run, tmp_path / name, PackOptions("1.0.0", allow_drafts=True)
        )
    texts["target below a file"] = text_of(
        pack, run, tmp_path / "file" / "out", PackOptions("1.0.0", allow_drafts=True)
    )
    texts["verify nothing"] = text_of(verify, tmp_path / "nothing")
    texts["load nothing"] = text_of(load, tmp_path / "nothing")
    return texts


def test_the_error_texts_are_the_pinned_ones(tmp_path, run, release, packed, helpers):
    texts = collect(tmp_path, run, packed, helpers)
    with (release / "annotations.jsonl").open("ab") as file:
        file.write(canonical_bytes({"story_id": 3}) + b"\n")
    texts["load a damaged release"] = text_of(load, release)
    helpers.edit_json(release / "release.json", lambda found: found.update(format=2))
    texts["load a newer release"] = text_of(load, release)
    helpers.edit_json(release / "release.json", lambda found: found.update(kind="clips"))
    texts["load another kind"] = text_of(load, release)
    shown = "\n\n".join(f"== {name}\n{text}" for name, text in texts.items()) + "\n"
    shown = shown.replace(str(tmp_path), "TMP").replace(str(run.parent), "RUNS")
    shown = re.sub(r'(found )\{"about".*', r"\1...", shown)
    if os.environ.get("UPDATE_GOLDEN") == "1":
        GOLDEN.write_text(shown, "utf-8")
    assert shown == GOLDEN.read_text("utf-8")


def test_findings_of_verify_are_worded_alike(release, helpers):
    (release / "LICENSE").write_text("no\n")
    (release / "data/stories/extra.parquet").write_bytes(b"")
    report = verify(release, quick=True)
    assert [str(issue) for issue in report.issues] == [
        "LICENSE [checksum] has another checksum, in SHA256SUMS and on disk\n"
        "  fix: fetch or pack the release again; a published version is never changed",
        "LICENSE [file-hash] size or hash is not the one in release.json\n"
        "  fix: fetch or pack the release again; a published version is never changed",
        "data/stories/extra.parquet [checksum] is only on one side, in SHA256SUMS and on disk\n"
        "  fix: fetch or pack the release again; a published version is never changed",
        "data/stories/extra.parquet [file-extra] the file is not listed\n  fix: remove it",
        "data/stories/extra.parquet [table] no record belongs into this file\n  fix: pack the run again",
    ]
    assert report.summary().endswith("the release is not sound")
