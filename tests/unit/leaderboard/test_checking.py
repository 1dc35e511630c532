"""What the check of a leaderboard finds in submissions that are not what they should be."""

import hashlib
import json
import os
import shutil
import stat
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.errors import ConfigError, InputError
from fabula.leaderboard.checking import Checked, check, reproduce, retract
from fabula.leaderboard.making import FILE, BoardOptions, init
from fabula.leaderboard.site import build
from fabula.leaderboard.submission import LIMITS, LONGEST_LINE, SubmitOptions, submit
from fabula.releases.loading import load


def rewritten(path: Path, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Change a JSON document in place, and return its bytes."""
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document), "utf-8")
    return path.read_bytes()


def codes(folder: Path, name: str) -> list[str]:
    return sorted({issue.code for issue in row_of(folder, name).issues if issue.level == "error"})


def row_of(folder: Path, name: str) -> Checked:
    return next(row for row in check(folder).rows if row.name == name)


@pytest.mark.slow
def test_check_when_submissions_are_sound_ranks_them(world: Any) -> None:
    world.submit("model-a")
    world.submit("model-b", out=world.folder / "submissions" / "model-b.zip")
    report = check(world.folder)
    assert [(row.name, row.ranked, row.issues) for row in report.rows] == [
        ("model-a", True, ()), ("model-b", True, ()),
    ]  # fmt: skip
    assert report.summary() == "2 submissions: 2 ranked, 0 not"
    assert 0 < report.rows[0].scores["gap"].value < 1


@pytest.mark.slow
def test_submit_when_declared_keeps_what_is_said_and_what_is_not(world: Any) -> None:
    path = world.submit("model-a", model="m", prompt_rewriting="none", links=("https://a.org/x",))
    document = json.loads((path / "submission.json").read_text("utf-8"))
    assert (document["model"], document["training_overlap"]) == ("m", None)
    row = row_of(world.folder, "model-a")
    assert row.submission is not None
    assert row.submission.undeclared == (
        "Authors", "Model version", "Model date", "Overlap with training data", "Run by",
    )  # fmt: skip
    with pytest.raises(InputError, match="is no address"):
        world.submit("model-b", links=("javascript:alert(1)",))


def test_submit_when_the_same_gives_the_same_zip(world: Any, tmp_path: Path) -> None:
    first, second = (world.submit("model-a", out=tmp_path / f"{n}" / "model-a.zip") for n in (1, 2))
    assert first.read_bytes() == second.read_bytes()


def test_submit_when_the_protocol_differs_says_where(world: Any, edited: Any) -> None:
    run = edited("other", protocol={"judges": ["simulated:judge-1"]})
    with pytest.raises(InputError, match="protocol judges") as caught:
        world.submit("other", run)
    assert "evaluate as the board asks" in str(caught.value)


@pytest.mark.parametrize(
    ("protocol", "code"),
    [
        ({"release": {"sha256": "0" * 64}}, "other-release"),
        ({"prompts": {"judge/question_text": "judge/question_text@9#0"}}, "other-prompts"),
        ({"judges": ["simulated:judge-1"]}, "other-protocol"),
    ],
)
def test_check_when_made_otherwise_names_the_part(world, edited, protocol, code):
    changed = world.submit("model-c", edited("model-c", "model-c"))
    rewritten(changed / "evaluation.json", lambda document: document["protocol"].update(protocol))
    assert code in codes(world.folder, "model-c")


@pytest.mark.slow
def test_check_when_nothing_can_be_scored_counts_the_row_as_its_page_does(world: Any, edited: Any) -> None:
    def wrong(row: dict[str, Any]) -> dict[str, Any]:
        # STG is over questions that text and pictures together answer: where they answer none, there is none.
        asked = row["kind"] == "question" and row["condition"] == "text_image"
        return {**row, "parsed": {**row["parsed"], "final_answer": "unclear"}} if asked else row

    run = edited("mute", "model-c", line=wrong)
    world.submit("mute", run)
    row = row_of(world.folder, "mute")
    assert [issue.code for issue in row.issues if issue.level == "error"] == ["no-value"]
    built = build(world.folder, world.folder / "site")
    assert built.report.summary() == "1 submission: 0 ranked, 1 not"
    index = (world.folder / "site" / "index.html").read_text("utf-8")
    assert "it has no STG to be ranked by: " in index
    assert 'href="methods/mute.html"' in index
    assert index.count(">Not ranked<") == 3  # a count at the top, a link to the section, its heading
    assert (world.folder / "site" / "methods" / "mute-report.html").is_file()
    made = init(world.folder, BoardOptions(like=run, release=world.release, board="second", resamples=0))
    assert "mute has no STG to be ranked by" in made.warnings[0]


def test_check_when_replies_are_missing_is_not_ranked(world: Any, edited: Any) -> None:
    lines = iter(range(10**6))
    run = edited("half", "model-c", line=lambda row: row if next(lines) % 2 else None)
    world.submit("half", run)
    row = row_of(world.folder, "half")
    assert "coverage" in codes(world.folder, "half")
    assert row.coverage is not None and 0.3 < row.coverage < 0.6
    assert not row.ranked


def test_check_when_a_file_was_changed_or_lost_says_which(world: Any) -> None:
    path = world.submit("model-a")
    (path / "store").mkdir()
    (path / "store" / "notes.txt").write_text("x", "utf-8")
    assert codes(world.folder, "model-a") == ["file-extra"]
    shutil.rmtree(path / "store")
    (path / "scores.csv").write_text("table,row\n", "utf-8")
    assert codes(world.folder, "model-a") == ["file-changed"]
    (path / "judgements.jsonl").unlink()
    assert codes(world.folder, "model-a") == ["file-changed", "file-missing"]


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"format": 1, "board": "b", "extra": 1}', b"\xff"])
def test_check_when_the_declaration_is_no_declaration_is_not_ranked(world: Any, content: bytes) -> None:
    path = world.submit("model-a")
    (path / "submission.json").write_bytes(content)
    assert codes(world.folder, "model-a") == ["declaration"]


def hostile(path: Path, *entries: tuple[zipfile.ZipInfo | str, bytes]) -> Path:
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in entries:
            packed.writestr(name, data)
    return path


def test_check_when_a_zip_leads_out_writes_nothing_outside(world: Any, tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    submissions = world.folder / "submissions"
    hostile(submissions / "slip.zip", ("../../escaped.txt", b"x"), ("/tmp/escaped.txt", b"x"))
    hostile(submissions / "link.zip", (link, b"/etc/passwd"))
    hostile(submissions / "twice.zip", ("a.json", b"1"), ("A.json", b"2"))
    for name in ("slip", "link", "twice"):
        assert "unsafe-file" in codes(world.folder, name), name
    assert list(tmp_path.rglob("escaped.txt")) == []


def test_check_when_a_zip_is_a_bomb_does_not_unpack_it(world: Any) -> None:
    hostile(world.folder / "submissions" / "bomb.zip", ("judgements.jsonl", bytes(64 << 20)))
    assert "too-large" in codes(world.folder, "bomb")
    assert LIMITS.bytes > (64 << 20)


@pytest.mark.slow
def test_check_when_a_zip_is_damaged_says_so(world: Any) -> None:
    good = world.submit("model-a", out=world.folder / "submissions" / "model-a.zip").read_bytes()
    for name, data in {"empty": b"", "cut": good[: len(good) // 2], "text": b"hello"}.items():
        (world.folder / "submissions" / f"{name}.zip").write_bytes(data)
        assert codes(world.folder, name)[:1] == ["damaged"], name


PLACES = (
    "submission.json", "evaluation.json", "judgements.jsonl", "scores.csv", "frames.jsonl", "store", ".zip",
)  # fmt: skip
HOSTILE: dict[str, Callable[[Path], object]] = {
    "device": lambda path: path.symlink_to("/dev/zero"), "link": lambda path: path.symlink_to("/etc/passwd"),
    "pipe": os.mkfifo, "folder": Path.mkdir,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="links, pipes and devices")
def test_check_when_something_is_no_plain_file_tells_that_row_and_checks_the_others(world: Any) -> None:
    good = world.submit("model-a")
    names = []
    for kind, make in HOSTILE.items():
        for place in PLACES:
            folder = good.parent / f"{kind}-{place.strip('.').partition('.')[0]}"
            names.append(folder.name)
            if place == ".zip":
                make(folder.with_suffix(".zip"))
                continue
            shutil.copytree(good, folder)
            (folder / place).unlink(missing_ok=True)
            make(folder / place)
    good.rename(good.parent / "first")  # all others call themselves so, too
    rows = {row.name: row for row in check(world.folder).rows}
    assert sorted(rows) == sorted(["first", *names])
    for name in names:
        wanted = {"unsafe-file", "damaged", "declaration", "file-missing", "name"}
        assert {issue.code for issue in rows[name].issues if issue.level == "error"} & wanted, name
        assert not rows[name].ranked
    assert [issue.code for issue in rows["first"].issues] == ["name"]


def replaced(path: Path, name: str, data: bytes) -> None:
    """Put other bytes into a file of a submission, as it would have been declared."""
    (path / name).write_bytes(data)
    entry = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    rewritten(path / "submission.json", lambda document: document["files"].update({name: entry}))


def declared(path: Path, **about: Any) -> None:
    rewritten(path / "submission.json", lambda document: document.update(about))


def each_line(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        rows = [json.loads(line) for line in (path / "judgements.jsonl").read_bytes().splitlines()]
        for row in rows:
            change(row)
        replaced(path, "judgements.jsonl", "\n".join(map(json.dumps, rows)).encode())

    return spoil


def manifest(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def spoil(path: Path) -> None:
        content = rewritten(path / "evaluation.json", lambda document: change(document["subject"]["methods"]))
        replaced(path, "evaluation.json", content)

    return spoil


SEEDS = iter(range(10**9))
LARGE: dict[str, tuple[Callable[[Path], None], set[str]]] = {
    "a long line": (
        lambda path: replaced(path, "judgements.jsonl", b'{"raw": "' + bytes(LONGEST_LINE)), {"too-large"}),
    "many lines": (lambda path: replaced(path, "judgements.jsonl", b"{}\n" * 60_000), {"too-large"}),
    "a large manifest": (lambda path: replaced(path, "evaluation.json", b" " * (17 << 20)), {"too-large"}),
    "a large declaration": (
        lambda path: (path / "submission.json").write_bytes(b" " * (5 << 20)) and None, {"too-large"}),
    "a seed beyond 64 bits": (each_line(lambda row: row.update(seed=10**30)), {"impossible-value"}),
    "a vote beyond 64 bits": (each_line(lambda row: row.update(vote=2**63)), {"impossible-value"}),
    "tokens beyond 64 bits": (each_line(lambda row: row.update(input_tokens=2**63)), {"impossible-value"}),
    "5,000 digits": (
        lambda path: replaced(path, "judgements.jsonl", b'{"seed": ' + b"9" * 5000 + b"}"), {"damaged"}),
    "NaN": (each_line(lambda row: row.update(parsed={"answer": float("nan")})), {"no-value"}),
    "a seed for each reply": (each_line(lambda row: row.update(seed=next(SEEDS))), {"too-large"}),
    "100,000 seeds": (
        manifest(lambda methods: methods["large"].update(seeds=list(range(100_000)))), {"too-large"}),
    "100,000 declared": (lambda path: declared(path, seeds=100_000), {"declaration"}),
    "a huge count": (
        manifest(lambda methods: methods["large"].update(generations_requested=10**400)), {"coverage"}),
    "no methods": (manifest(lambda methods: methods.update(large=[1])), {"damaged"}),
    "100,000 methods": (
        manifest(lambda methods: methods.update({f"m{n}": {} for n in range(100_000)})), {"other-method"}),
    "deep": (lambda path: replaced(path, "evaluation.json", b"[" * 100_000), {"damaged"}),
    "25,000 files": (
        lambda path: declared(path, files={f"{n}": {"sha256": "", "bytes": 1} for n in range(25_000)}),
        {"declaration"}),
    "a file elsewhere": (
        lambda path: declared(path, files={"../../../etc/passwd": {"sha256": "", "bytes": 1}}),
        {"file-missing"}),
}  # fmt: skip
DEAR = ("NaN", "100,000 methods", "25,000 files")


@pytest.fixture(scope="session")
def large(simulated: tuple[Path, dict[str, Path]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A leaderboard with a sound submission, and one that tests spoil."""
    release, runs = simulated
    folder = tmp_path_factory.mktemp("large") / "board"
    init(folder, BoardOptions(like=runs["model-a"], release=release, resamples=0))
    submit(runs["model-b"], folder, SubmitOptions(name="large", date="2026-01-01"))
    made = folder / "submissions" / "large"
    manifest(lambda methods: methods.update(large=methods.pop("model-b")))(made)
    declared(made, method="large")
    each_line(lambda row: row.update(method=row["method"] and "large"))(made)
    return folder


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in DEAR else []) for name in LARGE]
)
def test_check_when_something_is_too_large_or_cannot_be_computed_tells_that_row(large, tmp_path, name):
    spoil, wanted = LARGE[name]
    shutil.copytree(large, tmp_path / "board")
    assert codes(tmp_path / "board", "large") == []
    spoil(tmp_path / "board" / "submissions" / "large")
    assert wanted <= set(codes(tmp_path / "board", "large"))
    build(tmp_path / "board", tmp_path / "site")


