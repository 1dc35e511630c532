"""EntityBench's public evaluator, through stubs for its networks, against looking as ``code`` defines it."""

import sys
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

from fabula.engine.stage import Item, Made, Tools
from fabula.evaluation.entities import looking
from fabula.evaluation.entities.looking import GroundSettings, frames_of, ground_entities
from fabula.media.images import encode_image
from fabula.media.kept_files import keep_file
from fabula.models.vision.store import Box, Card, TextRows
from fabula.releases.entities.tree import read_entity_set
from fabula.studies.memory.references import references_of
from fabula.studies.memory.scripts import Classified, MemoryScript, classify_by_rules, script_of

from .conftest import evaluator

WIDTH, HEIGHT = 96, 64
CASES = 100
DESCRIPTIONS = {
    "Ana": "Woman of forty in a green apron with rolled sleeves, grey eyes, a scar and two rings.",
    "the cup": "Chipped red enamel cup.",
    "The Hall": "Long room. It has a floor of oak, nine windows and a ceiling that nobody painted.",
}
TYPES = {"Ana": "character", "the cup": "object", "The Hall": "location"}


def test_frames_when_the_public_code_takes_them_are_the_same(reference, tmp_path, monkeypatch):
    official, video = evaluator(reference), tmp_path / "video.mp4"
    video.touch()

    class Reader(list[int]):
        def close(self) -> None:
            pass

    reader = ModuleType("imageio.v2")
    package = ModuleType("imageio")
    package.v2 = reader  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "imageio", package)
    monkeypatch.setitem(sys.modules, "imageio.v2", reader)
    for frames in range(1, 400):
        reader.get_reader = lambda _, frames=frames: Reader(range(frames))  # type: ignore[attr-defined]
        if frames < 5:
            with pytest.raises(official.StrictModeError):
                official.extract_frames(str(video))
            with pytest.raises(ValueError, match="frames"):
                frames_of("code", frames)
            continue
        choice = frames_of("code", frames)
        assert list(choice.grid) == official.extract_frames(str(video))
        assert choice.ground == tuple(dict.fromkeys(choice.grid))


class Drawn:
    """A shot of five noisy frames; what networks say of it depends on pixels and texts alone."""

    def __init__(self, number: int) -> None:
        self.number = number
        chance = np.random.default_rng(number)
        coarse = chance.integers(0, 256, (5, 8, 12, 3), dtype=np.uint8)
        self.frames = [
            np.asarray(Image.fromarray(part).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC))
            for part in coarse
        ]

    def shares(self, frame: int, query: str) -> list[tuple[tuple[float, ...], float]]:
        """Boxes as shares of the frame, centre and size, with scores, as networks give them."""
        random = Random(f"{self.number}/{frame}/{query.lower()}")
        sized = [
            ((random.uniform(0, 1), random.uniform(0, 1), random.uniform(0.06, 1), random.uniform(0.06, 1)),
             random.uniform(0.26, 0.9))
            for _ in range(random.choice((0, 0, 1, 3)) if self.number % 4 else 0)
        ]  # fmt: skip
        return [(tuple(float(np.float32(value)) for value in box), score) for box, score in sized]

    def index_of(self, pixels: Any) -> int:
        return next(index for index, frame in enumerate(self.frames) if np.array_equal(frame, pixels))


def similarity(crop: Any, text: str) -> float:
    """A number that a crop and a text have together, -0.125 to 0.5, exact in float32."""
    return (
        float(Random(f"{np.asarray(crop).tobytes().hex()[:400]}{crop.shape}{text}").randrange(-128, 512))
        / 1024
    )


class Grounder:
    card = Card("drawn", "", "1", "", 0, 0, "")
    identity = "drawn"

    def __init__(self, drawn: Drawn) -> None:
        self.drawn, self.identity = drawn, f"drawn-{drawn.number}"

    def ground(self, images: Any, texts: Any, batch: int = 1) -> list[list[tuple[Box, ...]]]:
        return [
            [self.boxes(np.asarray(image), text) for text in some]
            for image, some in zip(images, texts, strict=True)
        ]

    def boxes(self, pixels: Any, text: str) -> tuple[Box, ...]:
        shares = self.drawn.shares(self.drawn.index_of(pixels), text)
        made = [
            Box(
                (x - w / 2) * WIDTH,
                (y - h / 2) * HEIGHT,
                (x + w / 2) * WIDTH,
                (y + h / 2) * HEIGHT,
                score,
                text,
            )
            for (x, y, w, h), score in shares
        ]
        return tuple(sorted((box.within(WIDTH, HEIGHT) for box in made), key=lambda box: -box.score))


