"""A fifth kind, which lives outside the package: ``examples/comic_pages``, added by its entry point."""

import io
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

import fabula
from fabula.engine.manifest import read_manifest
from fabula.errors import ConfigError, InputError
from fabula.evaluation.katha.requests import EvaluateOptions
from fabula.evaluation.recoverability.matching import Definitions
from fabula.evaluation.recoverability.score import score_folder
from fabula.evaluation.report.formats import write_report
from fabula.kinds import evaluations, verbs
from fabula.kinds.registry import kinds
from fabula.testing.drawn_storyboards import draw_outputs, numbers_in
from fabula.testing.judge_model import JudgeModel
from fabula.testing.katha_model import KathaModel
from fabula.testing.model_server import Asked, ModelServer

ROOT = Path(fabula.__file__).parent
EXAMPLE = ROOT / "examples" / "comic_pages"
DOERS = ("fox", "hen", "goat", "owl", "bear", "mouse", "duck", "badger", "crow", "hare", "otter", "donkey")
DEEDS = (
    "hoisted a basket",
    "folded a blanket",
    "polished a kettle",
    "buried a spoon",
    "carved a flute",
    "mended a drum",
    "painted a barrel",
    "hammered a horseshoe",
    "plucked a feather",
    "unrolled a carpet",
    "sewed a glove",
    "wrapped a parcel",
)
CREATED = "2026-01-01T00:00:00Z"

SIDES = {"drawn": 96, "other": 128}
"""Method -> side of its drawn panels, in pixels."""

pytestmark = pytest.mark.skipif(
    not EXAMPLE.is_dir(), reason="the suite runs against an installed wheel, which has no examples"
)


