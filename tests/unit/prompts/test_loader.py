import hashlib
from importlib.resources import files

import pytest

from fabula.prompts.loader import load_prompt, prompt_ids

INPUTS = {
    "index": 1,
    "total": 5,
    "title": "T",
    "text": "A <fox> & {{ braces }}",
    "characters": ["fox"],
    "objects": [],
    "action": None,
    "emotion": "fear",
}


def test_prompts_when_listed_all_load_with_their_own_id() -> None:
    assert "scene_image" in prompt_ids()
    for name in prompt_ids():
        card = load_prompt(name).card
        assert card.id == name and card.version >= 1 and card.purpose and card.source


def test_prompt_when_rendered_holds_the_text_unescaped_and_leaves_out_what_is_null() -> None:
    text = load_prompt("scene_image").render(**INPUTS)
    assert "<<<\nA <fox> & {{ braces }}\n>>>" in text
    assert "fox" in text and "fear" in text
    assert "None" not in text and "things" not in text and text == text.strip()


@pytest.mark.parametrize("change", [{"extra": 1}, {"text": ...}])
def test_prompt_when_inputs_do_not_fit_refuses(change) -> None:
    inputs = {key: value for key, value in {**INPUTS, **change}.items() if value is not ...}
    with pytest.raises(ValueError, match="takes exactly the inputs"):
        load_prompt("scene_image").render(**inputs)


def test_prompt_when_hashed_covers_the_whole_file() -> None:
    data = (files("fabula.prompts") / "scene_image.j2").read_bytes()
    assert load_prompt("scene_image").sha256 == hashlib.sha256(data).hexdigest()


def test_prompt_when_unknown_names_those_that_exist() -> None:
    with pytest.raises(KeyError, match="scene_image"):
        load_prompt("nothing")