class Texts:
    """An encoder whose product of a crop and a text is :func:`similarity`: a number for each description."""

    card = Card("drawn-texts", "", "1", "", 4, 0, "")
    identity = "drawn-texts"

    def encode(self, images: Any) -> Any:
        rows = [[similarity(np.asarray(image), text) for text in DESCRIPTIONS.values()] for image in images]
        return np.array(rows, dtype=np.float32)

    def encode_texts(self, texts: Any) -> TextRows:
        known = list(DESCRIPTIONS.values())
        return TextRows(np.eye(3, dtype=np.float32)[[known.index(text) for text in texts]], (0,) * len(texts))


def official_result(official: ModuleType, drawn: Drawn, folder: Path, patch: pytest.MonkeyPatch) -> Any:
    """What the public evaluator makes of a shot."""
    inference = ModuleType("groundingdino.util.inference")

    def predict(*, image: int, caption: str, box_threshold: float, **_: Any) -> Any:
        assert box_threshold == 0.25
        found = drawn.shares(image, caption)
        return [np.array(box) for box, _ in found], [score for _, score in found], []

    inference.predict = predict  # type: ignore[attr-defined]
    for name in ("groundingdino", "groundingdino.util"):
        patch.setitem(sys.modules, name, ModuleType(name))
    patch.setitem(sys.modules, "groundingdino.util.inference", inference)
    patch.setattr(official, "get_grounding_dino", lambda *_, **__: (None, "cpu"))
    patch.setattr(official, "_gdino_transform_frame", drawn.index_of)
    patch.setattr(official, "compute_clip_text_sim", lambda crop, text, _device: similarity(crop, text))
    patch.setattr(official, "compute_dino_embedding", lambda *_: None)
    registry = {
        f"{TYPES[name].title()} 1": {"name": name, "description": text} for name, text in DESCRIPTIONS.items()
    }
    scheduled = {"characters": ["Ana"], "places": ["The Hall"], "objects": ["the cup"]}
    return official.ground_shot_unified(
        "1:1", drawn.frames, scheduled, registry, str(folder), "cpu",
        {"box_threshold": 0.25, "text_threshold": 0.2}, 0.2,
    )["per_entity"]  # fmt: skip


def our_result(drawn: Drawn, folder: Path, patch: pytest.MonkeyPatch) -> Any:
    """What the stage makes of the same shot."""
    models = {"grounder": Grounder(drawn), "text encoder": Texts()}
    patch.setattr(looking, "opened", lambda _name, _settings, kind: models[kind])
    pictures = {}
    for index, frame in enumerate(drawn.frames):
        pictures[str(index)] = f"{drawn.number}_{index}.png"
        keep_file(encode_image(Image.fromarray(frame), format="png"), pictures[str(index)], folder)
    entities = [
        {"key": name, "name": name, "type": TYPES[name], "description": text}
        for name, text in DESCRIPTIONS.items()
    ]
    ground = list(range(5))
    frames = {"invalid": None, "pictures": pictures, "ground": ground, "grid": ground}
    item = Item("m/e/1", {"shot": {"entities": entities}, "frames": frames})
    settings = GroundSettings(detector="drawn", text="drawn", definition="code")
    tools = Tools(settings, "2026-01-01T00:00:00Z", store=folder)
    (made,) = ground_entities([item], tools)
    assert isinstance(made, Made)
    return made.fields["grounded"]["entities"]


