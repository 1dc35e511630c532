"""The pages of `fabula view` in a browser: quiet, accessible, as wide as the window, by day and night."""

import copy
import json
import socket
import tarfile
import threading
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.evaluation.events.report import events_report
from fabula.evaluation.recoverability.matching import Definitions
from fabula.evaluation.report.formats import write_report
from fabula.kinds.verbs import diff, editable_of, pack
from fabula.leaderboard.making import BoardOptions, init
from fabula.leaderboard.site import build
from fabula.leaderboard.submission import SubmitOptions, submit
from fabula.people.audits.auditing import PAGE, AuditOptions, audit
from fabula.people.audits.compare import read_records
from fabula.people.audits.form import write_form
from fabula.people.review.serve.running import Address, configured
from fabula.releases.diff.since import write_page
from fabula.releases.entities.tree import read_entity_set, statistics_of_set
from fabula.releases.entities.tree import write_page as entities_write_page
from fabula.releases.options import PackOptions
from fabula.schemas.entities import EntityEpisode
from fabula.studies.experiments.tables.page import write_page as study_write_page
from fabula.studies.memory.pipeline import PAGE as MEMORY_PAGE
from fabula.studies.memory.pipeline import write_wall
from fabula.studies.memory.shots.exports import render_strips
from fabula.studies.memory.shots.layout import cast_of, plain_layout
from fabula.studies.memory.shots.packets import Condition, known_entities, packet_of, scripted_shots
from fabula.testing.katha_folders import rehash, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.memory_banks import write_bank
from fabula.testing.report_documents import HOSTILE
from fabula.testing.review_visitor import HOLLOW, follow
from fabula.testing.simulated_evaluations import write_simulated
from fabula.testing.simulated_judgements import Truth
from fabula.testing.simulated_studies import Simulation, write_simulated_study
from fabula.testing.written_episodes import write_episodes, written_episode
from fabula.validators.entities.view import view_of
from fabula.viewing.editing import HOST, Editing, Server
from fabula.viewing.shelf import open_shelf
from fabula.viewing.site import Site

HIGHEST_RECORD = 3_000
"""Pixels that a record may be high where the window is 1,400 wide, as it is opened."""
REPLAYS = Path(__file__).parents[1] / "golden" / "replays"


