"""The storyboard of layouts: what it shows, and that texts of episodes stay texts."""

from pathlib import Path

from fabula.generation.memory.shots.known import known_entities
from fabula.generation.memory.shots.layout import cast_of, plain_layout
from fabula.generation.memory.shots.packets import Condition, packet_of, scripted_shots
from fabula.generation.memory.shots.strips import render_strips
from fabula.schemas.entities import EntityEpisode
from fabula.testing.written_episodes import written_episode
from fabula.validators.entities.view import view_of


def test_strips_when_a_text_has_marks_of_pages_show_them_as_text() -> None:
    document = written_episode()
    hostile = "</p><script>alert(1)</script> Ana enters from the left. \u202e"
    document["scenes"][0]["action_descriptions"][0] = document["scenes"][0]["video_prompts"][0] = hostile
    document["entity_schedule"]["1:1"]["objects"] = ['<img src=x onerror="x">']
    script = EntityEpisode.model_validate(document)
    known = known_entities("ep<b>", script, None)
    scripted = next(iter(scripted_shots(view_of("ep<b>", script))))
    layout = plain_layout(cast_of(scripted.shot, known.alone, None))
    packet = packet_of(scripted, known, layout, [None] * len(layout.keyframes), Condition())
    page = render_strips([(packet, Path("nowhere"))], [])
    assert "<script" not in page and "<img" not in page and "ep<b>" not in page
    assert "&lt;script&gt;" in page and "<bdi" in page
    assert "Nobody says what they look like" in page
    assert "No model was asked; the layouts cost nothing." in page
    assert 'class="plan"' in page and 'aria-label="Ana centre; The Kitchen from the front"' in page
