"""The stand-in that the model server answers with: every prompt, through every command that asks a model."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

import fabula
from fabula.prompts.loader import prompt_ids
from fabula.testing import stand_in
from fabula.testing.asked_prompts import prompt_of, prompts_that_are_asked
from fabula.testing.drawn import write_video
from fabula.testing.drawn_entities import SETTINGS as LOOKING_AT_EPISODES
from fabula.testing.drawn_entities import write_outputs
from fabula.testing.drawn_episode import write_episode
from fabula.testing.drawn_shots import draw_shot_outputs, draw_shot_set
from fabula.testing.drawn_storyboards import draw_outputs, drawn_release, judged_release
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.model_server import Asked, ModelServer
from fabula.testing.page_shell import free_ports
from fabula.testing.table_detector import SETTINGS
from fabula.testing.written_episodes import SECOND, write_episodes, written_episode

pytestmark = pytest.mark.slow

README = Path(fabula.__file__).parent / "README.md"
SAMPLES = Path(fabula.__file__).parent / "builders" / "katha" / "samples"
Fabula = Callable[..., subprocess.CompletedProcess[str]]
Flow = Callable[[Callable[..., None], Path, str], None]


def ids(folder: str, *names: str) -> set[str]:
    """Return the ids of prompts of a folder, all of them unless some are named."""
    return {f"{folder}/{name}" for name in names} or {
        name for name in prompt_ids() if name.startswith(f"{folder}/")
    }


def settings(*texts: str) -> list[str]:
    return [part for text in texts for part in ("--set", text)]


def build_katha(run: Callable[..., None], folder: Path, model: str) -> None:
    drafted, given = (
        json.loads(line) for line in (SAMPLES / "stories.jsonl").read_text("utf-8").splitlines()[:2]
    )
    lines = " ".join(given["text"].split()).split(". ")
    scenes = [{"scene_text": ". ".join(lines[:4]) + "."}, {"scene_text": ". ".join(lines[4:])}]
    stories = ({**drafted, "moral_label": None, "narrative_type": None}, given)
    (folder / "stories.jsonl").write_text("".join(json.dumps(story) + "\n" for story in stories))
    (folder / "hand.jsonl").write_text(
        json.dumps({"story_id": given["id"], "author": "ana", "scenes": scenes}) + "\n"
    )
    files = (folder / "stories.jsonl", "--records", folder / "hand.jsonl")
    run("build", "katha", *files, "--set", "draft_scenes.scenes=2", "--model", model)
    own = ("--set", "normalise_story.planner=rules", "--set", "verify_record.guesses=1")
    said = {"story_id": drafted["id"], "question_id": f"{drafted['id']}_q01", "who": "ana"}
    (folder / "answers.jsonl").write_text(json.dumps({**said, "answer": "quite in other words"}) + "\n")
    own += ("--answers", folder / "answers.jsonl")
    run("build", "katha", folder / "stories.jsonl", "--limit", 1, *own, "--model", model, out="own")


def import_book(run: Callable[..., None], folder: Path, model: str) -> None:
    stories = [
        json.loads(line)["text"] for line in (SAMPLES / "stories.jsonl").read_text("utf-8").splitlines()
    ]
    (folder / "book.txt").write_text("\n\n* * *\n\n".join(stories[:2]))
    rights = ("--rights", "public_domain_or_rights_compatible", "--rights-reason", "our own words")
    run("import", "book", folder / "book.txt", "--collection", "aesop", *rights, "--model", model)


def build_shots(run: Callable[..., None], folder: Path, model: str) -> None:
    run("build", "shots", SAMPLES / "stories.jsonl", "--limit", 1, "--shots", 4, "--model", model)


def build_shots_with_one_prompt(run: Callable[..., None], folder: Path, model: str) -> None:
    run(
        "build",
        "shots",
        SAMPLES / "stories.jsonl",
        "--limit",
        1,
        "--shots",
        4,
        "--one-prompt",
        "--model",
        model,
    )


def build_shots_as_narration(run: Callable[..., None], folder: Path, model: str) -> None:
    run(
        "build",
        "shots",
        SAMPLES / "stories.jsonl",
        "--limit",
        1,
        "--shots",
        4,
        "--narration",
        "--model",
        model,
    )


def build_events(run: Callable[..., None], folder: Path, model: str) -> None:
    write_video(folder / "real.mp4", 20)
    rows = [{"prompt": "A dog runs, and then sleeps."}, {"video": "real.mp4"}]
    (folder / "seeds.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run("build", "events", folder / "seeds.jsonl", "--generate", 2, "--model", model)


def build_entities(run: Callable[..., None], folder: Path, model: str) -> None:
    video, detections = write_episode(folder, ["AB1", "A2", "B1", "AC2", "B1", "C2", "A3", "AB1", "C3", "A1"])
    sets = settings(
        "detect_shots.method=histogram",
        "filter_shots.copies=false",
        f"judge_style.model={model}",
        "list_entities.characters=true",
    )
    run("build", "entities", video, "--detections", detections, *sets,
        "--model", model)  # fmt: skip


def evaluate_katha(run: Callable[..., None], folder: Path, model: str, prompts: str = "main") -> None:
    release = drawn_release(folder / "release")
    boards = draw_outputs(folder / "drawn", release.records)
    run("evaluate", "katha", "--release", release.path, "--outputs", boards, "--limit", 1,
        "--prompts", prompts, "--judge", model, "--matcher", model,
        "--matcher", f"embedding:{model}")  # fmt: skip


def evaluate_katha_heldout(run: Callable[..., None], folder: Path, model: str) -> None:
    evaluate_katha(run, folder, model, "heldout")


def evaluate_katha_in_three_stances(run: Callable[..., None], folder: Path, model: str) -> None:
    release = drawn_release(folder / "release")
    boards = draw_outputs(folder / "drawn", release.records)
    for stance in STANCES:
        run("evaluate", "katha", "--release", release.path, "--outputs", boards, "--limit", 1,
            "--prompts", stance, "--judge", model, *settings(*IMAGES_ALONE), out=stance)  # fmt: skip


def evaluate_events(run: Callable[..., None], folder: Path, model: str, reply: str = "mark") -> None:
    (folder / "seeds.jsonl").write_text(json.dumps({"prompt": "A dog runs, and then sleeps."}))
    run("build", "events", folder / "seeds.jsonl", out="suite")
    (folder / "videos").mkdir()
    for name in json.loads((folder / "suite" / "all_prompts.json").read_text()):
        write_video(folder / "videos" / name, 8)
    run("evaluate", "events", "--suite", folder / "suite", "--outputs", folder / "videos", "--judge", model,
        "--set", f"judge_events.reply={reply}")  # fmt: skip


def evaluate_events_structured(run: Callable[..., None], folder: Path, model: str) -> None:
    evaluate_events(run, folder, model, "structured")


def evaluate_images(run: Callable[..., None], folder: Path, model: str) -> None:
    draw_shot_set(folder / "data", 1)
    draw_shot_outputs(folder / "model-x", 1)
    run("evaluate", "images", "--release", folder / "data", "--outputs", folder / "model-x",
        "--device", "cpu", "--metrics", "alignment", "--judge", model, *settings(*SETTINGS))  # fmt: skip


def evaluate_episodes(run: Callable[..., None], folder: Path, model: str, locations: str = "paper") -> None:
    write_episodes(folder / "set")
    write_outputs(folder / "model-x", [written_episode(), written_episode("ep_b", SECOND)], frames=6)
    run("evaluate", "episodes", "--release", folder / "set", "--outputs", folder / "model-x",
        "--device", "cpu", "--pillars", "2,3", "--locations", locations, "--judge", model,
        *settings(*LOOKING_AT_EPISODES))  # fmt: skip


def evaluate_episodes_as_public_code(run: Callable[..., None], folder: Path, model: str) -> None:
    evaluate_episodes(run, folder, model, "code")


def run_experiment(run: Callable[..., None], folder: Path, model: str) -> None:
    bundles = sample_bundles(1)
    bundles[0]["record"]["split"] = "public_test"
    judged_release(folder / "release", bundles)
    (folder / "study.toml").write_text(
        '[study]\nname = "tried"\nrelease = "release"\nplans = ["caption"]\nseeds = [42]\n'
        f'judges = ["{model}"]\nquestion_writer = "{model}"\n'
        'evaluators = ["generic-story", "tifa", "dsg"]\n'
        '[renderers.drawn]\nmodel = "image:drawn:faithful"\nwidth = 256\nheight = 256\n'
        f'rewrite = "{model}"\n'
    )
    run("experiment", "run", folder / "study.toml")


def build_memory(run: Callable[..., None], folder: Path, model: str) -> None:
    write_episodes(folder / "set", [written_episode()])
    run("memory", "build", folder / "set", "--image", "image:drawn:faithful", "--agent", model, out="bank")
    run("memory", "packets", folder / "bank", "--model", model)


OF_CROPS = (
    "judge_character", "judge_object", "judge_location", "judge_action", "compare_characters",
    "compare_objects",
)  # fmt: skip
WORDING = (
    "contrast_image", "label_image", "label_text", "label_text_image", "question_image", "question_text",
    "question_text_image",
)  # fmt: skip
IMAGES_ALONE = tuple(f"judge_{name}.judges=[]" for name in ("text", "both", "contrasts"))
STANCES = ("neutral", "strict", "uncertain")
ASKED_WHEN_A_TEXT_NAMES_TOO_LITTLE = ids("entities", "repair_mentions")
ON_REQUEST = ids("shots", "plan_script", "narrate_plots")
FLOWS: dict[Flow, set[str]] = {
    build_katha: ids("katha"),
    import_book: ids("books"),
    build_shots: ids("shots") - ON_REQUEST,
    build_shots_with_one_prompt: ids(
        "shots", "plan_script", "classify_story", "translate_names", "translate_shots"
    ),
    build_shots_as_narration: ids("shots") - ids("shots", "plan_script"),
    build_events: ids("events", "write_prompt", "caption_video", "list_events"),
    build_entities: ids("entities") - ASKED_WHEN_A_TEXT_NAMES_TOO_LITTLE,
    evaluate_katha: ids("judge", *WORDING, "match_answer"),
    evaluate_katha_heldout: ids("judge/heldout", *WORDING) | ids("judge", "match_answer"),
    evaluate_katha_in_three_stances: {
        f"judge/{stance}/{name}" for stance in STANCES for name in ("question_image", "label_image")
    },
    evaluate_events: ids("events", "describe_video", "score_events"),
    evaluate_events_structured: ids("events", "describe_video", "score_events_structured"),
    evaluate_images: ids("images"),
    evaluate_episodes: ids("episodes", *OF_CROPS, "compare_locations"),
    evaluate_episodes_as_public_code: ids("episodes", *OF_CROPS, "compare_location_set"),
    run_experiment: ids("evaluators")
    | ids("generation", "rewrite_prompt")
    | ids("judge", *(name for name in WORDING)),
    build_memory: {name for name in prompts_that_are_asked() if name.startswith("memory/")},
}


def keep_requests(path: Path, asked: Iterable[Asked]) -> None:
    """Append the first request of each prompt to a file."""
    first = {prompt_of(each): each for each in reversed(list(asked)) if each.protocol == "openai"}
    with path.open("a", encoding="utf-8") as file:
        for prompt, each in first.items():
            parts = [part for message in each.messages for part in message.parts]
            said = "".join(part for part in parts if isinstance(part, str))
            line = {"prompt": prompt, "system": each.system, "user": said, "schema": each.schema,
                    "max_tokens": each.params.get("max_tokens"), "pictures": len(each.images)}  # fmt: skip
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.__name__)
def test_stand_in_when_a_command_asks_it_is_understood_at_once(fabula_command, tmp_path, monkeypatch, flow):
    monkeypatch.chdir(tmp_path)

    def run(*words: object, out: str = "run") -> None:
        done = fabula_command(*words, "--out", tmp_path / out, "--workers", 0)
        assert done.returncode == 0, done.stderr + done.stdout

    with ModelServer(stand_in.answer) as server:
        flow(run, tmp_path, f"{server.openai_url}#{stand_in.NAME}")
        log = server.log
    if kept := os.environ.get("FABULA_KEEP_REQUESTS"):  # for benchmarks/small_model.py
        keep_requests(Path(kept), [one.asked for one in log])
    prompts = {prompt_of(one.asked) for one in log if one.asked.protocol != "embeddings"}
    assert prompts == FLOWS[flow]
    assert {one.status for one in log} == {200}
    asked_to_mend = [one.asked.schema_name for one in log if len(one.asked.messages) > 1]
    assert asked_to_mend == [], "a reply that its reader takes needs no second one"


@pytest.mark.skipif(
    not README.exists(), reason="the suite runs against an installed wheel, which has no docs"
)
def test_readme_when_its_second_example_is_run_as_printed_needs_no_key(fabula_command, tmp_path, typed):
    page = README.read_text("utf-8")
    blocks = re.findall(r"```\w*\n(.*?)```", page, re.DOTALL)
    first, second = (block for block in blocks if block.startswith((". .venv", "python -m")))
    assert "fabula init ../mine" in first and "--model" in second
    port = str(next(free_ports()))
    assert fabula_command("init", tmp_path / "mine").returncode == 0
    toml = tmp_path / "mine" / "fabula.toml"
    toml.write_text(toml.read_text("utf-8").replace("8123", port))
    script = f"set -e\ntrap 'kill %1 2>/dev/null || true' EXIT\n{second.replace('8123', port)}\n"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path / "mine", env={**os.environ, "PATH": typed}, check=False,
        capture_output=True, text=True, encoding="utf-8", timeout=400,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"next: fabula models check http://127.0.0.1:{port}/v1#stand-in" in done.stdout
    assert "1 made, 0 rejected, 0 failed" in done.stdout
