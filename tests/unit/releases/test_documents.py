"""The documents of a release: licence, card, front matter, flat tables, Croissant."""

import copy
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from fabula.errors import ConfigError
from fabula.kinds.verbs import pack, verify
from fabula.releases.katha.composition import Composition, producer_kind, record_rows
from fabula.releases.katha.form import FORM
from fabula.releases.options import PackOptions, hub_licences, licence
from fabula.releases.pack.croissant import CONTEXT
from fabula.releases.pack.front_matter import check_front_matter, parse_front_matter, size_category
from fabula.releases.parquet import ROW_GROUP, TableWriter, arrow_schema
from fabula.releases.verify.croissant import RAI, check_croissant
from fabula.schemas.katha import Question, Scene, Transition, Variant
from fabula.schemas.layout import SPLIT_FILES, files_in
from fabula.testing.katha_folders import read_rows
from fabula.testing.katha_samples import sample_bundles
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


@pytest.mark.parametrize("name", ["CC-BY-4.0", "cc-by-4.0", "Cc-By-4.0"])
def test_a_licence_is_found_by_its_spdx_and_its_hub_id(name):
    found = licence(name)
    assert (found.hub_id, found.spdx_id) == ("cc-by-4.0", "CC-BY-4.0")
    assert found.url == "https://creativecommons.org/licenses/by/4.0/"


@pytest.mark.parametrize("name", ["CC-BY-5.0", "", "other", "unknown", "llama3", "cc", "mine"])
def test_a_licence_that_names_no_text_is_refused(name):
    with pytest.raises(ConfigError, match="the SPDX id of a licence that the Hub knows"):
        licence(name)


def test_a_near_miss_is_told_what_is_meant():
    with pytest.raises(ConfigError, match="did you mean CC-BY"):
        licence("CC BY 4.0")


def test_the_list_of_licences_is_well_formed():
    entries = hub_licences()
    assert len(entries) > 70
    spdx = [entry.spdx_id for entry in entries.values() if entry.spdx_id]
    assert len(spdx) == len(set(spdx))
    for entry in entries.values():
        assert (entry.spdx_id is None) == (entry.url is None)
        assert entry.url is None or entry.url.startswith("https://")


def test_the_licence_notice_relicenses_nothing_of_others(packed):
    notice = (packed.folder / "LICENSE").read_text("utf-8")
    assert "SPDX-License-Identifier: CC-BY-4.0\n" in notice
    assert "https://creativecommons.org/licenses/by/4.0/" in notice
    assert re.search(r"Third-party source texts.*not relicensed", notice, re.DOTALL)
    assert re.search(
        r"Images, videos and other model outputs.*not\s+part of this\s+release", notice, re.DOTALL
    )


# Card


def test_the_readme_is_the_card(packed, card):
    assert (packed.folder / "README.md").read_text("utf-8") == card


def test_the_card_has_every_section(card):
    found = re.findall(r"^## (.+)$", card, re.MULTILINE)
    assert found == [
        "Summary", "Contents", "Composition", "Provenance", "Intended use", "Out-of-scope use", "Limitations",
        "Ethics", "Rights", "Canary", "Maintenance", "Citation",
    ]  # fmt: skip


def test_the_card_counts_what_is_public_and_only_counts_what_is_hidden(card):
    assert "| stories | 23 |" in card
    assert "1 more story forms the hidden test split" in card
    assert "| public_test | `data/*/test.parquet` | 3 | 15 | 12 | 18 | 6 |" in card


def test_the_card_never_claims_a_review_that_did_not_happen(card):
    assert "**No person has reviewed these records.**" in card
    assert "`human_validation.jsonl`, `human_gold_1k.jsonl`, `strict_gold_400.jsonl`" in card


