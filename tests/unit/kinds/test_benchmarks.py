"""Benchmarks by name: what each value says is there, is consistent, and is what its page says."""

import json
import os
import re
import tarfile
from dataclasses import fields, replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import fabula
from fabula.errors import ConfigError, InputError, TargetError
from fabula.evaluation.entities.metrics.catalogue import METRICS
from fabula.evaluation.judging.settings import PRESETS, SERVED
from fabula.evaluation.metrics.metric import registered
from fabula.kinds.benchmarks import benchmark as module
from fabula.kinds.benchmarks.benchmark import OURS, Benchmark, benchmark_named, benchmarks, is_benchmark
from fabula.kinds.benchmarks.kathatrace_demo import import_demo
from fabula.kinds.benchmarks.page import page
from fabula.kinds.benchmarks.row import _is_of, published_table, rows_of
from fabula.kinds.registry import judging_named
from fabula.prompts.fetching import official
from fabula.schemas.canonical import sha256_file
from fabula.schemas.values import vocabulary

PAGES = Path(fabula.__file__).parent / "docs" / "benchmarks"
MAY_BE_EMPTY = {
    "homepage", "options", "metrics", "prompts", "paper_prompts", "libraries", "forms", "printed", "drafts",
    "judges",
}  # fmt: skip
named = pytest.mark.parametrize("name", OURS)


@named
def test_benchmark_when_listed_says_everything_that_a_run_needs(name: str) -> None:
    value = benchmark_named(name)
    empty = {field.name for field in fields(Benchmark) if not getattr(value, field.name)}
    assert empty <= MAY_BE_EMPTY
    assert value.printed or name == "kathatrace-demo", "what a row is compared with"
    assert judging_named(value.noun).evaluating is not None
    assert bool(value.home.files) != bool(value.home.holds), "files are known, or which one must be there"
    if value.paper_prompts is not None:
        assert value.prompts is None and official(value.paper_prompts).passages
    if value.prompts is not None:
        source = official(value.prompts)
        assert value.protocol == f"{value.prompts}@{source.commit}"
        assert value.home.at == "hub" or (value.home.name, value.home.revision) == (
            source.repository, source.commit,
        )  # fmt: skip


@named
def test_columns_when_compared_are_those_of_the_printed_table_and_of_our_scores(name: str) -> None:
    value = benchmark_named(name)
    ours = {metric.name for _, metric in registered()} | {metric.name for metric in METRICS}
    ours |= {"text", "image", "gap", "moral_target", ""}
    for printed in value.printed:
        columns = {measure.name for measure in published_table(printed.key).measures}
        assert set(printed.columns) <= columns
        if value.noun != "events":  # whose columns are the classes of the suite
            assert {printed.columns.get(column, column) for column in columns} <= ours


@pytest.mark.parity
def test_files_when_hashed_are_the_published_ones(reference: Path) -> None:
    folders = {"storyeval": "storyeval", "entitybench": "entitybench", "kathatrace-demo": "kathatrace_demo"}
    for name, folder in folders.items():
        there = {path.name: path for path in (reference / folder).rglob("*") if path.is_file()}
        for path, (size, sha256) in benchmark_named(name).home.files.items():
            if path == "index.html":  # of the demo, whose copy has the stories of the page in a file of JSON
                continue
            file = there[Path(path).name]
            assert (file.stat().st_size, sha256_file(file)) == (size, sha256), path
    episodes = benchmark_named("entitybench")
    assert len(episodes.home.files) == 144
    seconds = [re.search(r"__T(\d+)\.json$", path) for path in episodes.home.files]
    assert sum(int(match[1]) for match in seconds if match) == episodes.size["seconds of the source"]


# -- The authors' demo of KathaTrace, in the forms in which there are copies of it

DEMO = {
    "id": "fox-and-well",
    "title": "The Fox",
    "source": "Aesop’s Fables",
    "story": "A fox fell. It got out.",
}
CAPTIONS = (
    ("The fox's well is dry", "emotional"),
    ("A fox falls in!", "causal"),
    ("It climbs out", "intentional"),
)