def test_check_when_names_are_the_same_or_no_text_ranks_neither(large: Path, tmp_path: Path) -> None:
    shutil.copytree(large, tmp_path / "board")
    inside = tmp_path / "board" / "submissions"
    shutil.copytree(inside / "large", inside / "bad-\udcff")
    os.mkfifo(inside / "large.zip")
    (inside / "large" / "bad\udcff.json").write_bytes(b"{}")
    report = check(tmp_path / "board")
    assert len(report.rows) == 3 and not any(row.ranked for row in report.rows)
    assert "name" in codes(tmp_path / "board", "bad-?")
    assert json.dumps(report.as_json(), ensure_ascii=False).encode("utf-8")
    assert all(issue.where.encode("utf-8") for issue in report.issues)


def test_retract_when_done_keeps_the_row_with_its_reason(world: Any) -> None:
    world.submit("model-a")
    retract(world.folder, "model-a", "The seeds were chosen by score.", "2026-02-01")
    row = row_of(world.folder, "model-a")
    assert row.retraction is not None and row.retraction.date == "2026-02-01"
    assert (row.ranked, row.issues) == (False, ())
    with pytest.raises(ConfigError, match="no such submission"):
        retract(world.folder, "model-x", "why")


def test_reproduce_when_archive_or_numbers_change_names_the_numbers(world: Any) -> None:
    path = world.submit("model-a")
    assert reproduce(world.folder, "model-a").same
    text = (path / "scores.csv").read_text("utf-8")
    line = next(line for line in text.splitlines() if line.startswith("headline,model-a,gap"))
    cells = line.split(",")
    (path / "scores.csv").write_text(text.replace(line, ",".join([*cells[:3], "0.001", *cells[4:]])), "utf-8")
    made = reproduce(world.folder, "model-a")
    assert [each.number for each in made.differences] == ["headline / model-a / gap / value"]
    assert made.differences[0].stated == "0.001" != made.differences[0].ours == cells[3]


