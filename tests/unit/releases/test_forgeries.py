"""Forgeries that hide themselves: a file says something else, and every checksum that covers it is made true.

Whoever writes the whole release anew has packed another one, and only its published hash tells; whoever
changes a part of it contradicts the rest, and that is found.
"""

import json
import re
import shutil
import tarfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fabula.kinds.registry import kind_named
from fabula.kinds.verbs import pack, verify
from fabula.releases.entities.form import import_episodes
from fabula.releases.options import PackOptions
from fabula.releases.pack.packing import checksums, file_entries
from fabula.releases.parquet import TableWriter
from fabula.releases.verify.documents import recount
from fabula.releases.verify.files import check_records
from fabula.schemas.canonical import Json, canonical_bytes, digest, pretty_bytes, sha256_file
from fabula.schemas.paths import CARD, CROISSANT, LICENSE, README, RELEASE, SOURCE_MANIFEST, STATISTICS, SUMS
from fabula.testing.drawn_shots import draw_shot_set
from fabula.testing.endurance import rounds
from fabula.testing.katha_folders import rehash, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.made_runs import CREATED, shots_run, suite_run
from fabula.testing.written_episodes import write_episodes
from fabula.tests.unit.releases.conftest import lines_of

pytestmark = pytest.mark.slow

KINDS = ("katha", "events", "shots", "entities")
OLDER = Path(__file__).parents[2] / "golden" / "releases" / "older"
FLAT = PackOptions(
    "0.1.0", license="CC-BY-4.0", languages=("en",), contact="ana@example.org", allow_drafts=True
)


def found(folder: Path) -> list[str]:
    """What verifying finds before the libraries of users read the release."""
    return [str(issue) for issue in verify(folder, readers=False).issues]


def edit(name: str, change: Callable[[Json], Any]) -> Callable[[Path], None]:
    """A change of a JSON document."""

    def forge(folder: Path) -> None:
        document = json.loads((folder / name).read_bytes())
        change(document)
        (folder / name).write_bytes(pretty_bytes(document))

    return forge


def write(*names: str, old: str, new: str) -> Callable[[Path], None]:
    """A change of what stands in texts."""

    def forge(folder: Path) -> None:
        for name in names:
            text = (folder / name).read_text("utf-8")
            assert re.search(old, text), (name, old)
            (folder / name).write_text(re.sub(old, new, text, count=1), "utf-8")

    return forge


def main_file(folder: Path) -> str:
    kind = json.loads((folder / RELEASE).read_bytes())["kind"]
    return next(iter(kind_named(kind).release().record_ids))


def first_table(folder: Path) -> Path:
    return min((folder / "data").rglob("*.parquet"))