def write_demo(folder: Path, form: str, text: str = "A goat jumped.") -> Path:
    """A small demo: a story with a storyboard of three pictures, as JSON or on a page, and one without."""
    folder.mkdir()
    story = {"id": "demo-01", "source": "Panchatantra", "title": "A goat", "moral_label": "presence_of_mind"}
    (folder / "demo_stories.jsonl").write_text(json.dumps({**story, "story": text}) + "\n")
    if form == "json":
        names = [f"storyboards/fox-and-well/scene_{number:02d}.JPG" for number in (1, 2, 3)]
        scenes = [
            {"scene_id": 1, "caption": caption, "transition_dimension": word} for caption, word in CAPTIONS
        ]
        board = {**DEMO, "intended_meaning": "Foxes climb.", "images": names, "scenes": scenes}
        (folder / "storyboards.json").write_text(json.dumps([board]))
    else:
        names = [f"assets/Aesop’s Fables/The Fox/Scene{number}.png" for number in (1, 2, 3)]
        scenes = "".join(
            f"{{ scene_id: 1, caption: {json.dumps(caption)}, transition_dimension: '{word}' }},\n"
            for caption, word in CAPTIONS
        )
        fields = ", ".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in DEMO.items())
        (folder / "index.html").write_text(
            f'<script>\n  var curatedStories = [\n    {{ {fields}, folder: "Aesop’s Fables/The Fox",'
            f"\n meaning: 'Foxes climb.', scenes: [{scenes}] }}\n  ];\n var a = {{ id: 'none' }};</script>"
        )
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"picture %d" % number)
    return folder