@pytest.fixture(scope="module", params=["evaluate-katha", "entities-model", "katha-model"])
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("run")
    with tarfile.open(REPLAYS / f"{request.param}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    with open_shelf(folder / "run") as shelf, Server(0, Site(shelf)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://{HOST}:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("dark", [False, True])
def test_pages_when_walked_through_are_accessible_quiet_and_fit(chromium, address, axe_found, dark):
    context = chromium.new_context(
        viewport={"width": 400, "height": 800}, color_scheme="dark" if dark else "light"
    )
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("request", lambda request: complaints.append(request.url) if address not in request.url else None)
    page.goto(address)
    for step in ("first", "unit", "calls", "call"):
        assert page.evaluate(HOLLOW) == [], step
        assert axe_found(page) == [], step
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, step
        if step == "unit" and "/row/" in page.url:
            page.set_viewport_size({"width": 1400, "height": 800})
            assert page.evaluate("document.documentElement.scrollHeight") <= HIGHEST_RECORD
            page.set_viewport_size({"width": 400, "height": 800})
        if step == "first":
            follow(page, page.locator('tbody a:is([href^="/unit/"], [href^="/row/"])').first)
        elif step == "unit":
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            assert axe_found(page) == [], "unfolded"
            assert page.evaluate("document.documentElement.scrollWidth") <= 400, "unfolded"
            assert page.evaluate("[...document.images].every(image => image.complete && image.naturalWidth)")
            follow(page, page.get_by_role("link", name="calls of models"))
        elif step == "calls":
            follow(page, page.locator("tbody a").first)
    assert complaints == []
    context.close()


@pytest.mark.slow
def test_pages_when_opened_or_filtered_show_something_below_every_heading(chromium, address):
    page = chromium.new_page(viewport={"width": 1400, "height": 900})
    page.goto(address)
    links = page.locator("nav a").evaluate_all("all => all.map((link) => link.getAttribute('href'))")
    assert ("/progress" in links and {"/report", "/audit"} & {*links}) or "episodes" in "".join(links)
    for link in links:
        page.goto(f"{address}{link}")
        assert page.evaluate(HOLLOW) == [], link
    page.goto(address)
    filters = page.locator("form.filter select").evaluate_all("all => all.map((one) => one.name)")
    for name in filters:
        values = page.locator(f"select[name={name}] option").evaluate_all(
            "all => all.map((one) => one.value)"
        )
        for value in values[1:3]:  # of each filter, the two values that most rows have
            page.select_option(f"select[name={name}]", value)
            follow(page, page.get_by_role("button", name="show"))
            assert page.evaluate(HOLLOW) == [] and page.locator("tbody tr").count() > 0, (name, value)
            page.goto(address)
    page.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("faint", "rules"),
    [
        ('<p style="color: #aaa">faint</p>', ["color-contrast"]),
        ('<div style="background: #555"><b><p>hidden</p></b></div>', ["color-contrast"]),
        ('<p><span style="opacity: .3">pale</span></p>', ["color-contrast"]),
        ('<img src="data:,">', ["image-alt"]),
        ('<p style="display: none; color: #aaa">not to be seen</p>', []),
    ],
)
def test_axe_when_one_text_of_many_cannot_be_read_finds_it(opened, axe_found, tmp_path, faint, rules):
    body = "<p>A text like many.</p>" * 20 + faint
    (tmp_path / "page.html").write_text(
        f"<!doctype html><html lang=en><title>t</title><main><h1>t</h1>{body}</main></html>"
    )
    assert [rule for rule, _ in axe_found(opened(tmp_path / "page.html"))] == rules


# -- Editing: a field, with what the rules say of it, and one change to all records of a list


