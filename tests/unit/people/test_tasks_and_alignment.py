"""StoryEval's sample for people, and how the verifier's ranking of models follows theirs."""

import csv
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import kendalltau, spearmanr

from fabula.errors import ConfigError, InputError, TargetError
from fabula.people.events import ALL, alignment, human_rates
from fabula.people.review.items import Drawn, Part
from fabula.people.tasks import VideoTask, draw_methods, numbered_tasks, read_key, write_tasks
from fabula.schemas.judgement import HumanRow

MODELS = [f"model_{number:02d}" for number in range(11)]
VIDEOS = [f"prompt_{number:03d}.mp4" for number in range(450)]


def drawn(pairs: Iterable[tuple[str, str]], outputs: Path = Path("made")) -> list[Drawn]:
    parts = {"events_in_order": (Part(id="1", text="One event"), Part(id="2", text="Another, too"))}
    return [
        Drawn(video, video, {}, ((outputs / model / video,),), parts, methods=(model,))
        for video, model in pairs
    ]


def sample(seed: int = 42, turn: int = 1) -> tuple[VideoTask, ...]:
    there = dict.fromkeys(VIDEOS[::turn], MODELS[::turn])
    return numbered_tasks(drawn(draw_methods(there, 2, random.Random(seed))), seed)


def test_sample_when_drawn_has_two_different_models_of_every_prompt() -> None:
    tasks = sample()
    by_video: dict[str, set[str]] = {}
    for task in tasks:
        by_video.setdefault(task.video, set()).add(task.method)
    assert len(tasks) == 900
    assert all(len(methods) == 2 for methods in by_video.values())
    assert len(by_video) == 450
    per_model = Counter(task.method for task in tasks)
    assert all(60 < count < 105 for count in per_model.values())  # the paper has about 80 for each of eleven


def test_sample_when_drawn_is_shuffled_and_hangs_on_the_seed_alone() -> None:
    tasks = sample()
    assert tasks == sample(turn=-1)
    assert tasks != sample(seed=7)
    assert [task.video for task in tasks] != sorted(task.video for task in tasks)
    assert [task.task for task in tasks[:2]] == ["task_0001", "task_0002"]


def test_sample_when_a_method_has_several_videos_of_a_prompt_is_refused() -> None:
    twice = [replace(item, seed=seed) for item in drawn([("a.mp4", "x")]) for seed in (1, 2)]
    with pytest.raises(ConfigError, match="the key names one"):
        numbered_tasks(twice)


def test_tasks_when_written_tell_participants_nothing_of_models(tmp_path: Path) -> None:
    videos, models = ["a_b.mp4", "c_d.mp4"], ["kling", "pika", "sora"]
    outputs = {model: tmp_path / "made" / model for model in models}
    for folder in outputs.values():
        folder.mkdir(parents=True)
        for video in videos:
            (folder / video).write_bytes(f"{folder.name} {video}".encode())
    pairs = [(video, model) for video in videos for model in models[1:]]
    tasks = numbered_tasks(drawn(pairs, tmp_path / "made"))
    given, key = tmp_path / "given", tmp_path / "kept" / "key.json"
    write_tasks(tasks, given, key)
    names = [path.relative_to(given).as_posix() for path in given.rglob("*") if path.is_file()]
    assert sorted(names) == ["tasks.csv", *(f"videos/task_000{number}.mp4" for number in range(1, 5))]
    text = (given / "tasks.csv").read_text("utf-8")
    assert not any(word in text for word in (*models, "a_b", "c_d"))
    rows = list(csv.DictReader(text.splitlines()))
    assert rows[1] == {"task": "task_0001", "event": "2", "statement": "Another, too"}
    assert read_key(key) == {task.task: (task.video, task.method) for task in tasks}
    for task in tasks:
        assert (given / "videos" / f"{task.task}.mp4").read_text() == f"{task.method} {task.video}"


def test_tasks_when_the_key_is_shown_or_the_folder_is_full_are_refused(tmp_path: Path) -> None:
    tasks = numbered_tasks(drawn([("a.mp4", "x"), ("a.mp4", "y")], tmp_path))
    with pytest.raises(TargetError, match="where participants can read it"):
        write_tasks(tasks, tmp_path / "given", tmp_path / "given" / "key.json")
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "old.txt").touch()
    with pytest.raises(TargetError, match=r"old\.txt"):
        write_tasks(tasks, tmp_path / "given", tmp_path / "key.json")
    for text in ("[]", "{", '{"a": 1}', '{"a": ["b"]}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(InputError, match="not the key of a study"):
            read_key(tmp_path / "bad.json")


def test_rates_when_several_people_judge_are_their_mean(line: Callable[..., HumanRow]) -> None:
    rows = [
        line("completion", "p", "a.mp4", method="x", completion=(1, 0)),
        line("completion", "q", "a.mp4", method="x", completion=(1, 1)),
        line("completion", "q", "a.mp4", method="x", completion=(0, 0), repeat=1),
    ]
    assert human_rates(rows) == {("x", "a.mp4"): 0.75}


def test_alignment_when_worked_by_hand_is_that() -> None:
    people = {("x", "a"): 0.2, ("y", "a"): 0.4, ("z", "a"): 0.6, ("z", "b"): 1.0}
    verifier = {("x", "a"): 0.1, ("y", "a"): 0.5, ("z", "a"): 0.3}
    found = alignment(people, verifier, {"a": ("human", "easy"), "b": ("animal",)})
    assert list(found) == ["human", "easy", ALL]
    # ranks 1, 2, 3 and 1, 3, 2: 1 - 6 * 2 / (3 * 8) = 0.5; (2 - 1) / 3
    assert found[ALL].spearman.value == pytest.approx(0.5)
    assert found[ALL].kendall.value == pytest.approx(1 / 3)
    assert found[ALL].difference == pytest.approx((0.1 + 0.1 + 0.3) / 3)
    assert found[ALL].models["z"] == (0.6, 0.3, 1)  # the video that the verifier did not answer is out


def test_alignment_when_compared_is_that_of_scipy() -> None:
    people = {(model, video): (number * 7 % 13 + place % 3) / 20 for number, model in enumerate(MODELS)
              for place, video in enumerate(VIDEOS[:6])}  # fmt: skip
    verifier = {video: (rate * 17 % 1) for video, rate in people.items()}
    found = alignment(people, verifier, {video: ("human",) for video in VIDEOS})["human"]
    rates = list(zip(*[entry[:2] for entry in found.models.values()], strict=True))
    assert found.spearman.value == pytest.approx(spearmanr(*rates).statistic)
    assert found.kendall.value == pytest.approx(kendalltau(*rates).statistic)


def test_alignment_when_two_models_share_a_class_is_undefined_with_a_reason() -> None:
    people = {("x", "a"): 0.2, ("y", "a"): 0.4}
    found = alignment(people, people, {})
    assert found[ALL].spearman.value is None
    assert found[ALL].spearman.reason
    assert alignment({}, {}, {})[ALL].difference is None
    assert json.dumps(found[ALL].spearman.as_json())