@pytest.mark.parametrize(
    ("name", "replay", "judged"),
    [("storyeval", "evaluate-events", None), ("vistorybench", "evaluate-images", "judged")],
)
def test_rows_when_an_evaluation_departs_stand_before_the_printed_ones_with_how(
    tmp_path, monkeypatch, snapshot, name, replay, judged
):
    with tarfile.open(Path(__file__).parents[2] / f"golden/replays/{replay}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path)
    found = rows_of(benchmark_named(name), Path("run"), judged and Path(judged), resamples=50)
    lines = list(found.lines())
    printed = [line for line in lines if "  printed; " in line]
    assert len(printed) == sum(len(table.rows) for table in found.tables) - 2
    assert "\n".join(line for line in lines if line not in printed) == snapshot
    assert found.as_json()["differences"] == list(found.differences)
    with pytest.raises(ConfigError, match=f"EntityBench is judged as {benchmark_named('entitybench').noun}"):
        rows_of(benchmark_named("entitybench"), Path("run"))


@pytest.mark.parametrize("form", ["json", "page"])
def test_demo_when_imported_has_captions_as_scenes_and_keeps_words_that_are_not_ours(
    tmp_path, form, snapshot
):
    made = import_demo(write_demo(tmp_path / "demo", form), tmp_path / "out")
    fox, goat = (
        json.loads(line) for line in (tmp_path / "out/stories.jsonl").read_text("utf-8").splitlines()
    )
    assert (fox["source_collection"], goat["source_collection"]) == ("aesop", "panchatantra")
    assert "moral_label" not in fox and goat["moral_label"] == "wisdom"
    assert fox["source_reference"].endswith("moral: Foxes climb.; transitions: causal, intentional")
    (record,) = map(json.loads, (tmp_path / "out/records.jsonl").read_text("utf-8").splitlines())
    texts = ["The fox's well is dry.", "A fox falls in!", "It climbs out."]
    assert record["narrated"] is True and [scene["scene_text"] for scene in record["scenes"]] == texts
    pictures = sorted((tmp_path / "out/storyboards/fox-and-well").iterdir())
    assert [path.stem for path in pictures] == ["01", "02", "03"] and pictures[2].read_bytes() == b"picture 2"
    # A word of a scene is about the transition that leads to it: the first scene's is about none.
    kept = json.loads((tmp_path / "out/source_words.jsonl").read_text("utf-8").splitlines()[0])
    types = [(one["from_scene"], one["word"], one["question_type"]) for one in kept["transitions"]]
    assert types == [(1, "causal", "causal"), (2, "intentional", None)] and kept["first_scene"] == "emotional"
    told = "\n".join(made.lines())
    assert "Foxes climb.: the table does not have it" in told and "no parts of the stories' texts" in told
    written = [
        f"{path.name}: {path.read_text('utf-8')}" for path in sorted((tmp_path / "out").glob("*.json*"))
    ]
    assert "\n".join([*written, told]).replace(str(tmp_path), "HERE") == snapshot
    with pytest.raises(TargetError):
        import_demo(tmp_path / "demo", tmp_path / "out")


def test_demo_when_a_story_is_told_twice_keeps_the_one_with_a_storyboard(tmp_path):
    made = import_demo(write_demo(tmp_path / "demo", "json", DEMO["story"]), tmp_path / "out")
    assert made.left_out == {"demo-01": "fox-and-well"} and made.as_json()["stories"] == 1
    assert len((tmp_path / "out/source_words.jsonl").read_text("utf-8").splitlines()) == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda board: board["images"].pop(), "2 pictures of 3 scenes"),
        (lambda board: board["scenes"][0].pop("caption"), "fox-and-well: no 'caption'"),
        (lambda board: board["images"].__setitem__(1, "storyboards/gone.png"), "gone.png is not here"),
        (lambda board: board.__setitem__("id", "../up"), "or the id is none"),
        (lambda board: board["images"].__setitem__(1, "../up.png"), "up.png"),
    ],
)
def test_demo_when_a_storyboard_is_not_whole_is_refused_and_nothing_written(tmp_path, change, said):
    folder = write_demo(tmp_path / "demo", "json")
    boards = json.loads((folder / "storyboards.json").read_text("utf-8"))
    change(boards[0])
    (folder / "storyboards.json").write_text(json.dumps(boards))
    with pytest.raises(InputError, match=re.escape(said)):
        import_demo(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parity
def test_demo_when_read_has_only_words_that_the_table_knows(reference: Path, tmp_path: Path) -> None:
    told = import_demo(reference / "kathatrace_demo", tmp_path / "out").as_json()
    assert (told["stories"], told["storyboards"], told["pictures"]) == (15, 6, 30)
    assert told["left_out"] == {"demo-10": "monkey-and-wedge"}
    unknown = [
        word for words in told["words"].values() for word, row in words.items() if "table" in row["why"]
    ]
    assert unknown == []
    labels = {row["ours"] for row in told["words"]["moral"].values()} - {None}
    types = {row["ours"] for row in told["words"]["dimension"].values()} - {None}
    assert labels <= {*vocabulary("moral_label").values} and types <= {*vocabulary("question_type").values}


@pytest.mark.skipif(not PAGES.is_dir(), reason="the suite runs against an installed wheel, which has no docs")
@named
def test_page_when_made_anew_is_the_one_in_the_documentation(name: str) -> None:
    path, text = PAGES / f"{name}.md", "\n".join(page(benchmark_named(name), whole=False)) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text("utf-8") == text, "UPDATE_GOLDEN=1 writes it anew"
    assert benchmark_named(name).untried[0].rstrip(".") in text


@pytest.mark.parametrize(
    ("key", "judges", "belongs"),
    [
        ("storyeval-gpt4o", ["openai:gpt-4o"], True),
        ("storyeval-gpt4o", ["published:gpt4o"], True),
        ("storyeval-gpt4o", ["openai:gpt-4o-2024-08-06"], True),
        ("storyeval-gpt4o", ["openai:gpt-4o-mini"], False),
        ("storyeval-llava", ["published:llava"], True),
        ("vistorybench-lite", ["openai:gpt-4.1-mini"], False),
        ("entitybench", ["google:gemini-2.5-pro"], True),
        ("entitybench", ["google:gemini-2.5-flash"], False),
        ("kathabench", ["google:gemini-2.5-flash"], False),  # one of five
        ("kathabench", [], False),
        ("kathabench", [SERVED[name] for name in PRESETS["kathatrace-main"]], True),
        ("storyeval-llava", [SERVED["llava-onevision-72b"]], True),
        ("vistorybench-qwen-full", [f"{SERVED['qwen3-vl-8b']}@{'0' * 40}"], True),
    ],
)
def test_judges_when_they_are_not_those_of_the_paper_belong_to_no_printed_table(key, judges, belongs):
    printed, *_ = (one for value in benchmarks().values() for one in value.printed if one.key == key)
    assert _is_of(printed, judges) is belongs


class Entry(EntryPoint):
    """An entry point of a package that is not installed."""

    def load(self) -> object:
        return replace(benchmark_named("storyeval"), name=self.value.rpartition(":")[2])


def test_benchmark_when_a_package_adds_one_is_known_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(value: str) -> None:
        monkeypatch.setattr(module, "plugins", lambda group: (Entry("mine", value, group),))
        benchmarks.cache_clear()

    try:
        known = benchmark_named("storyeval")
        monkeypatch.setattr(Entry, "load", lambda self: replace(known, name=self.value.rpartition(":")[2]))
        installed("package:comics")
        assert list(benchmarks()) == [*OURS, "comics"]
        assert is_benchmark("comics") and not is_benchmark("manga")
        installed("package:storyeval")
        with pytest.raises(ConfigError, match="a Benchmark with a name of its own"):
            benchmarks()
    finally:
        monkeypatch.undo()
        benchmarks.cache_clear()
