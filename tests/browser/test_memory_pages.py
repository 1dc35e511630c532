"""A bank of entities, its layouts, and the report on videos in a browser: as every page."""

import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fabula.evaluation.events.report import events_report
from fabula.evaluation.report.writing import write_report
from fabula.schemas.entities import EntityEpisode
from fabula.studies.memory.pipeline import PAGE, write_wall
from fabula.studies.memory.shots.layout import cast_of, plain_layout
from fabula.studies.memory.shots.packets import Condition, known_entities, packet_of, scripted_shots
from fabula.studies.memory.shots.strips import render_strips
from fabula.testing.memory_banks import write_bank
from fabula.testing.report_documents import HOSTILE
from fabula.testing.written_episodes import write_episodes, written_episode
from fabula.validators.entities.view import view_of

REPLAYS = Path(__file__).parents[1] / "golden" / "replays"

Inspected = Callable[[Path], Any]


def test_bank_when_inspected_is_as_every_page(inspected: Inspected, tmp_path: Path) -> None:
    write_bank(write_episodes(tmp_path / "set"), tmp_path / "run")
    (tmp_path / "run" / "entities.jsonl").touch()
    write_wall(tmp_path / "run")
    page = inspected(tmp_path / "run" / PAGE)
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