def test_leaderboard_when_its_file_is_broken_is_refused(world: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        check(tmp_path)
    (world.folder / FILE).write_text('{"format": 2}', "utf-8")
    with pytest.raises(InputError):
        check(world.folder)


def test_init_when_versions_differ_keeps_boards_apart(world: Any) -> None:
    options = BoardOptions(like=world.runs["model-a"], release=world.release, board="second", resamples=0)
    made = init(world.folder, options)
    assert made.board.name == "second"
    with pytest.raises(ConfigError, match="already"):
        init(world.folder, options)
    with pytest.raises(ConfigError, match="fits"):
        submit(world.runs["model-a"], world.folder, SubmitOptions(name="x"))
    assert world.submit("model-a", board="second").is_dir()


def test_init_when_stories_for_training_were_judged_says_so_there_and_on_the_page(world: Any) -> None:
    options = BoardOptions(like=world.runs["model-a"], release=world.release, board="second", resamples=0)
    made = init(world.folder, options)
    splits = Counter(record.split for record in load(world.release).records)
    assert made.board.splits == dict(splits)
    expected = f"{splits['train']} of {len(load(world.release))} judged stories are of the split train"
    assert [text for text in made.warnings if expected in text]
    build(world.folder, world.folder / "site")
    assert expected in (world.folder / "site" / "index.html").read_text("utf-8")


def test_init_when_a_release_and_hidden_do_not_go_together_says_what_does(world: Any, tmp_path: Path) -> None:
    like, board = world.runs["model-a"], tmp_path / "hidden-board"
    with pytest.raises(ConfigError, match="not the folder of a hidden test") as caught:
        init(board, BoardOptions(like=like, release=world.release, hidden=True))
    assert "evaluate a baseline on that folder" in str(caught.value)
    hidden = Path(shutil.copytree(world.release, tmp_path / "hidden"))
    rewritten(hidden / "release.json", lambda document: document.update(visibility="hidden"))
    with pytest.raises(ConfigError, match="would copy it into the leaderboard"):
        init(board, BoardOptions(like=like, release=hidden))
    assert not board.exists()


def test_leaderboard_when_it_is_of_the_time_of_planted_outputs_is_read_if_it_has_none(world: Any) -> None:
    assert b'"planted"' not in (world.folder / FILE).read_bytes()
    rewritten(world.folder / FILE, lambda document: document["boards"][0].update(planted=None))
    assert check(world.folder).rows == ()
    planted = {"method": "planted"}
    rewritten(world.folder / FILE, lambda document: document["boards"][0].update(planted=planted))
    with pytest.raises(InputError, match=r"boards\[0\]\.planted"):
        check(world.folder)


def test_submit_when_several_methods_were_judged_says_how_to_part_them(world: Any, edited: Any) -> None:
    run = edited("other", "model-c")
    rewritten(run / "evaluation.json", lambda document: document["subject"]["methods"].update(second={}))
    with pytest.raises(ConfigError, match="evaluate each method into a folder of its own"):
        world.submit("other", run)
