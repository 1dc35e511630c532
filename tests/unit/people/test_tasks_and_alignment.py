"""StoryEval's sample for people, and how the verifier's ranking of models follows theirs."""

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy.stats import kendalltau, spearmanr

from fabula.errors import ConfigError, InputError, TargetError
from fabula.people.events import ALL, alignment, human_rates
from fabula.people.tasks import read_key, sample_tasks, write_tasks
from fabula.schemas.judgement import HumanRow

MODELS = [f"model_{number:02d}" for number in range(11)]
VIDEOS = [f"prompt_{number:03d}.mp4" for number in range(450)]


def test_sample_when_drawn_has_two_different_models_of_every_prompt() -> None:
    tasks = sample_tasks(VIDEOS, MODELS)
    by_video: dict[str, set[str]] = {}
    for task in tasks:
        by_video.setdefault(task.video, set()).add(task.method)
    assert len(tasks) == 900
    assert all(len(methods) == 2 for methods in by_video.values())
    assert len(by_video) == 450
    per_model = Counter(task.method for task in tasks)
    assert all(60 < count < 105 for count in per_model.values())  # the paper has about 80 for each of eleven


def test_sample_when_drawn_is_shuffled_and_hangs_on_the_seed_alone() -> None:
    tasks = sample_tasks(VIDEOS, MODELS)
    assert tasks == sample_tasks(VIDEOS[::-1], MODELS[::-1])
    assert tasks != sample_tasks(VIDEOS, MODELS, seed=7)
    assert [task.video for task in tasks] != sorted(task.video for task in tasks)
    assert [task.task for task in tasks[:2]] == ["task_0001", "task_0002"]


@pytest.mark.parametrize(("models", "count"), [(["a"], 2), ([], 1), (["a", "a", "b"], 2), (["a", "b"], 0)])
def test_sample_when_models_are_too_few_or_twice_is_refused(models: list[str], count: int) -> None:
    with pytest.raises(ConfigError):
        sample_tasks(VIDEOS, models, count)


def test_tasks_when_written_tell_participants_nothing_of_models(tmp_path: Path) -> None:
    videos, models = ["a_b.mp4", "c_d.mp4"], ["kling", "pika", "sora"]
    outputs = {model: tmp_path / "made" / model for model in models}
    for folder in outputs.values():
        folder.mkdir(parents=True)
        for video in videos:
            (folder / video).write_bytes(f"{folder.name} {video}".encode())
    tasks = sample_tasks(videos, models)
    given, key = tmp_path / "given", tmp_path / "kept" / "key.json"
    sources = {task: outputs[task.method] / task.video for task in tasks}
    write_tasks(tasks, given, key, {video: ["One event", "Another, too"] for video in videos}, sources)
    names = [path.relative_to(given).as_posix() for path in given.rglob("*") if path.is_file()]
    assert sorted(names) == ["tasks.csv", *(f"videos/task_000{number}.mp4" for number in range(1, 5))]
    text = (given / "tasks.csv").read_text("utf-8")
    assert not any(word in text for word in (*models, "a_b", "c_d"))
    rows = list(csv.DictReader(text.splitlines()))
    assert rows[1] == {"task": "task_0001", "event": "2", "statement": "Another, too"}
    assert read_key(key) == {task.task: (task.video, task.method) for task in tasks}
    for task in tasks:
        assert (given / "videos" / f"{task.task}.mp4").read_text() == f"{task.method} {task.video}"


def test_tasks_when_videos_are_missing_or_the_key_is_shown_are_refused(tmp_path: Path) -> None:
    tasks = sample_tasks(["a.mp4"], ["x", "y"])
    events = {"a.mp4": ["One"]}
    with pytest.raises(TargetError, match="where participants can read it"):
        write_tasks(tasks, tmp_path / "given", tmp_path / "given" / "key.json", events)
    with pytest.raises(InputError) as caught:
        nowhere = {task: tmp_path / task.video for task in tasks}
        write_tasks(tasks, tmp_path / "given", tmp_path / "key.json", events, nowhere)
    assert len(caught.value.problems) == 2
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "old.txt").touch()
    with pytest.raises(TargetError, match=r"old\.txt"):
        write_tasks(tasks, tmp_path / "given", tmp_path / "key.json", events)
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