@pytest.mark.slow
def test_grounding_when_the_public_code_does_it_gives_the_same_crop_score_and_status(reference, tmp_path):
    official, seen = evaluator(reference), set()
    for number in range(CASES):
        drawn = Drawn(number)
        with pytest.MonkeyPatch.context() as patch:
            theirs = official_result(official, drawn, tmp_path / str(number), patch)
            ours = our_result(drawn, tmp_path / "store", patch)
        for name, entity in ours.items():
            expected = theirs[name]
            seen.add(entity["status"])
            assert entity["status"] == expected["status"]
            boxes = sum(map(len, entity["boxes"].values()))
            assert boxes == len(expected["all_detections"])
            if entity["canonical"] is None:
                assert expected["canonical"] is None
                continue
            chosen, parts = entity["canonical"], expected["canonical_score_components"]
            assert chosen["frame"] == expected["canonical"].frame_idx
            assert tuple(int(edge) for edge in chosen["box"]) == expected["canonical"].bbox
            got = [chosen[key] for key in ("clip", "sharpness", "area", "selection")]
            want = [parts[key] for key in ("clip", "sharpness_norm", "area_norm", "selection")]
            assert got == pytest.approx(want, abs=1e-9)
            with (
                Image.open(expected["canonical_path"]) as one,
                Image.open(tmp_path / "store" / chosen["file"]) as other,
            ):
                assert np.array_equal(np.asarray(one), np.asarray(other))
    assert seen == {"present", "weak", "absent"}


# -- EntityMem's rules on the 140 published episodes: every scheduled entity is decided, and sanely


@cache
def read(folder: Path) -> tuple[tuple[MemoryScript, tuple[Classified, ...]], ...]:
    episodes, _ = read_entity_set(folder, rules=False)
    scripts = [script_of(episode.episode_id, episode.script) for episode in episodes.episodes]
    return tuple(
        (script, tuple(classify_by_rules(entity, script) for entity in script.of("object")))
        for script in scripts
    )


@pytest.fixture
def published(reference: Path) -> tuple[tuple[MemoryScript, tuple[Classified, ...]], ...]:
    return read(reference / "entitybench")


def test_entities_when_read_are_all_scheduled_ones_with_the_source_of_their_description(published):
    entities = [entity for script, _ in published for entity in script.entities]
    assert Counter(entity.type for entity in entities) == {"character": 992, "location": 652, "object": 1941}
    # A line with something between name and colon counts as introducing, too: of 3,585 entities 796 of the
    # registry have no line at all, and 53, in 57 slots, are in no registry.
    assert Counter(entity.described_by for entity in entities) == {
        "header": 2736,
        "registry": 796,
        "name": 53,
    }
    assert sum(len(entity.shots) for entity in entities) == 11437
    assert sum(len(entity.shots) for entity in entities if entity.described_by == "name") == 57
    assert all(entity.description for entity in entities)


def test_objects_when_classified_by_rules_each_have_an_owner_of_their_shots_or_stand_alone(published):
    counts: Counter[str] = Counter()
    for script, rows in published:
        by_key = {entity.key: entity for entity in script.entities}
        assert [row.name for row in rows] == [entity.name for entity in script.of("object")]
        for row in rows:
            counts["alone" if row.owner is None else row.owner.type] += 1
            counts["unknown"] += "no word of its name" in row.reason
            if row.owner is not None:
                owner = by_key[f"{row.owner.type}:{row.owner.name}"]
                assert set(owner.shots) & set(by_key[f"object:{row.name}"].shots)
    # The lists were completed with the nouns of these very names, so that few are unknown here; of other
    # episodes more will be.
    assert counts == {"character": 664, "location": 616, "alone": 661, "unknown": 20}


def test_objects_when_their_sort_is_plain_are_decided_as_the_paper_says(published):
    owners = {row.name: row.owner for _, rows in published for row in rows}
    worn = ("the blue denim jacket", "the white t-shirt", "the striped t-shirt", "the wire-frame glasses")
    assert all(owner is not None and owner.type == "character" for owner in map(owners.get, worn))
    fixed = ("the wooden church pew", "the small wooden table", "the conference table")
    assert all(owner is not None and owner.type == "location" for owner in map(owners.get, fixed))
    for name in ("the calico cat", "the black sedan", "the antique French letter", "the silver thermos"):
        assert name in owners and owners[name] is None


def test_references_when_listed_lose_no_entity_and_route_every_part(published):
    needs: Counter[str] = Counter()
    for script, rows in published:
        listed = list(references_of(script, rows, "plain", None, "generated"))
        assert [reference.key for reference in listed] == [entity.key for entity in script.entities]
        routed = sorted(part.name for reference in listed for part in reference.parts)
        assert routed == sorted(row.name for row in rows if row.owner is not None)
        needs.update(str(reference.needs) for reference in listed)
    assert needs == {"portrait": 992 + 661, "panorama": 652, "None": 664 + 616}
