"""The documents of a release: licence, card, front matter, flat tables, Croissant."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet
import pytest
import yaml

from fabula.errors import ConfigError
from fabula.kinds.verbs import pack, verify
from fabula.releases.katha.form import FORM
from fabula.releases.katha.selection import Composition, record_rows
from fabula.releases.options import PackOptions, licence
from fabula.releases.pack.packing import PackResult
from fabula.releases.parquet import ROW_GROUP, TableWriter, parse_front_matter
from fabula.releases.shots.imports import import_set
from fabula.schemas.katha import Question, Scene, Transition, Variant
from fabula.schemas.paths import RELEASE, SPLIT_FILES, files_in
from fabula.schemas.values import vocabulary
from fabula.testing.drawn_shots import draw_shot_set
from fabula.testing.katha_folders import read_rows
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.sample_history import command
from fabula.validators.katha.field_rules import record_hashes

USUAL = [table for table in FORM.tables if not table.optional]
"""The tables of a release without votes."""


@pytest.fixture
def metadata(packed):
    return json.loads((packed.folder / "croissant_metadata.json").read_bytes())


@pytest.fixture
def card(packed):
    return (packed.folder / "dataset_card.md").read_text("utf-8")


def parquet(folder):
    return [path for path in files_in(folder) if path.endswith(".parquet")]


# Licences


def test_a_licence_is_found_by_its_spdx_and_its_hub_id_and_a_near_miss_is_told_what_is_meant():
    for name in ("CC-BY-4.0", "cc-by-4.0", "Cc-By-4.0"):
        found = licence(name)
        assert (found.hub_id, found.spdx_id) == ("cc-by-4.0", "CC-BY-4.0")
        assert found.url == "https://creativecommons.org/licenses/by/4.0/"
    with pytest.raises(ConfigError, match="did you mean CC-BY"):
        licence("CC BY 4.0")


def test_the_licence_notice_relicenses_nothing_of_others(packed):
    notice = (packed.folder / "LICENSE").read_text("utf-8")
    assert "SPDX-License-Identifier: CC-BY-4.0\n" in notice
    assert "https://creativecommons.org/licenses/by/4.0/" in notice
    assert re.search(r"Third-party source texts.*not relicensed", notice, re.DOTALL)
    assert re.search(
        r"Images, videos and other model outputs.*not\s+part of this\s+release", notice, re.DOTALL
    )


# Card


def test_the_card_counts_what_is_public_only_counts_what_is_hidden_and_claims_no_review(card):
    for text in (
        "| stories | 23 |",
        "1 more story forms the hidden test split",
        "| public_test | `data/*/test.parquet` | 3 | 15 | 12 | 18 | 6 |",
        "**No person has reviewed these records.**",
        "`human_validation.jsonl`, `human_gold_1k.jsonl`, `strict_gold_400.jsonl`",
    ):
        assert text in card


def test_the_card_says_who_made_what(tmp_path, helpers):
    bundles = sample_bundles(3)
    makers = {
        "$.scenes[0].action": "hand:ann", "$.scenes[1].action": "hand:bob", "$.narrative_type": "author",
        "$.title": "edit:ann", "$.moral_label": "some-model-1",
    }  # fmt: skip
    bundles[0]["producers"] = [{"path": path, "producer": who} for path, who in makers.items()]
    run = helpers.write_run(tmp_path / "run", bundles)
    pack(run, tmp_path / "out", PackOptions("0.1.0", allow_drafts=True))
    card = (tmp_path / "out/dataset_card.md").read_text("utf-8")
    head = "| part | fields | author | by hand | edit | model | rules@1 |"
    assert f"{head}\n|---|---|---:|---:|---:|---:|---:|\n" in card
    rows = re.sub(" +", " ", card)
    assert "| scenes | action | | 1 | | | |\n" in rows  # two people, one story
    assert r"| record | questions\[\*\], scenes\[\*\], transitions\[\*\] | | | | | 2 |" "\n" in rows


def test_texts_of_others_cannot_break_the_card_or_its_front_matter(tmp_path, helpers):
    bundles = sample_bundles(3)
    record = bundles[0]["record"]
    record["provenance"]["source_dataset"] = "tales | of <b>\nnobody"
    record["language"] = "zh-Hans"
    bundles[0]["record"]["provenance"] |= record_hashes(record, bundles[0]["variants"])
    run = helpers.write_run(tmp_path / "run", bundles)
    about = {"title": 'A "fine": #title', "name": "x", "creators": ("A & B",), "url": "https://e.org/x"}
    pack(run, tmp_path / "out", PackOptions("1.2.3", **about, allow_drafts=True))
    card = (tmp_path / "out/dataset_card.md").read_text("utf-8")
    assert r"| tales \| of \<b\> nobody | 1 |" in card
    values = parse_front_matter(card)
    assert values["pretty_name"] == 'A "fine": #title'
    assert values["language"] == ["en", "zh"]


def test_stories_of_different_lengths_are_told_as_a_range():
    composition = Composition()
    for bundle, scenes in zip(sample_bundles(3), (5, 4, 6), strict=True):
        record = bundle["record"]
        record["scenes"] = (record["scenes"] * 2)[:scenes]
        composition.add_record(record)
    assert sorted(composition.scene_counts) == [4, 5, 6]


# Front matter


def test_the_front_matter_is_what_the_hub_reads(packed, card):
    values = parse_front_matter(card)
    assert values["license"] == "cc-by-4.0"
    assert values["language"] == ["en"]
    assert values["size_categories"] == ["n<1K"]
    assert [config["config_name"] for config in values["configs"]] == [table.name for table in USUAL]
    assert [config.get("default") for config in values["configs"]] == [True, None, None, None, None]
    assert values["configs"][1]["data_files"][2] == {"split": "test", "path": "data/scenes/test.parquet"}


# Flat tables


def test_the_columns_are_the_fields_of_the_record_types():
    names = {table.name: [column.name for column in table.columns] for table in FORM.tables}
    assert names["scenes"] == [name for name in Scene.model_fields if name != "generation_prompt_long"]
    assert names["transitions"] == list(Transition.model_fields)
    assert names["questions"] == list(Question.model_fields)
    assert names["variants"] == [name for name in Variant.model_fields if name != "questions"]
    assert names["variant_questions"] == list(Question.model_fields)
    assert names["stories"][:3] == ["story_id", "title", "language"]
    assert {"split", "source_dataset", "resolution", "contrastive_variant_ids"} < set(names["stories"])
    assert not {"scenes", "transitions", "questions", "provenance"} & set(names["stories"])


def test_row_groups_have_a_fixed_size_and_null_and_empty_stay_apart(tmp_path):
    import pyarrow.parquet as pq

    record = sample_bundles(1)[0]["record"]
    record["questions"][0] |= {"target_scene": None, "target_transition": None, "accepted_answers": []}
    with TableWriter(tmp_path) as writer:
        for _ in range(700):
            for table, row in record_rows(record):
                writer.add(table, SPLIT_FILES[record["split"]], row)
    path = tmp_path / "data/questions/train.parquet"
    file = pq.ParquetFile(path)
    sizes = [file.metadata.row_group(index).num_rows for index in range(file.metadata.num_row_groups)]
    file.close()
    assert sizes == [ROW_GROUP, ROW_GROUP, 200]  # 4,200 questions
    first = next(read_rows(path))
    assert (first["target_scene"], first["target_transition"], first["accepted_answers"]) == (None, None, [])
    assert writer.counts == {
        "data/stories/train.parquet": 700,
        "data/scenes/train.parquet": 3500,
        "data/transitions/train.parquet": 2800,
        "data/questions/train.parquet": 4200,
    }


def test_a_table_without_rows_has_no_file_and_no_configuration(tmp_path):
    with TableWriter(tmp_path) as writer:
        for bundle in sample_bundles(3):
            record = {**bundle["record"], "questions": []}
            for table, row in record_rows(record):
                writer.add(table, SPLIT_FILES[record["split"]], row)
    assert {path.split("/")[1] for path in writer.counts} == {"stories", "scenes", "transitions"}


# Croissant


def test_the_croissant_metadata_describes_every_data_file(packed, metadata):
    described = {node["contentUrl"] for node in metadata["distribution"] if node["@type"] == "cr:FileObject"}
    assert set(parquet(packed.folder)) < described
    assert {"annotations.jsonl", "contrastive_variants.jsonl", "producers.jsonl"} < described
    formats = {node["encodingFormat"] for node in metadata["distribution"]}
    assert formats == {"application/jsonlines", "application/x-parquet", "application/json"}


def test_record_sets_have_keys_and_references(metadata):
    sets = {node["name"]: node for node in metadata["recordSet"]}
    assert list(sets) == [table.name for table in USUAL]
    assert [key["@id"] for key in sets["scenes"]["key"]] == ["scenes/story_id", "scenes/scene_index"]
    for name in ("scenes", "transitions", "questions"):
        field = next(field for field in sets[name]["field"] if field["name"] == "story_id")
        assert field["references"] == {"field": {"@id": "stories/story_id"}}
    base = next(field for field in sets["variants"]["field"] if field["name"] == "base_story_id")
    assert base["references"] == {"field": {"@id": "stories/story_id"}}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.reset_index")  # pandas 3, not in 2
def test_every_record_set_reads_back_with_mlcroissant(packed):
    import mlcroissant

    records = [json.loads(line) for line in (packed.folder / "annotations.jsonl").read_bytes().splitlines()]
    path = str(packed.folder / "croissant_metadata.json")
    sizes = {}
    for table in USUAL:
        dataset = mlcroissant.Dataset(path)  # a second read on one Dataset can give no rows
        rows = list(dataset.records(table.name))
        sizes[table.name] = len(rows)
        assert dataset.metadata.ctx.issues.warnings == set()
        if table.name == "questions":
            wanted = {one["question_id"]: one for record in records for one in record["questions"]}
            for row in rows:
                question = wanted.pop(row["questions/question_id"].decode())
                assert [one.decode() for one in row["questions/accepted_answers"]] == question[
                    "accepted_answers"
                ]
                assert row["questions/target_scene"] == question["target_scene"]
                assert row["questions/target_transition"] == question["target_transition"]
            assert wanted == {}
    assert sizes == {"stories": 23, "scenes": 115, "transitions": 92, "questions": 138, "variants": 46}


def test_every_configuration_and_split_loads_with_datasets(packed, tmp_path):
    import datasets

    datasets.disable_progress_bars()
    records = [json.loads(line) for line in (packed.folder / "annotations.jsonl").read_bytes().splitlines()]
    files = {"train": "train", "validation": "validation", "public_test": "test"}
    for table in ("scenes", "transitions", "questions"):
        loaded = datasets.load_dataset(str(packed.folder), table, cache_dir=str(tmp_path))
        assert set(loaded) == {"train", "validation", "test"}
        for split, name in files.items():
            wanted = [part for record in records if record["split"] == split for part in record[table]]
            assert loaded[name].to_list() == wanted
    default = datasets.load_dataset(str(packed.folder), cache_dir=str(tmp_path))
    assert default["test"].column_names[0] == "story_id"
    assert "source_text" in default["test"].column_names


# -- What front matter and card of a release say for the Hub: sizes, columns, and what the author knows

KNOWN = PackOptions(
    "0.1.0", repo="user/fables", arxiv=("2401.01234", "cs.CV/0101001v2"),
    annotations_creators=("expert-generated", "machine-generated"),
    source_datasets=("original", "extended|user/tales"), task_ids=("visual-question-answering",),
    allow_drafts=True,
)  # fmt: skip


def front(folder: Path) -> dict:
    return parse_front_matter((folder / "README.md").read_text("utf-8"))


def test_front_matter_when_packed_has_columns_and_sizes_of_every_table(packed: PackResult) -> None:
    import pyarrow.parquet as pq

    values = front(packed.folder)
    assert values["version"] == "0.1.0"
    assert [one["config_name"] for one in values["dataset_info"]] == [
        one["config_name"] for one in values["configs"]
    ]
    for info in values["dataset_info"]:
        paths = sorted((packed.folder / "data" / info["config_name"]).iterdir())
        assert info["download_size"] == sum(path.stat().st_size for path in paths)
        counts = {path.stem: pq.read_metadata(path).num_rows for path in paths}
        assert {split["name"]: split["num_examples"] for split in info["splits"]} == counts
        assert info["dataset_size"] == sum(split["num_bytes"] for split in info["splits"])
        names = [feature["name"] for feature in info["features"]]
        assert names == pq.read_schema(paths[0]).names
    scenes = next(info for info in values["dataset_info"] if info["config_name"] == "scenes")
    kinds = {one["name"]: one.get("dtype") or f"list of {one['sequence']}" for one in scenes["features"]}
    assert (kinds["scene_index"], kinds["characters"]) == ("int64", "list of string")


@pytest.mark.slow
def test_card_when_the_author_says_more_states_it_and_verifies(run: Path, tmp_path: Path) -> None:
    folder = pack(run, tmp_path / "fables", KNOWN).folder
    values, card = front(folder), (folder / "README.md").read_text("utf-8")
    assert values["annotations_creators"] == ["expert-generated", "machine-generated"]
    assert values["source_datasets"] == ["original", "extended|user/tales"]
    assert values["task_ids"] == ["visual-question-answering"]
    assert 'stories = load_dataset("user/fables", "stories", revision="0.1.0")' in card
    assert "- <https://arxiv.org/abs/2401.01234>\n- <https://arxiv.org/abs/cs.CV/0101001v2>\n" in card
    report = verify(folder, readers=False)
    assert report.ok and report.documents == "bytes", report.issues
    about = json.loads((folder / RELEASE).read_bytes())["about"]
    assert about["repo"] == "user/fables" and about["arxiv"] == ["2401.01234", "cs.CV/0101001v2"]

    options = PackOptions("0.1.1", since=folder, allow_drafts=True)
    again = command("release", "pack", run, "--version", options.version, "--since", folder,
                    "--out", tmp_path / "next", "--allow-drafts", "--json")  # fmt: skip
    assert json.loads(again)["version"] == "0.1.1"
    later = front(tmp_path / "next")
    assert {name: later[name] for name in ("source_datasets", "task_ids")} == {
        name: values[name] for name in ("source_datasets", "task_ids")
    }
    assert 'revision="0.1.1"' in (tmp_path / "next/README.md").read_text("utf-8")


def test_card_when_the_author_says_nothing_says_who_annotated_only_where_machines_did(packed, tmp_path):
    assert front(packed.folder)["annotations_creators"] == ["machine-generated"]
    assert not {"source_datasets", "task_ids"} & front(packed.folder).keys()
    assert "## Papers" not in (packed.folder / "README.md").read_text("utf-8")
    import_set(draw_shot_set(tmp_path / "data"), tmp_path / "run", "2026-01-01T00:00:00Z")
    given = pack(
        tmp_path / "run", tmp_path / "dist", PackOptions("0.1.0", license="MIT", allow_drafts=True)
    ).folder
    assert "annotations_creators" not in front(given)  # who made what was given, nobody knows


def test_options_when_they_have_a_wrong_form_say_what_to_give(refusals, snapshot):
    assert refusals(lambda change: replace(KNOWN, **change).checked(), [
        {"repo": "mine"}, {"repo": "user/a--b"}, {"repo": "user/mine.git"}, {"task_ids": ("VQA",)},
        {"arxiv": ("https://arxiv.org/abs/2401.01234",)}, {"annotations_creators": ("people",)},
        {"source_datasets": ("two words",)},
    ]) == snapshot  # fmt: skip


# The task that the Hub and inspect_ai read


def test_task_of_a_release_asks_for_the_moral_label_from_columns_and_a_split_that_are_there(packed):
    (task,) = yaml.safe_load((packed.folder / "eval.yaml").read_text("utf-8"))["tasks"]
    table = pyarrow.parquet.read_table(packed.folder / "data" / task["config"] / f"{task['split']}.parquet")
    asked, target, kept = (task["field_spec"][name] for name in ("input", "target", "metadata"))
    assert {asked, target, *kept} <= set(table.column_names)
    (template,) = (solver["args"]["template"] for solver in task["solvers"] if "args" in solver)
    lines = template.format(prompt="A fox.").splitlines()
    assert "A fox." in lines and set(vocabulary("moral_label").values) <= set(lines)
    assert {str(label) for label in table[target].to_pylist()} <= {*vocabulary("moral_label").values, "None"}


@pytest.mark.slow
def test_task_of_a_release_when_inspect_ai_reads_it_has_samples_solvers_and_a_scorer(packed):
    hub = pytest.importorskip("inspect_ai._eval.task.hf", reason="inspect_ai is not installed")
    loader = pytest.importorskip("inspect_ai._eval.loader")
    (stated,) = yaml.safe_load((packed.folder / "eval.yaml").read_text("utf-8"))["tasks"]
    task = hub.HFTask.model_validate(stated)
    rows = pyarrow.parquet.read_table(
        packed.folder / "data" / task.config / f"{task.split}.parquet"
    ).to_pylist()
    sample = hub._record_to_sample_hf(rows[0], task.field_spec)
    assert (sample.input, sample.target) == (rows[0]["story_text"], str(rows[0]["moral_label"]))
    for solver in task.solvers:
        loader.solver_from_spec(hub.SolverSpec(solver=solver.name, args=solver.args, args_passed=solver.args))
    for scorer in task.scorers:
        loader.scorer_from_spec(hub.ScorerSpec(scorer=scorer.name), task_path=None, **scorer.args)