def test_the_card_says_who_made_what(tmp_path, helpers):
    bundles = sample_bundles(3)
    bundles[0]["producers"] = [
        {"path": "$.scenes[0].action", "producer": "hand:ann"},
        {"path": "$.scenes[1].action", "producer": "hand:bob"},
        {"path": "$.narrative_type", "producer": "author"},
        {"path": "$.title", "producer": "edit:ann"},
        {"path": "$.moral_label", "producer": "some-model-1"},
    ]
    run = helpers.write_run(tmp_path / "run", bundles)
    pack(run, tmp_path / "out", PackOptions("0.1.0", allow_drafts=True))
    card = (tmp_path / "out/dataset_card.md").read_text("utf-8")
    head = (
        "| part | fields | author | by hand | edit | model | rules@1 |\n|---|---|---:|---:|---:|---:|---:|\n"
    )
    assert head in card
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
    options = PackOptions(
        "1.2.3",
        title='A "fine": #title',
        name="x",
        creators=("A & B",),
        url="https://e.org/x",
        allow_drafts=True,
    )
    pack(run, tmp_path / "out", options)
    card = (tmp_path / "out/dataset_card.md").read_text("utf-8")
    assert r"| tales \| of \<b\> nobody | 1 |" in card
    values = parse_front_matter(card)
    assert values["pretty_name"] == 'A "fine": #title'
    assert values["language"] == ["en", "zh"]
    assert check_front_matter(card, 3, parquet(tmp_path / "out"), FORM) == []


@pytest.mark.parametrize("title", ["Fables ---", "---", "--- a", "a --- " * 30 + "---"])
def test_dashes_in_a_title_do_not_end_the_front_matter(run, tmp_path, title):
    pack(run, tmp_path / "out", PackOptions("1.0.0", title=title, allow_drafts=True))
    assert parse_front_matter((tmp_path / "out/README.md").read_text("utf-8"))["pretty_name"] == title
    assert verify(tmp_path / "out", quick=title != "Fables ---").ok


def test_stories_of_different_lengths_are_told_as_a_range():
    composition = Composition()
    for bundle, scenes in zip(sample_bundles(3), (5, 4, 6), strict=True):
        record = bundle["record"]
        record["scenes"] = (record["scenes"] * 2)[:scenes]
        composition.add_record(record)
    assert sorted(composition.scene_counts) == [4, 5, 6]


@pytest.mark.parametrize(
    ("producer", "kind"),
    [
        ("rules@1", "rules@1"),
        ("rules@12", "rules@12"),
        ("author", "author"),
        ("hand:ann", "by hand"),
        ("edit:ann", "edit"),
        ("edit:simulated-1, simulated-2", "simulated edit"),
        ("gpt-9", "model"),
        ("rules@x", "model"),
    ],
)
def test_producers_have_a_kind(producer, kind):
    assert producer_kind(producer) == kind


# Front matter


def test_the_front_matter_is_what_the_hub_reads(packed, card):
    values = parse_front_matter(card)
    assert values["license"] == "cc-by-4.0"
    assert values["language"] == ["en"]
    assert values["size_categories"] == ["n<1K"]
    assert [config["config_name"] for config in values["configs"]] == [table.name for table in USUAL]
    assert [config.get("default") for config in values["configs"]] == [True, None, None, None, None]
    assert values["configs"][1]["data_files"][2] == {"split": "test", "path": "data/scenes/test.parquet"}
    assert check_front_matter(card, 23, parquet(packed.folder), FORM) == []


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("$.license", lambda values: values.update(license="cc-by-9")),
        ("$.license", lambda values: values.pop("license")),
        ("$.language", lambda values: values.update(language=["English"])),
        ("$.language", lambda values: values.update(language="en")),
        ("$.size_categories", lambda values: values.update(size_categories=["1K<n<10K"])),
        ("$.task_categories", lambda values: values.update(task_categories=["storyboarding"])),
        ("$.pretty_name", lambda values: values.pop("pretty_name")),
        ("$.tags", lambda values: values.update(tags=[])),
        ("$.configs", lambda values: values.pop("configs")),
        ("$.configs", lambda values: values["configs"].pop()),
        ("$.configs", lambda values: values["configs"].append(values["configs"][0])),
        ("$.configs", lambda values: values["configs"].reverse()),
        ("$.configs", lambda values: values["configs"][0].pop("default")),
        ("$.configs", lambda values: values["configs"][1].update(default=True)),
        ("$.configs", lambda values: values["configs"][1]["data_files"].pop()),
        ("$.configs[1]", lambda values: values["configs"][1]["data_files"][0].update(split="train-1")),
        ("$.configs[1]", lambda values: values["configs"][1]["data_files"][0].update(path="data/*.parquet")),
    ],
)
def test_front_matter_that_the_hub_would_not_take_is_found(packed, card, path, change):
    values = parse_front_matter(card)
    change(values)
    damaged = f"---\n{yaml.safe_dump(values, sort_keys=False)}---\n# text\n"
    issues = check_front_matter(damaged, 23, parquet(packed.folder), FORM)
    assert path in {issue.path for issue in issues}
    assert {issue.code for issue in issues} == {"card-front-matter"}