@pytest.fixture
def editing(tmp_path: Path) -> Iterator[str]:
    """Serve a run of one story to be edited; the link."""
    import uvicorn

    line = (resources.files("fabula.builders.katha") / "samples/stories.jsonl").read_bytes().splitlines()[0]
    (tmp_path / "stories.jsonl").write_bytes(line + b"\n")
    build_katha(tmp_path / "stories.jsonl", tmp_path / "run", BuildOptions(workers=0))
    with open_shelf(tmp_path / "run") as shelf, socket.create_server((HOST, 0)) as listener:
        made = Editing(Site(shelf), editable_of(tmp_path / "run"))
        server = uvicorn.Server(configured(made.application(), Address()))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        yield f"http://{HOST}:{listener.getsockname()[1]}/enter/{made.token}"
        server.should_exit = True
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True])
def test_field_when_edited_shows_findings_at_once_and_is_saved_as_a_line(
    chromium, editing, axe_found, tmp_path, dark
):
    context = chromium.new_context(
        viewport={"width": 400, "height": 800}, color_scheme="dark" if dark else "light"
    )
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(editing)
    follow(page, page.locator('tbody a[href^="/row/"]').first)
    assert axe_found(page) == []
    page.set_viewport_size({"width": 1400, "height": 800})
    assert page.evaluate("document.documentElement.scrollHeight") <= HIGHEST_RECORD
    page.set_viewport_size({"width": 400, "height": 800})
    page.locator("summary", has_text="scene 1").first.click()
    page.get_by_label("edit $.scenes[0].scene_text").click()
    dialog = page.locator("dialog[open]")
    dialog.locator("textarea").fill("Nobody tells this.")
    dialog.locator("li", has_text="error:").first.wait_for()
    dialog.get_by_role("button", name="close").click()
    page.get_by_label("edit $.title").click()
    dialog.locator("textarea").fill("A new title")
    dialog.locator("li", has_text="No rule finds anything.").wait_for()
    assert axe_found(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert not (tmp_path / "run" / "edits.jsonl").exists()
    dialog.locator("[name=who]").fill("ana")
    dialog.locator("[name=why]").fill("shorter")
    dialog.get_by_role("button", name="save").click()
    dialog.locator("li", has_text="Saved").wait_for()
    saved = json.loads((tmp_path / "run" / "edits.jsonl").read_text("utf-8"))
    assert (saved["path"], saved["new"], saved["who"]) == ("$.title", "A new title", "ana")
    dialog.get_by_role("button", name="close").click()
    follow(page, page.get_by_role("link", name="records", exact=True))
    page.locator("summary", has_text="Change all").click()
    form = page.locator("form.all")
    form.locator("[name=path]").fill("$.scenes[*].scene_text")
    form.locator("[name=find]").fill("the")
    form.locator("[name=new]").fill("THE")
    form.get_by_role("button", name="try").click()
    form.locator("li", has_text="Would change").wait_for()
    assert axe_found(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert complaints == []
    context.close()


# -- The page of an audit, with measures, people and cases of every group, in a browser

Inspected = Callable[[Path], Any]
HOSTILE_RECORD = "<script>alert(1)</script> \u202e" + "a" * 300


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit of drafts that differ everywhere, one of them hostile, with a form that somebody filled."""
    folder = tmp_path_factory.mktemp("audit")
    gold, draft = folder / "gold.jsonl", folder / "draft.jsonl"
    rows: list[Any] = sample_bundles(8)
    for row in rows:
        row["producers"] = [{"path": "$.questions[*]", "producer": "author:ana"}]
    gold.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for row in rows:
        record = row["record"]
        record["moral_label"], record["transitions"][0]["causality"] = None, HOSTILE_RECORD
        record["scenes"][0] |= {"action": HOSTILE_RECORD, "visual_must_show": [HOSTILE_RECORD]}
        record["questions"][0] |= {
            "gold_answer": HOSTILE_RECORD,
            "accepted_answers": [HOSTILE_RECORD],
        }
    draft.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    write_form(folder / "form.csv", read_records(draft), 3)
    audit(draft, gold, folder / "audit", AuditOptions(readings=(folder / "form.csv",)))
    return folder / "audit" / PAGE


def test_audit_page_when_inspected_is_as_every_page(inspected: Inspected, page_file: Path) -> None:
    page = inspected(page_file)
    assert page.title() == "Audit of drafts: draft.jsonl"
    assert page.locator("tbody tr").count() > 30 and page.locator(".change").count() > 30


# -- The page of a diff in a real browser: quiet, offline, on a phone, and accessible


@pytest.fixture(scope="module")
def diff_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("diff")
    bundles = copy.deepcopy(sample_bundles(7))
    sound = [text for text in HOSTILE if not any("\ud800" <= char <= "\udfff" for char in text)]
    for bundle, text in zip(bundles, ("x" * 900, *sound), strict=False):
        bundle["record"]["scenes"][1]["action"] = text
    for bundle in bundles:
        rehash(bundle)
    first, second = write_run(folder / "a", sample_bundles(6)), write_run(folder / "b", bundles)
    old = pack(first, folder / "old", PackOptions("0.1.0", allow_drafts=True)).folder
    new = pack(second, folder / "new", PackOptions("0.1.1", allow_drafts=True)).folder
    table = [["kind", "condition", "valid"], ["question", "text_image", "12"]]
    write_page(folder / "diff.html", diff(old, new), table)
    return folder / "diff.html"


def test_diff_page_when_inspected_is_as_every_page(inspected: Inspected, diff_page: Path) -> None:
    page = inspected(diff_page)
    assert page.title() == "fabula-story-benchmark: what changed from 0.1.0 to 0.1.1"
    assert page.locator(".change").count() > 3


# -- The pages of a leaderboard in a browser: nothing is loaded, nothing sticks out, rows can be filtered

Opened = Callable[..., Any]
ALL = {
    "authors": ("A. Author",), "model": "m", "model_version": "1", "model_date": "2026", "ran_by": "us",
    "prompt_rewriting": "none", "training_overlap": "none",
}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with a row that declares everything, one that does not, and one that holds nothing."""
    base = tmp_path_factory.mktemp("leaderboard")
    board = base / "board"
    for number, name in enumerate(("declared", "undeclared"), 1):
        (base / name).mkdir()
        made = write_simulated(base / name, 36, [(name, Truth())], seed=number)
        if number == 1:
            options = BoardOptions(
                like=made.run, release=made.release, resamples=100, published=("kathabench",)
            )
            init(board, options)
        given = ALL if name == "declared" else {}
        submit(made.run, board, SubmitOptions(name=name, date="2026-01-01", **given))
    (board / "submissions" / "empty").mkdir()
    build(board, base / "site")
    return base / "site"


@pytest.mark.parametrize("name", ["index.html", "methods/declared.html"])
def test_leaderboard_when_inspected_is_as_every_page(inspected, site, name):
    assert "storyboards (stories) 0.1.0" in inspected(site / name).title()


def test_leaderboard_when_filtered_shows_the_rows_that_declare_everything(opened: Opened, site: Path) -> None:
    page = opened(site / "index.html")
    page.set_viewport_size({"width": 1400, "height": 800})
    frame = page.locator(".scroll:has(> table.ranking)").first
    assert frame.evaluate("one => one.scrollWidth <= one.clientWidth")  # the whole table is to be seen
    rows = page.locator("table.ranking tbody tr")
    assert rows.count() == 2
    page.select_option("#declared", "all")
    assert [row.is_visible() for row in rows.all()].count(True) == 1
    assert page.get_by_text("declaration", exact=True).count() == 1
    page.get_by_role("link", name="declared", exact=True).first.click()
    assert page.locator("h1").inner_text() == "declared"


# -- The page of a study in a real browser: quiet, offline, on a phone, by day and night, and accessible


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    truth = Truth(errors=(0.1,))
    cells = {(plan, renderer): truth for plan in ("direct", "transition-aware") for renderer in ("a", "b")}
    failed = [("direct+a", "kb25k_0001", 42)]
    write_simulated_study(folder, Simulation(cells, 8, seeds=(42,)), failed=failed, pictures=True)
    return study_write_page(folder, Definitions(resamples=50))[0]


def test_study_page_when_inspected_is_as_every_page(inspected: Callable[[Path], Any], study: Path) -> None:
    page = inspected(study)
    assert page.title() == "release 0.1.0: Study simulated"
    assert page.evaluate("[...document.images].every(one => one.complete && one.naturalWidth > 0)")
    assert page.evaluate("document.images.length") > 0


def test_study_page_when_its_links_are_followed_has_every_section(opened: Opened, study: Path) -> None:
    page = opened(study)
    missing = page.evaluate(
        "[...document.querySelectorAll('nav a')].filter(one => !document.querySelector(one.hash)).length"
    )
    assert missing == 0


# -- A bank of entities, its layouts, and the report on videos in a browser: as every page


def test_bank_when_inspected_is_as_every_page(inspected: Inspected, tmp_path: Path) -> None:
    write_bank(write_episodes(tmp_path / "set"), tmp_path / "run")
    (tmp_path / "run" / "entities.jsonl").touch()
    write_wall(tmp_path / "run")
    page = inspected(tmp_path / "run" / MEMORY_PAGE)
    assert page.locator("article img").count() > 3


def test_layouts_when_inspected_are_as_every_page(inspected: Inspected, tmp_path: Path) -> None:
    document = written_episode()
    document["scenes"][0]["action_descriptions"][0] = document["scenes"][0]["video_prompts"][0] = HOSTILE[5]
    script = EntityEpisode.model_validate(document)
    known = known_entities(HOSTILE[0], script, None)
    packets = []
    for scripted in scripted_shots(view_of(HOSTILE[0], script)):
        layout = plain_layout(cast_of(scripted.shot, known.alone, None))
        none = [None] * len(layout.keyframes)
        packets.append((packet_of(scripted, known, layout, none, Condition()), tmp_path))
    (tmp_path / "page.html").write_text(render_strips(packets, ["12 questions"]), "utf-8")
    page = inspected(tmp_path / "page.html")
    assert page.locator("article.shot").count() == len(packets)


def test_report_on_videos_when_inspected_is_as_every_page(inspected: Inspected, tmp_path: Path) -> None:
    with tarfile.open(REPLAYS / "evaluate-events.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    page = inspected(write_report(events_report(tmp_path / "run"), tmp_path / "page.html").files["page"])
    assert page.locator("article:has(#examples-rate) .level").count() == 3


# -- The page of episodes in a real browser: quiet, offline, on a phone, accessible, and drawn


@pytest.fixture(scope="module")
def entities_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two episodes, one of which has hostile texts wherever there is a text."""
    folder = tmp_path_factory.mktemp("episodes")
    data = write_episodes(folder / "data")
    path = data / "scripts" / "ep_b.json"
    document = json.loads(path.read_bytes())
    sound = [text for text in HOSTILE if not any("\ud800" <= char <= "\udfff" for char in text)]
    document["story_overview"] = sound[0]
    document["entity_descriptions"]["Character 1"]["description"] = sound[1]
    document["entity_descriptions"]["Object 1"]["name"] = sound[2]
    document["entity_schedule"]["1:2"]["objects"] = [sound[2]]
    document["scenes"][0]["action_descriptions"] = [
        f"Ben and {sound[0]}",
        f"{sound[2]} {sound[3]} {sound[5]}",
    ]
    document["scenes"][0]["video_prompts"] = document["scenes"][0]["action_descriptions"]
    path.write_text(json.dumps(document), "utf-8")
    entity_set, _ = read_entity_set(data)
    entities_write_page(folder / "page.html", entity_set, statistics_of_set(entity_set))
    return folder / "page.html"


def unfolded(page: Any) -> Any:
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    return page


def test_episode_page_when_inspected_is_as_every_page(inspected, entities_page):
    page = inspected(entities_page)
    assert page.locator("details.episode").count() == 2
    assert page.title() == "Episodes: 2 in all"


def test_episode_page_when_it_is_narrow_breaks_no_word(opened: Opened, entities_page: Path) -> None:
    page = unfolded(opened(entities_page, width=400))
    widths = page.locator("#e1 tbody th, #e1 tbody td").evaluate_all("all => all.map(one => one.clientWidth)")
    assert min(widths) > 100


def test_episode_page_when_it_is_dark_is_light_on_dark(opened: Opened, entities_page: Path) -> None:
    page = opened(entities_page, dark=True)
    ground, ink = (
        sum(int(part) for part in page.evaluate(f"getComputedStyle(document.body).{name}")[4:-1].split(","))
        for name in ("backgroundColor", "color")
    )
    assert ground < 150 < 600 < ink


def test_episode_page_when_looked_at_has_plots_strips_and_tinted_mentions(opened, entities_page):
    page = unfolded(opened(entities_page, scripts=True))
    assert page.locator("svg.plot").count() == 4
    assert page.locator("#e1 svg.strip path.character").count() == 2
    assert page.locator("#e1 svg.strip path.scene").count() == 1
    assert page.locator("#e1 mark.object").first.text_content() == "the red cup"
    assert page.locator("#e1 tr.cut").count() == 2
    shots = page.locator("#e1 tr", has_text="the red cup").first.locator("td").nth(1).text_content()
    assert shots == "1, 5"
    assert page.locator("script, img").count() == 0