@pytest.fixture(autouse=True)
def comics(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the example as a package would be: code and entry point on the path."""
    place = tmp_path_factory.mktemp("site")
    info = place / "comic_pages-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: comic-pages\nVersion: 0.1.0\n")
    named = (EXAMPLE / "pyproject.toml").read_text().partition('"fabula.kinds"]\n')[2].splitlines()[0]
    (info / "entry_points.txt").write_text(f"[fabula.kinds]\n{named.replace(chr(34), '')}\n")
    paths = [str(place), str(EXAMPLE)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]))
    for path in paths:
        monkeypatch.syspath_prepend(path)
    kinds.cache_clear()
    yield
    kinds.cache_clear()
    for name in [name for name in sys.modules if name.startswith("comic_pages")]:
        del sys.modules[name]


def built(folder: Path, panels: int = 8) -> Path:
    from comic_pages.building import ComicOptions  # type: ignore[import-not-found]

    stories = write_stories(folder.parent / "stories.jsonl")
    with ModelServer(KathaModel()) as server:
        options = ComicOptions(
            panels=panels, model=f"{server.openai_url}#planner", workers=0, created_at=CREATED
        )
        report = verbs.build("comics", stories, folder, options)
    assert [item.id for item in report.items if item.status != "made"] == []
    return folder


def write_stories(path: Path) -> Path:
    """Write six stories of eight deeds, each of another animal with another thing."""
    rows = []
    for first in range(6):
        deeds = [(DOERS[(first + n) % 12], DEEDS[(5 * first + n) % 12]) for n in range(8)]
        text = " ".join(f"The {doer} {deed}." for doer, deed in deeds)
        rows.append({
            "id": f"comic_{first + 1:02d}", "title": f"Tale {first + 1}", "language": "en", "text": text,
            "source_collection": "aesop", "rights_status": "public_domain_or_rights_compatible",
        })  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture
def release(tmp_path: Path) -> Path:
    options = fabula.PackOptions(
        version="0.1.0", license="CC-BY-4.0", languages=("en",), allow_stand_in=True
    )  # fmt: skip
    fabula.pack(built(tmp_path / "run"), tmp_path / "release", options)
    return tmp_path / "release"


@pytest.mark.slow
def test_pages_when_laid_out_tell_their_story_in_order(release: Path) -> None:
    pages = fabula.load(release).records
    assert {page.story_id for page in pages} == {f"comic_{number:02d}" for number in range(1, 7)}
    assert {len(page.panels) for page in pages} == {4}
    # The model asks about the first three pairs of scenes, which are all on the first page, and the moral of
    # a story belongs to no page.
    assert {page.page_number for page in pages} == {1}
    types = [[one.question_type for one in page.questions] for page in pages]
    assert types == [["temporal_order", "causal", "consequence"]] * 6


@pytest.mark.parametrize(("panels", "most"), [(1, 4), (3, 3), (4, 3), (7, 3), (13, 4), (100, 12)])
def test_panels_when_divided_make_full_pages_of_two_at_least(panels: int, most: int) -> None:
    from comic_pages.lay_out_pages import divide

    pages = list(divide(panels, most))
    assert [number for first, last in pages for number in range(first, last + 1)] == [*range(1, panels + 1)]
    sizes = [last - first + 1 for first, last in pages]
    assert max(sizes) <= most
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= min(2, panels)


@pytest.mark.slow
def test_release_when_verified_is_sound_and_a_forged_page_is_found(release: Path) -> None:
    assert fabula.validate(release.parent / "run").issues == ()
    report = fabula.verify(release)
    assert [issue.message for issue in report.issues] == []
    assert report.checked["pages"] == len(fabula.load(release))
    file = release / "pages.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"scene_index":2', b'"scene_index":3', 1))
    codes = {issue.code for issue in fabula.verify(release, quick=True).issues}
    assert "panel-order" in codes


@pytest.mark.slow
def test_release_when_another_kind_reads_it_is_refused(release: Path) -> None:
    from fabula.releases.loading import load

    with pytest.raises(InputError, match="of kind 'katha'"):
        load(release)


@pytest.mark.slow
def test_drawn_pages_when_judged_are_scored_as_the_judge_answered(release: Path, tmp_path: Path) -> None:
    from comic_pages.evaluating import evaluate_comics

    stories = verbs.load_stories(release).records[:6]
    outputs = draw_outputs(tmp_path / "drawn", stories)
    judge = JudgeModel(stories, {"text": 1.0, "image": 0.5, "text_image": 1.0})
    with ModelServer(judge) as server:
        spec = f"{server.openai_url}#judge"
        options = EvaluateOptions(
            judges=(spec,), stories=tuple(one.story_id for one in stories), workers=0, created_at=CREATED
        )
        assert evaluate_comics(release, [outputs], tmp_path / "eval", options).totals["failed"] == 0
        asked = server.count
        evaluate_comics(release, [outputs], tmp_path / "eval", options)
        assert server.count == asked, "nothing is asked twice"
    scores = score_folder(tmp_path / "eval", None, Definitions(resamples=0), read=verbs.load_stories)
    right: dict[str, list[bool]] = {}
    for one in (question for story in stories for question in story.questions):
        answered = judge.answers(one.question_id, "image", one.question_type, "judge")
        right.setdefault(one.question_type, []).append(answered)
    share = statistics.fmean(statistics.fmean(answers) for answers in right.values())
    found = scores.methods["drawn"].gaps["question"]["raw"]
    assert 0 < share < 1
    assert found.image.value == pytest.approx(share), "every dimension counts the same"
    assert found.text.value == 1.0


def judged(release: Path, folder: Path, image: float) -> tuple[Path, float]:
    """Judge two methods whose pages show so much; return the evaluation and the share that was answered."""
    from comic_pages.evaluating import evaluate_comics

    stories = verbs.load_stories(release).records[:6]
    outputs = [draw_outputs(folder.parent / name, stories, side=side) for name, side in SIDES.items()]
    judge = JudgeModel(stories, {"text": 1.0, "image": image, "text_image": 1.0})
    with ModelServer(judge) as server:
        options = EvaluateOptions(
            judges=(f"{server.openai_url}#judge",), stories=tuple(one.story_id for one in stories), workers=0,
            created_at=CREATED,
        )  # fmt: skip
        assert evaluate_comics(release, outputs, folder, options).totals["failed"] == 0
    right: dict[str, list[bool]] = {}
    for question in (question for story in stories for question in story.questions):
        answered = judge.answers(question.question_id, "image", question.question_type, "judge")
        right.setdefault(question.question_type, []).append(answered)
    return folder, statistics.fmean(statistics.fmean(answers) for answers in right.values())


@pytest.mark.slow
def test_two_evaluations_of_pages_when_compared_differ_as_the_judge_answered(release, tmp_path):
    first, most = judged(release, tmp_path / "first", 1.0)
    second, some = judged(release, tmp_path / "second", 0.5)
    found = evaluations.compare(first, second, {"resamples": 0}).as_json()
    assert [(pair["first"], pair["second"]) for pair in found["comparisons"]] == [
        ("first:drawn", "second:drawn"), ("first:other", "second:other"),
    ]  # fmt: skip
    # The first loses nothing; the second loses what was not answered from its pictures.
    assert most == 1.0
    for name in SIDES:
        assert found["gaps"]["first"][name] == 0
        assert found["gaps"]["second"][name] == pytest.approx(1 - some)
    assert [pair["difference"] for pair in found["comparisons"]] == pytest.approx([some - 1] * 2)
    scores = evaluations.score(second, {"resamples": 0}).as_json()
    assert scores["methods"]["other"]["gaps"]["question"]["raw"]["image"]["value"] == pytest.approx(some)
    written = write_report(evaluations.make_report(second), tmp_path / "page.html")
    assert "How much of the story 2 methods show" in written.files["page"].read_text("utf-8")
    headline = {row.label: row.scores for row in written.document.headline.rows}
    assert headline.keys() == SIDES.keys()
    still = evaluations.affected_judgements(second, release, release).as_json()["totals"]
    assert still["redo"] == still["gone"] == 0 < still["valid"]


@pytest.mark.slow
def test_own_protocol_when_panels_are_judged_scores_compares_and_shows_their_order(release, tmp_path):
    from comic_pages.evaluating_order import (  # type: ignore[import-not-found]
        OrderOptions,
        evaluate_order,
    )

    stories = verbs.load_stories(release).records[:3]
    outputs = [draw_outputs(tmp_path / name, stories, side=side) for name, side in SIDES.items()]
    swapped = {"drawn": False, "other": True}

    def judge(asked: Asked) -> dict[str, list[int]]:
        """Put the pages of one method into order, and swap the first two panels of the other."""
        panels = [numbers_in(image.data)[1] for image in asked.images]
        order = sorted(range(1, len(panels) + 1), key=lambda number: panels[number - 1])
        side = Image.open(io.BytesIO(asked.images[0].data)).width
        if swapped[next(name for name in SIDES if SIDES[name] == side)]:
            order[:2] = order[1::-1]
        return {"order": order}

    def evaluated(name: str) -> Path:
        with ModelServer(judge) as server:
            options = OrderOptions(
                judges=(f"{server.openai_url}#judge",), stories=tuple(story.story_id for story in stories),
                workers=0, created_at=CREATED,
            )  # fmt: skip
            assert evaluate_order(release, outputs, tmp_path / name, options).totals["failed"] == 0
            assert server.count == 6
        return tmp_path / name

    first = evaluated("first")
    assert read_manifest(first).prompts.keys() >= {"comic_pages:panel_order"}
    methods = evaluations.score(first).as_json()["methods"]
    # Of six pairs of four panels one is swapped.
    assert {name: score["value"] for name, score in methods.items()} == pytest.approx(
        {"drawn": 1, "other": 5 / 6}
    )
    swapped["drawn"] = True
    second = evaluated("second")
    pairs = evaluations.compare(first, second, {"resamples": 0}).as_json()["comparisons"]
    assert {pair["first"]: pair["difference"] for pair in pairs} == pytest.approx(
        {"drawn": 1 / 6, "other": 0}
    )
    page = write_report(evaluations.make_report(first), tmp_path / "order.html").files["page"]
    assert "Do the panels tell their order?" in page.read_text("utf-8")
    with pytest.raises(ConfigError, match=r"--matcher: only for an evaluation of storyboards"):
        evaluations.score(first, {"matcher": "exact"})
    copied = evaluations.export_archive(first, tmp_path / "copy")
    assert len(copied.judgements) == 6
    with pytest.raises(InputError, match="answer"):
        evaluations.merge_archives([tmp_path / "copy", second], tmp_path / "merged")


@pytest.mark.slow
def test_command_line_when_given_pages_takes_them_as_any_kind(release: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    commands = (
        ["run", "status", run], ["validate", run], ["stats", release],
        ["release", "verify", release, "--quick"],
    )  # fmt: skip
    for command in commands:
        line = [sys.executable, "-m", "fabula.cli.main", *map(str, command)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