@pytest.mark.parametrize(
    "card", ["", "# no front matter\n", "---\n- a list\n---\n", "---\na: [\n---\n", "---\nx: 1\n"]
)
def test_a_card_without_readable_front_matter_is_found(card):
    assert [issue.path for issue in check_front_matter(card, 1, [], FORM)] == ["$"]


@pytest.mark.parametrize(
    ("rows", "label"),
    [(1, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (10_000, "10K<n<100K"), (2_000_000, "1M<n<10M")],
)
def test_the_size_category_is_computed(rows, label):
    assert size_category(rows) == label


# Flat tables


def test_the_columns_are_the_fields_of_the_record_types():
    names = {table.name: [column.name for column in table.columns] for table in FORM.tables}
    assert names["scenes"] == [name for name in Scene.model_fields if name != "generation_prompt_long"]
    assert names["transitions"] == list(Transition.model_fields)
    assert names["questions"] == list(Question.model_fields)
    assert names["variants"] == list(Variant.model_fields)
    assert names["stories"][:3] == ["story_id", "title", "language"]
    assert {"split", "source_dataset", "resolution", "contrastive_variant_ids"} < set(names["stories"])
    assert not {"scenes", "transitions", "questions", "provenance"} & set(names["stories"])


def test_every_column_has_an_explicit_type_and_a_description():
    kinds = {column.name: column.kind for column in FORM.tables[3].columns}
    assert kinds["target_scene"] == "integer"
    assert kinds["target_transition"] == "integers"
    assert kinds["accepted_answers"] == "texts"
    assert [column.length for column in FORM.tables[3].columns if column.name == "target_transition"] == [2]
    for table in FORM.tables:
        schema = arrow_schema(table)
        assert schema.names == [column.name for column in table.columns]
        assert all(column.description for column in table.columns)
        assert set(table.key) <= set(schema.names)


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


def test_a_table_without_rows_has_no_file_and_no_configuration(tmp_path, helpers):
    bundles = sample_bundles(3)
    for bundle in bundles:
        bundle["record"]["questions"] = []
        bundle["variants"] = []
        bundle["record"]["provenance"]["contrastive_variant_ids"] = []
        bundle["record"]["provenance"] |= record_hashes(bundle["record"], [])
    with TableWriter(tmp_path) as writer:
        for bundle in bundles:
            for table, row in record_rows(bundle["record"]):
                writer.add(table, SPLIT_FILES[bundle["record"]["split"]], row)
    assert {path.split("/")[1] for path in writer.counts} == {"stories", "scenes", "transitions"}


# Croissant


def test_the_croissant_metadata_describes_every_data_file(packed, metadata):
    described = {node["contentUrl"] for node in metadata["distribution"] if node["@type"] == "cr:FileObject"}
    assert set(parquet(packed.folder)) < described
    assert {"annotations.jsonl", "contrastive_variants.jsonl", "producers.jsonl"} < described
    formats = {node["encodingFormat"] for node in metadata["distribution"]}
    assert formats == {"application/jsonlines", "application/x-parquet", "application/json"}
    assert list(check_croissant(packed.folder, metadata, FORM)) == []


def test_record_sets_have_keys_and_references(metadata):
    sets = {node["name"]: node for node in metadata["recordSet"]}
    assert list(sets) == [table.name for table in USUAL]
    assert [key["@id"] for key in sets["scenes"]["key"]] == ["scenes/story_id", "scenes/scene_index"]
    for name in ("scenes", "transitions", "questions"):
        field = next(field for field in sets[name]["field"] if field["name"] == "story_id")
        assert field["references"] == {"field": {"@id": "stories/story_id"}}
    base = next(field for field in sets["variants"]["field"] if field["name"] == "base_story_id")
    assert base["references"] == {"field": {"@id": "stories/story_id"}}


def test_responsible_ai_fields_have_the_vocabularys_own_names(metadata):
    found = {name for name in metadata if name.startswith("rai:")}
    assert found == RAI - {"rai:dataImputationProtocol"}  # nothing is imputed
    assert "rai:dataCollectionTimeframe" in found
    assert "rai:dataManipulationProtocol" in found
    assert all(metadata[name] for name in found)


def test_our_context_is_the_one_that_mlcroissant_calls_standard():
    from mlcroissant._src.core.context import Context
    from mlcroissant._src.core.rdf import make_context

    assert make_context(Context(conforms_to="http://mlcommons.org/croissant/1.1")) == CONTEXT


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("croissant-property", lambda found: found.pop("url")),
        ("croissant-property", lambda found: found.update(description=" ")),
        ("croissant-property", lambda found: found.update(creator=[])),
        ("croissant-property", lambda found: found.update(conformsTo="http://mlcommons.org/croissant/1.0")),
        ("croissant-property", lambda found: found["@context"].pop("rai")),
        ("croissant-rai", lambda found: found.update({"rai:dataCollectionTimeFrame": "2025"})),
        ("croissant-rai", lambda found: [found.pop(name) for name in list(found) if name.startswith("rai:")]),
        ("croissant-file", lambda found: found["distribution"].pop(0)),
        ("croissant-file", lambda found: found["distribution"][0].update(contentUrl="gone.jsonl")),
        ("croissant-file", lambda found: found["distribution"][0].update(contentUrl="../outside")),
        ("croissant-file", lambda found: found["distribution"][-1].update(includes="nothing/*.parquet")),
        ("croissant-hash", lambda found: found["distribution"][0].update(sha256="0" * 64)),
        ("croissant-hash", lambda found: found["distribution"][0].update(sha256="zz")),
        ("croissant-key", lambda found: found["recordSet"][0].update(key=[{"@id": "stories/nothing"}])),
        ("croissant-key", lambda found: found["recordSet"][0].pop("key")),
        ("croissant-field", lambda found: found["recordSet"][0]["field"].pop()),
        ("croissant-field", lambda found: found["recordSet"][0]["field"][0].pop("dataType")),
        ("croissant-source", lambda found: found["recordSet"][0]["field"][0].pop("source")),
        ("croissant-reference", lambda found: found["recordSet"].pop(0)),
        ("croissant-id", lambda found: found["distribution"].append(found["distribution"][0])),
    ],
)
def test_what_mlcroissant_does_not_check_is_checked(packed, metadata, code, change):
    damaged = copy.deepcopy(metadata)
    change(damaged)
    assert code in {issue.code for issue in check_croissant(packed.folder, damaged, FORM)}


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


# Cost of importing


def test_importing_the_package_and_its_light_modules_loads_no_heavy_library():
    program = (
        "import sys, fabula.releases.pack.packing, fabula.releases.verify.verification;"
        "import fabula.releases.loading;"
        "heavy = ('datasets', 'pyarrow', 'mlcroissant', 'jinja2', 'pandas');"
        "print([name for name in heavy if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, check=True, text=True)
    assert found.stdout.strip() == "[]"


def test_templates_and_lists_are_files_of_the_package():
    folder = Path(sys.modules["fabula.releases.templates"].__file__).parent
    wanted = {"card.j2", "license.j2", "responsible_ai.j2"}
    for kind in ("katha", "events", "shots", "entities"):
        assert {path.name for path in (folder / kind).glob("*.j2")} >= wanted
    assert (folder / "licenses" / "hub.txt").is_file()