def of_parquet(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def forge(folder: Path) -> None:
        path = first_table(folder)
        pq.write_table(change(pq.read_table(path)), path)

    return forge


def other_cell(table: Any) -> Any:
    place = next(i for i, field in enumerate(table.schema) if field.type == pa.string())
    values = table.column(place).to_pylist()
    values[-1] = "forged"
    return table.set_column(place, table.schema.field(place), pa.array(values))


def noted_column(table: Any) -> Any:
    fields = [table.schema.field(0).with_metadata({"note": "forged"}), *list(table.schema)[1:]]
    return table.cast(pa.schema(fields))


def add_bytes(folder: Path) -> None:
    """Bytes that no reader looks at, between the rows and what the file says of them."""
    path = first_table(folder)
    content = path.read_bytes()
    size = int.from_bytes(content[-8:-4], "little")
    cut = len(content) - 8 - size
    path.write_bytes(content[:cut] + b"a hidden note" + content[cut:])


def add_file(folder: Path) -> None:
    (folder / "PEER_REVIEW.md").write_text("Accepted by everybody.\n")


def drop(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def without_last_record(folder: Path) -> None:
    path = folder / main_file(folder)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def reseal(folder: Path) -> None:
    """Make every checksum true again: of records and files in release.json, Croissant and SHA256SUMS."""
    document = json.loads((folder / RELEASE).read_bytes())
    for name, key in kind_named(document["kind"]).release().record_ids.items():
        if (folder / name).is_file():
            document["records"][name] = {row[key]: digest(row) for row in lines_of(folder / name)}
    entries = file_entries(folder)
    if (folder / CROISSANT).is_file():
        metadata = json.loads((folder / CROISSANT).read_bytes())
        nodes = [one for one in metadata["distribution"] if one.get("contentUrl", "") in {"", *entries}]
        for node in nodes:
            if "contentUrl" in node:
                entry = entries[node["contentUrl"]]
                node |= {"sha256": entry["sha256"], "contentSize": f"{entry['bytes']} B"}
        (folder / CROISSANT).write_bytes(pretty_bytes({**metadata, "distribution": nodes}))
    document["files"] = file_entries(folder)
    (folder / RELEASE).write_bytes(pretty_bytes(document))
    (folder / SUMS).write_bytes(checksums(folder))


def claim(folder: Path) -> None:
    """Somebody reviewed it, say card and README."""
    write(CARD, README, old=r"No (human|person) has reviewed", new="Three experts have reviewed")(folder)


def repack(folder: Path) -> None:
    """Make tables and documents again from forged data, as packing makes them; every checksum is true."""
    reseal(folder)
    document = json.loads((folder / RELEASE).read_bytes())
    form = kind_named(document["kind"]).release()
    shutil.rmtree(folder / "data")
    with TableWriter(folder) as writer:
        for split, table, row in form.rows(folder):
            writer.add(table, split, row)
    for _ in range(2):  # Croissant has the hashes of documents that are made with it
        reading = form.reading(form)
        list(check_records(folder, document, reading.visit, form.record_ids))
        list(reading.check_rules(folder))
        for name, content in recount(folder, document, reading, exact=True).documents.items():
            (folder / name).write_bytes(content)
    reseal(folder)


def say(old: str, new: str, *names: str) -> Callable[[Path], None]:
    """The same change of words in several files, wherever they stand."""

    def forge(folder: Path) -> None:
        for name in names:
            text = (folder / name).read_text("utf-8")
            assert old in text, (name, old)
            (folder / name).write_text(text.replace(old, new), "utf-8")

    return forge


def of_action(folder: Path) -> None:
    """Another action of a shot in both files, and not at the end of its prompt."""
    records = lines_of(folder / "episodes.jsonl")
    script = folder / "scripts/ep_a.json"
    entry = json.loads(script.read_bytes())
    for one in (records[0]["entry"], entry):
        one["scenes"][0]["action_descriptions"][0] = "Ana drops the red cup in The Kitchen."
    script.write_text(json.dumps(entry, indent=2), "utf-8")
    (folder / "episodes.jsonl").write_bytes(b"".join(canonical_bytes(row) + b"\n" for row in records))


SUITE_FILES = ("prompts.jsonl", "all_prompts.json")
WHOLE: dict[tuple[str, str], tuple[Callable[[Path], None], str | None]] = {
    ("katha", "a check that no stage makes"): (
        edit(RELEASE, lambda one: one["checks"].update(approved_by_experts={"passed": 7})), "check-unknown",
    ),
    ("events", "an event that is not in its prompt"): (
        say("The dog begs for a treat", "A plane lands at sea", *SUITE_FILES), "event-elsewhere",
    ),
    ("events", "a prompt that its file name contradicts"): (
        say("A man opens a door, and", "A man paints a door, and", *SUITE_FILES), "unit-name",
    ),
    ("events", "prompt and file name"): (
        say("_opens_a_door", "_closes_a_door", *SUITE_FILES), "unit-name",
    ),
    ("shots", "the official copy of a script"): (
        say("a dry well", "a deep sea", "ViStory/01/story.json"), "official",
    ),
    ("shots", "our copy of a script"): (say("a dry well", "a deep sea", "scripts.jsonl"), "official"),
    ("shots", "both copies of a script"): (
        say("a dry well", "a deep sea", "scripts.jsonl", *(f"ViStory/{n}/story.json" for n in ("01", "02"))),
        None,
    ),
    ("shots", "an image twice"): (
        lambda folder: (folder / "ViStory/references.jsonl").write_bytes(
            (folder / "ViStory/references.jsonl").read_bytes() * 2
        ), "official",
    ),
    ("entities", "the official copy of an episode"): (
        say("Ana fills", "Ana drops", "scripts/ep_a.json"), "official",
    ),
    ("entities", "an action and not its prompt"): (of_action, "prompt-action"),
    ("entities", "both copies of an episode"): (
        say("Ana fills", "Ana drops", "scripts/ep_a.json", "episodes.jsonl"), None,
    ),
}  # fmt: skip
"""What whoever packs the forged data anew is told by; None where nothing but a published hash tells."""


@pytest.mark.parametrize(("kind", "name"), WHOLE)
def test_a_forgery_when_all_that_follows_from_it_was_made_again_is_found_where_the_data_say_so(
    made: dict[str, Path], tmp_path: Path, kind: str, name: str
) -> None:
    forge, code = WHOLE[kind, name]
    folder = copy(made[kind], tmp_path)
    forge(folder)
    repack(folder)
    assert {issue.code for issue in verify(folder, readers=False).issues} == ({code} if code else set())
    against = sha256_file(made[kind] / RELEASE)
    assert "not-published" in {issue.code for issue in verify(folder, quick=True, against=against).issues}


def test_a_licence_in_the_card_when_forged_is_what_a_quick_look_says_it_leaves_out(made, tmp_path):
    folder = copy(made["events"], tmp_path)
    FACTS["licence in the front matter"](folder)
    reseal(folder)
    quick = verify(folder, quick=True)
    assert quick.ok and "card" in quick.not_looked_at and "sound" not in quick.summary()
    assert not verify(folder, readers=False).ok
    against = str(made["events"])
    assert not verify(folder, quick=True, against=against).ok


FACTS: dict[str, Callable[[Path], None]] = {
    "count in the card": write(CARD, README, old=r"(?m)^(\| \w+ \|) \d+ \|$", new=r"\1 9,999 |"),
    "count in a sentence": write(CARD, README, old=r"(?m)^\d+ (?=\w+ )", new="9,999 "),
    "version in the card": write(CARD, README, old=r"Version 0\.1\.0", new="Version 1.0.0"),
    "licence in the front matter": write(CARD, README, old="license: cc-by-4.0", new="license: cc0-1.0"),
    "title of the card": write(CARD, README, old=r"(?m)^# .+$", new="# The Gold Standard"),
    "README alone": write(README, old=r"(?m)^\d+ (?=\w+ )", new="9,999 "),
    "licence notice": write(LICENSE, old="CC-BY-4.0", new="CC0-1.0"),
    "licence address": write(LICENSE, old="licenses/by/4.0", new="licenses/by-nc/4.0"),
    "statistics": edit(STATISTICS, lambda one: one["totals"].update(dict.fromkeys(one["totals"], 9999))),
    "sources": edit(SOURCE_MANIFEST, lambda one: one.update(inputs=[{"name": "y"}])),
    "Croissant description": edit(
        CROISSANT, lambda one: one.update(description=re.sub(r"\d+", "9999", one["description"], count=1))
    ),
    "Croissant licence": edit(CROISSANT, lambda one: one.update(license="https://example.org/mine")),
    "Croissant creator": edit(CROISSANT, lambda one: one["creator"][0].update(name="Somebody Else")),
    "Croissant name": edit(CROISSANT, lambda one: one.update(name="gold-standard")),
    "Croissant date": edit(CROISSANT, lambda one: one.update(datePublished="2020-01-01")),
    "Croissant citation": edit(CROISSANT, lambda one: one.update(citeAs="@misc{else}")),
    "about: title": edit(RELEASE, lambda one: one["about"].update(title="The Gold Standard")),
    "about: creators": edit(RELEASE, lambda one: one["about"].update(creators=["Somebody Else"])),
    "about: citation": edit(RELEASE, lambda one: one["about"].update(citation="@misc{else}")),
    "counts": edit(RELEASE, lambda one: one["counts"].update(dict.fromkeys(one["counts"], 9999))),
    "licence": edit(RELEASE, lambda one: one.update(license="CC0-1.0")),
    "version": edit(RELEASE, lambda one: one.update(version="1.0.0")),
    "date": edit(RELEASE, lambda one: one.update(created_at="2020-01-01T00:00:00Z")),
    "previous": edit(RELEASE, lambda one: one.update(previous={"version": "0.0.1", "sha256": "0" * 64})),
    "a file added": add_file,
    "licence dropped": drop(LICENSE),
    "statistics dropped": drop(STATISTICS),
    "README dropped": drop(README),
    "Croissant dropped": drop(CROISSANT),
    "a table dropped": lambda folder: first_table(folder).unlink(),
    "a table alone": of_parquet(other_cell),
    "rows of a table": of_parquet(lambda table: table.slice(0, len(table) - 1)),
    "a column of a table": of_parquet(lambda table: table.append_column("note", table.column(0))),
    "metadata of a table": of_parquet(lambda table: table.replace_schema_metadata({"note": "forged"})),
    "metadata of a column": of_parquet(noted_column),
    "a record dropped": without_last_record,
}  # fmt: skip
"""What contradicts the data in any version."""

WORDS: dict[str, Callable[[Path], None]] = {
    "a claim of review": claim,
    "a licence widened": write(LICENSE, old=r"\Z", new="You may also relicense everything.\n"),
    "about: contact": edit(RELEASE, lambda one: one["about"].update(contact="eve@example.org")),
    "a key of release.json": edit(RELEASE, lambda one: one.update(endorsed_by="everybody")),
    "left out": edit(RELEASE, lambda one: one["left_out"].update(files=[{"name": "x", "reason": "y"}])),
    "keywords": edit(CROISSANT, lambda one: one.update(keywords=["gold"])),
    "how it was annotated": edit(CROISSANT, lambda one: one.update({"rai:dataAnnotationPlatform": "X"})),
    "rights of the sources": edit(SOURCE_MANIFEST, lambda one: one.update(rights_scope="Do what you like.")),
    "a key of the statistics": edit(STATISTICS, lambda one: one.update(agreement=0.99)),
    "bytes of a table": add_bytes,
}  # fmt: skip
"""What only the same version can tell, as another words it otherwise."""


def make(kind: str, folder: Path) -> Path:
    """Pack a small release of a kind."""
    if kind == "katha":
        options = PackOptions(
            "0.1.0", subsets=("lite=5", "few=2:lite"), contact="ana@example.org", allow_drafts=True
        )
        return pack(write_run(folder / "run", sample_bundles(8)), folder / "katha", options).folder
    if kind == "events":
        prompts = ("A dog rolls over, begs for a treat, and then catches it.",
                   "A man opens a door, and then leaves.")  # fmt: skip
        suite_run(folder, ({"prompt": one} for one in prompts))
    elif kind == "shots":
        rights = {"Mira": "CC0-1.0", "Old Tomas": "public domain"}
        shots_run(draw_shot_set(folder / "data"), folder / "run", rights)
    else:
        import_episodes(write_episodes(folder / "data"), folder / "run", CREATED)
    return pack(folder / "run", folder / kind, FLAT).folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: make(kind, tmp_path_factory.mktemp(kind)) for kind in KINDS}


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Releases that an earlier version packed."""
    folder = tmp_path_factory.mktemp("older")
    for path in OLDER.glob("*.tar.xz"):
        with tarfile.open(path) as archive:
            archive.extractall(folder, filter="data")
    return {kind: folder / kind for kind in KINDS}


def copy(folder: Path, target: Path, *, whole: bool = False) -> Path:
    copied = Path(shutil.copytree(folder, target / folder.name))
    for name in ("-hidden", "-hidden.salt") if whole else ():
        beside = folder.with_name(folder.name + name)
        (shutil.copytree if beside.is_dir() else shutil.copy)(beside, target / beside.name)
    return copied


def said_by_another(folder: Path) -> None:
    """Say that another version of Fabula packed it."""
    edit(RELEASE, lambda one: one["tools"].update(fabula="0.0.9"))(folder)
    reseal(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_verify_when_an_older_version_packed_it_compares_what_it_states(older, kind):
    report = verify(older[kind], readers=False)
    assert report.issues == ()
    assert report.documents == "facts"
    assert "made by Fabula 0.1.0, or with other versions" in report.summary()


def facts_of(kind: str) -> dict[str, Callable[[Path], None]]:
    """The same version compares bytes, whatever is in them: each fact is tried on one kind, or on all."""
    many, begin = rounds(len(KINDS), share=len(KINDS)), KINDS.index(kind)
    return {name: FACTS[name] for number, name in enumerate(FACTS) if (number - begin) % len(KINDS) < many}


def missed(source: Path, forgeries: dict[str, Callable[[Path], None]], folder: Path) -> list[str]:
    """Those that nobody finds once every checksum is true."""
    names = []
    for number, (name, forge) in enumerate(forgeries.items()):
        copied = copy(source, folder / str(number))
        forge(copied)
        if name != "called another kind":
            reseal(copied)
        issues = found(copied)
        names += [] if issues else [name]
        sums = [text for text in issues if re.search(r"\[(checksum|file-hash|record-hash)\]", text)]
        assert sums == [] or name == "called another kind"
    return names


@pytest.mark.endurance
@pytest.mark.parametrize("kind", KINDS)
def test_every_consistent_forgery_is_found(made: dict[str, Path], tmp_path: Path, kind: str) -> None:
    own = STORIES if kind == "katha" else {}
    assert missed(made[kind], {**facts_of(kind), **WORDS, **own}, tmp_path) == []


@pytest.mark.parametrize("kind", KINDS)
def test_every_fact_that_another_version_states_is_compared(older, tmp_path, kind):
    # release.json of that version does not name the sources
    assert missed(older[kind], FACTS, tmp_path) == ["sources"]


@pytest.mark.parametrize("kind", KINDS)
def test_sources_when_release_json_names_them_are_compared_whatever_the_version(made, tmp_path, kind):
    folder = copy(made[kind], tmp_path)
    said_by_another(folder)
    report = verify(folder, readers=False)
    assert (report.issues, report.documents, report.made_with) == ((), "facts", "0.0.9")
    FACTS["sources"](folder)
    reseal(folder)
    assert [one.where for one in verify(folder, readers=False).issues] == [SOURCE_MANIFEST]


def relabel(folder: Path) -> None:
    """Another moral label in records and tables, and nothing else."""
    rows = lines_of(folder / "annotations.jsonl")
    split = {"public_test": "test"}.get(rows[0]["split"], rows[0]["split"])
    rows[0]["moral_label"] = "greed" if rows[0]["moral_label"] != "greed" else "honesty"
    (folder / "annotations.jsonl").write_bytes(b"".join(canonical_bytes(row) + b"\n" for row in rows))
    path = folder / "data/stories" / f"{split}.parquet"
    table = pq.read_table(path)
    labels = table.column("moral_label").to_pylist()
    labels[table.column("story_id").to_pylist().index(rows[0]["story_id"])] = rows[0]["moral_label"]
    place = table.schema.get_field_index("moral_label")
    pq.write_table(table.set_column(place, "moral_label", pa.array(labels)), path)


def call_gold(folder: Path) -> None:
    """Say in records that people accepted a story."""
    rows = lines_of(folder / "annotations.jsonl")
    for row in rows:
        row["validation_status"] = "human_adjudicator_accepted"
    (folder / "annotations.jsonl").write_bytes(b"".join(canonical_bytes(row) + b"\n" for row in rows))


def swap_members(folder: Path) -> None:
    path = folder / "subsets/few.jsonl"
    members = [row["story_id"] for row in lines_of(path)]
    lite = [row["story_id"] for row in lines_of(folder / "subsets/lite.jsonl")]
    members[0] = next(one for one in lite if one not in members)
    path.write_bytes(b"".join(canonical_bytes({"story_id": one}) + b"\n" for one in sorted(members)))


def drop_commitments(folder: Path) -> None:
    edit(RELEASE, lambda one: one.pop("commitments"))(folder)


def drop_commitments_everywhere(folder: Path) -> None:
    drop_commitments(folder)
    write(CARD, README, old=r"`release\.json` commits to every hidden story[^\n]*\n[^\n]*\n", new="")(folder)


STORIES: dict[str, Callable[[Path], None]] = {
    "label in records and tables": relabel,
    "gold in the records": call_gold,
    "reviews added": lambda folder: (folder / "human_validation.jsonl").write_bytes(b"{}\n"),
    "a gold subset added": lambda folder: (folder / "human_gold_1k.jsonl").write_bytes(b"{}\n"),
    "members of a subset": swap_members,
    "closeness of a subset": edit("subsets.json", lambda one: one["subsets"][0].update(kept=5)),
    "a subset dropped": drop("subsets/few.jsonl"),
    "checks": edit(RELEASE, lambda one: one["checks"].update(faithful={"passed": 23})),
    "splits": edit(RELEASE, lambda one: one["splits"].update(train=99)),
    "hidden test": edit(RELEASE, lambda one: one["hidden_test"].update(stories=400)),
    "balance": edit("moral_balance_requirements.json", lambda one: one.update(tolerance_status="x")),
    "producers": write("producers.jsonl", old=r"rules@1", new="author"),
    "withdrawn": edit(RELEASE, lambda one: one.update(withdrawn={"stories": [], "hidden_test_stories": 7})),
    "left out of the hidden test": edit(RELEASE, lambda one: one["left_out"].update(stories=[
        {"id": "x", "code": "rights", "reason": "y", "stage": "release", "status": "left_out"}])),
    "no commitments": drop_commitments,
    "no commitments anywhere": drop_commitments_everywhere,
    "changes without a version before": lambda folder: (folder / "changes.json").write_bytes(b"{}\n"),
    "called a hidden folder": edit(RELEASE, lambda one: one.update(visibility="hidden")),
    "called another kind": edit(RELEASE, lambda one: one.update(kind="events")),
    "canary": edit(RELEASE, lambda one: one.update(canary="fabula-canary-0")),
    "canary text": write("CANARY.txt", old="exists to test models", new="exists to train models"),
}  # fmt: skip


@pytest.mark.parametrize("forge", [drop_commitments, drop_commitments_everywhere])
def test_commitments_when_missing_beside_the_hidden_folder_and_its_salt_are_a_finding(
    made: dict[str, Path], older: dict[str, Path], tmp_path: Path, forge: Callable[[Path], None]
) -> None:
    for number, source in enumerate((made["katha"], older["katha"])):
        folder = copy(source, tmp_path / str(number))
        for name in ("-hidden", "-hidden.salt"):
            beside = made["katha"].with_name(f"katha{name}")
            (shutil.copytree if beside.is_dir() else shutil.copy)(beside, folder.with_name(f"katha{name}"))
        forge(folder)
        reseal(folder)
        issues = verify(folder, quick=True).issues
        assert any(
            one.code == "commitment" and "has no commitments to hidden stories" in one.message
            for one in issues
        )


CHANGES: dict[str, Callable[[Json], Any]] = {
    "version": lambda one: one.update(version="0.3.0"),
    "version before": lambda one: one["previous"].update(version="0.0.1"),
    "hash of the version before": lambda one: one["previous"].update(sha256="0" * 64),
    "step": lambda one: one.update(step="patch"),
    "reasons": lambda one: one.update(reasons=[{"step": one["step"], "why": "typing errors"}]),
    "a reason more": lambda one: one["reasons"].append({"step": "patch", "why": "typing errors"}),
    "added": lambda one: one["added"].pop("annotations.jsonl"),
    "removed": lambda one: one["removed"].update({"annotations.jsonl": ["kb25k_0002"]}),
    "removed, never there": lambda one: one["removed"].update({"annotations.jsonl": ["kb25k_9999"]}),
    "gone": lambda one: one["gone"].append({"id": "kb25k_9999", "how": "removed", "reason": None}),
    "moved": lambda one: one["moved"].append({"id": "kb25k_0001", "old": "train", "new": "public_test"}),
    "changed": lambda one: one.update(changed=[]),
    "a place that is not there": lambda one: one["changed"][0].update(path="$.scenes[99].action"),
    "schema": lambda one: one["schema"].update(new="9.9.9"),
    "subset": lambda one: one["subsets"][0]["stories"].update(new=99),
    "hidden test": lambda one: one["hidden_test"]["after"].update(stories=99),
    "commitments": lambda one: one["hidden_test"]["commitments"].update(kept=99),
    "a key more": lambda one: one.update(approved=True),
}  # fmt: skip


def test_every_forgery_of_the_changes_is_found(made: dict[str, Path], tmp_path: Path) -> None:
    bundles = sample_bundles(11)
    bundles[0]["record"]["scenes"][1]["action"] = "rests"
    for bundle in bundles:
        rehash(bundle)
    run = write_run(tmp_path / "run", bundles)
    options = PackOptions("auto", since=made["katha"], subsets=("lite=6",), allow_drafts=True)
    folder = pack(run, tmp_path / "next", options).folder
    document = json.loads((folder / RELEASE).read_bytes())
    assert found(folder) == []
    assert document["previous"]["version"] == "0.1.0"
    for visible in ("bytes", "facts"):
        forgeries = islice(CHANGES.items(), 3 if visible == "bytes" else None)
        assert verify(folder, readers=False).documents == visible
        assert missed(folder, {name: edit("changes.json", change) for name, change in forgeries},
                      tmp_path / visible) == []  # fmt: skip
        shutil.rmtree(folder.with_name("next-hidden"), ignore_errors=True)  # it says who packed it
        said_by_another(folder)
