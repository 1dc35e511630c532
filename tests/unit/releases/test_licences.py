"""The licence of a release: given by its makers, stated by its records, never made up."""

import json
import re

import pytest

from fabula.engine.status import ItemReport
from fabula.errors import ConfigError, InputError
from fabula.kinds.verbs import load, pack, verify
from fabula.releases.katha.form import withdrawn
from fabula.releases.katha.selection import LeftOut, Selection
from fabula.releases.options import PackOptions
from fabula.releases.verify.documents import check_left_out
from fabula.schemas.canonical import Json
from fabula.schemas.values import state_of
from fabula.testing.katha_folders import rehash, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.review_exports import agreed_by, summary_of, votes_on, write_review
from fabula.validators.katha.validation import statistics_of, validate

OPTIONS = PackOptions("0.1.0", allow_drafts=True)


def unlicensed(count: int, *stated: str) -> list[Json]:
    """Return bundles of which the first state these licences, and the others none."""
    bundles = sample_bundles(count)
    for number, bundle in enumerate(bundles):
        bundle["record"]["provenance"]["dataset_license"] = stated[number] if number < len(stated) else None
    return bundles


@pytest.mark.slow
@pytest.mark.parametrize("given", ["license", "usual_license"])
def test_pack_when_records_state_no_licence_fills_in_the_one_given(make_run, tmp_path, given):
    run = make_run(unlicensed(6))
    assert not [one for one in validate(run).issues if one.level == "error"]
    packed = pack(run, tmp_path / "out", PackOptions("1.0.0", **{given: "cc-by-sa-4.0"}, allow_drafts=True))
    for folder in (packed.folder, packed.hidden):
        records = load(folder).records
        assert {record.provenance.dataset_license for record in records} == {"CC-BY-SA-4.0"}
    assert verify(packed.folder, quick=True).ok
    assert "SPDX-License-Identifier: CC-BY-SA-4.0\n" in (packed.folder / "LICENSE").read_text()


@pytest.mark.parametrize(
    ("stated", "given", "words"),
    [
        ((), {}, r"--license.*no licence is given(?s:.*)--license CC-BY-4.0.*CC0-1.0.*MIT"),
        (("CC0-1.0",), {"usual_license": "MIT"}, r"1 under CC0-1\.0, 2 that state none"),
        (("mine",), {"license": "MIT"}, r"dataset_license: .* is not the SPDX id"),
    ],
)
def test_pack_when_licences_are_not_one_known_one_says_so(make_run, tmp_path, stated, given, words):
    with pytest.raises(ConfigError, match=words):
        pack(make_run(unlicensed(3, *stated)), tmp_path / "out",
             PackOptions("1.0.0", **given, allow_drafts=True))  # fmt: skip
    assert not (tmp_path / "out").exists()


def test_a_record_of_a_release_without_a_licence_is_a_finding(release, helpers):
    helpers.edit_line(
        release / "annotations.jsonl", 0, lambda row: row["provenance"].update(dataset_license=None)
    )
    assert "license" in {one.code for one in validate(release).issues}


# Releases name public stories that were withdrawn, with the reason, and count hidden ones.

MEANING = "It was withdrawn; its id is not used again."


def gone(story: str) -> ItemReport:
    return ItemReport(story, "assemble_records", "rejected", "withdrawn", f"why {story}", MEANING)


@pytest.fixture
def selection() -> Selection:
    selection = Selection()
    splits = {"b": "train", "a": "validation", "secret": "hidden_test"}
    selection.add_unmade([gone("b"), gone("secret"), gone("a")], splits)
    return selection


def test_release_json_when_stories_were_withdrawn_only_counts_hidden_ones(selection) -> None:
    stories = [{"id": "a", "reason": "why a"}, {"id": "b", "reason": "why b"}]
    assert withdrawn(selection.withdrawn, 1) == {"withdrawn": {"stories": stories, "hidden_test_stories": 1}}
    assert withdrawn([], 0) == {}


def test_check_when_a_story_is_packed_and_withdrawn_finds_it() -> None:
    document = {"records": {"annotations.jsonl": {"a": "0" * 64}}, **withdrawn([LeftOut("a", "", "x")])}
    (issue,) = check_left_out(document, "stories")
    assert (issue.path, issue.message) == ("$.withdrawn", "a is named as withdrawn, and is in the release")


# Reviews by people whose answers show signs of carelessness: refused, packed on request, and told.

BUNDLES = sample_bundles(6)
ROWS = [summary_of(bundle) for bundle in BUNDLES]


def votes(**of_first):
    """Votes that accept all; those of the first reviewer with other columns, such as a confidence of 1."""
    made = [vote for bundle in BUNDLES for vote in votes_on(bundle)]
    for vote in made:
        vote |= {name: of_first[name] for name in of_first.keys() & vote.keys() if vote["rater"] == "r1"}
    return made


@pytest.fixture(scope="module")
def reviewed_run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "run", BUNDLES)


@pytest.fixture
def packs(reviewed_run, tmp_path):
    """Pack that run with a review."""

    def packs_(cast, stated=None, **options):
        review = write_review(tmp_path / "review", ROWS, cast, agreed_by())
        if stated is not None:
            (review / "careless.json").write_text(json.dumps(stated), "utf-8")
        return pack(reviewed_run, tmp_path / "out", PackOptions("0.1.0", reviews=review, **options)).folder

    return packs_


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"value": 1}, "--accept-careless: .*r1: chose option 1 in "),
        ({"seconds": 2.0}, "r1: 6 of 6 votes took less than the least time"),  # half a second an answer
    ],
)
def test_pack_when_somebody_was_careless_is_refused(packs, tmp_path, columns, words):
    with pytest.raises(ConfigError, match=words):
        packs(votes(**columns))
    assert not (tmp_path / "out").exists()


def test_pack_when_everybody_accepts_with_time_and_confidence_is_not_refused(packs):
    assert "careless" not in json.loads((packs(votes()) / "release.json").read_bytes())["reviews"]


@pytest.mark.slow
def test_release_when_careless_reviews_are_accepted_says_so_first_and_cannot_hide_it(packs, helpers):
    folder = packs(votes(value=1), accept_careless=True)
    signs = json.loads((folder / "release.json").read_bytes())["reviews"]["careless"]
    assert list(signs) == ["r1"] and signs["r1"][0].startswith("chose option 1 in ")
    before, _, after = (folder / "dataset_card.md").read_text("utf-8").partition("## Summary")
    assert "**Reviewers of this release show signs of carelessness.**" in before and "`r1`" in before
    assert "People reviewed every record. Some of them show signs of carelessness" in after
    assert not verify(folder).issues
    helpers.edit_json(folder / "release.json", lambda it: it["reviews"].pop("careless"))
    helpers.reseal(folder)
    assert any(
        "dataset_card.md" in str(issue) or "careless" in issue.message for issue in verify(folder).issues
    )


def test_pack_when_the_export_names_somebody_asks_for_it_too_and_a_damaged_file_is_told(packs):
    stated = {"people": {"r2": ["failed 2 of 2 gold items"], "somebody else": ["slept"]}}
    with pytest.raises(ConfigError, match=r"people: r2: failed 2 of 2 gold items\n") as raised:
        packs(votes(), stated)
    assert "somebody else" not in str(raised.value)
    with pytest.raises(InputError, match=r"careless\.json: this does not say who answered carelessly"):
        packs(votes(), ["r2"])


# What a stand-in for a model wrote or checked: refused by pack and publish, packed on request, and told.

WHO = "openai:gpt-4.1 via katha/label_story@1#0a, answered by a stand-in"
NAMED = "openai:gpt-4.1, answered by a stand-in"


def bundles(part, split):
    """Sample bundles; in one of a split a stand-in made a field, or a check."""
    made = sample_bundles(24)
    chosen = next(one for one in made if (one["record"]["split"] == "hidden_test") == (split == "hidden"))
    for entry in chosen[part][:1]:
        entry["producer"] = WHO
    return made


@pytest.mark.parametrize("part", ["producers", "checks"])
@pytest.mark.parametrize("split", ["public", "hidden"])
def test_pack_when_a_stand_in_made_anything_is_refused(make_run, tmp_path, part, split):
    with pytest.raises(ConfigError, match=f"--allow-stand-in: .* so they mean nothing: {NAMED}"):
        pack(make_run(bundles(part, split)), tmp_path / "out", PackOptions("0.1.0", allow_drafts=True))
    assert not list(tmp_path.glob("out*"))


@pytest.mark.slow
@pytest.mark.parametrize("part", ["producers", "checks"])
def test_release_when_a_stand_in_is_allowed_says_so_in_its_first_lines_and_stays_sound(
    make_run, tmp_path, helpers, part
):
    out = tmp_path / "out"
    pack(make_run(bundles(part, "public")), out, PackOptions("0.1.0", allow_stand_in=True, allow_drafts=True))
    assert json.loads((out / "release.json").read_bytes())["stand_ins"] == [NAMED]
    before, _, after = (out / "dataset_card.md").read_text("utf-8").partition("## Summary")
    assert "**Programs that stand in for a model wrote or checked records of this release**" in before
    assert (" stand-in |" in after) == (part == "producers")  # a column of its own in the table of makers
    assert not verify(out).issues
    helpers.edit_json(out / "release.json", lambda it: it.pop("stand_ins"))
    helpers.reseal(out)
    assert any(issue.level == "error" for issue in verify(out).issues)


# -- Records that nobody has read: refused, packed on request, counted in card, manifest and statistics

SEEN = {"path": "$.questions[*]", "note": "n"}
UNREAD = {"code": "question_drawable", "passed": None, "producer": None, **SEEN}
READ = {"code": "question_drawable", "passed": True, "producer": "author:ana", **SEEN}


def part_drafts(drafts, count=6):
    """Sample bundles, the first of which are drafts by rules, the others read by their author."""
    made = sample_bundles(count)
    for number, bundle in enumerate(made):
        for check in bundle["checks"]:
            check["producer"] = "rules@1"
        if number < drafts:
            bundle["record"]["validation_status"] = "review_needed"
            bundle["checks"].append(UNREAD)
        else:
            bundle["checks"].append(READ)
            for entry in bundle["producers"]:
                entry["producer"] = "author:ana"
    return made


def test_pack_when_records_are_drafts_is_refused_and_says_how_many(make_run, tmp_path):
    with pytest.raises(ConfigError) as raised:
        pack(make_run(part_drafts(2)), tmp_path / "out", PackOptions("0.1.0"))
    message = str(raised.value)
    assert message.startswith(str(tmp_path)), "no option that nobody gave"
    assert "nobody has read 6 of 6 records (2 draft, 4 checked)" in message
    assert "question_drawable in 2" in message and "--allow-drafts" in message and "--reviews" in message
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_pack_when_every_check_passed_and_nobody_read_them_needs_the_option_as_drafts_do(make_run, tmp_path):
    run = make_run(part_drafts(0))
    with pytest.raises(ConfigError, match=r"nobody has read 6 of 6 records \(6 checked\)"):
        pack(run, tmp_path / "out", PackOptions("0.1.0"))
    made = pack(run, tmp_path / "out", PackOptions("0.1.0", allow_drafts=True))
    assert made.counts["stories"] == 5  # one is hidden
    document = json.loads((tmp_path / "out" / "release.json").read_bytes())
    assert document["states"] == {"draft": 0, "checked": 5, "reviewed": 0, "withdrawn": 0}
    assert load(tmp_path / "out").info["states"] == document["states"]
    assert any("5 stories packed in public that nobody has read: 5 checked" in note for note in made.notes)
    assert verify(tmp_path / "out").ok


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("drafted", "draft"), ("review_needed", "draft"), ("auto_checked", "checked"),
        ("human_review_complete", "reviewed"), ("human_adjudicator_accepted", "reviewed"),
        ("pre_release_reviewed", "reviewed"),
    ],
)  # fmt: skip
def test_state_of_a_record_when_its_status_is_of_any_version_has_one_meaning(status, state):
    assert state_of(status) == state
    assert state_of(status, [{"passed": None}]) == ("draft" if state == "checked" else state)


@pytest.mark.slow
def test_pack_when_drafts_are_allowed_says_how_many_are_what_and_whose(make_run, tmp_path):
    run = make_run(part_drafts(2))
    result = pack(run, tmp_path / "out", PackOptions("0.1.0", allow_drafts=True))
    assert any("packed in public that nobody has read: 2 draft, 3 checked" in note for note in result.notes)
    document, statistics = (
        json.loads((tmp_path / "out" / name).read_bytes()) for name in ("release.json", "statistics.json")
    )
    assert document["drafts"] == 2
    # Each bundle has six questions or so; a check of all of them counts for each.
    counts = [len(bundle["record"]["questions"]) for bundle in part_drafts(2)]
    public = [bundle["record"]["split"] != "hidden_test" for bundle in part_drafts(2)]
    total, asked = sum(count for count, shown in zip(counts, public, strict=True) if shown), sum(counts[:2])
    assert document["checks"]["question_drawable"] == {"not_judged": asked, "passed": total - asked}
    rules = {"rules@1": {"review_needed": 2}}
    assert statistics["review"]["by_producer"] == {"author:ana": {"auto_checked": 3}, **rules}
    # In the run there is one more, which is hidden.
    assert statistics_of(run)["review"]["by_producer"] == {"author:ana": {"auto_checked": 4}, **rules}
    card = (tmp_path / "out" / "dataset_card.md").read_text("utf-8")
    assert "| draft | nobody has read it | 2 |" in card
    assert re.search(r"\| checked \| [^|]+ \| 3 \|", card)
    assert re.search(r"\| `author:ana` \| 3 \|\s+\|", card) and re.search(r"\| `rules@1` \|\s+\| 2 \|", card)
    assert verify(tmp_path / "out").ok


def test_documents_when_drafts_are_packed_for_a_repository_say_what_is_so(make_run, tmp_path):
    run = make_run(part_drafts(2))
    pack(run, tmp_path / "out", PackOptions("0.1.0", repo="ana/fables", allow_drafts=True))
    metadata = json.loads((tmp_path / "out" / "croissant_metadata.json").read_bytes())
    assert metadata["url"] == "https://huggingface.co/datasets/ana/fables"
    missing = metadata["rai:dataCollectionMissingData"]
    assert "Required fields are missing in drafts only, and 2 of 5 records are drafts;" in missing
    assert "2 left-out stories" in missing and "not in the release" not in missing
    assert metadata["rai:dataCollectionRawData"].startswith("Stories of these collections: ")
    card = " ".join((tmp_path / "out" / "dataset_card.md").read_text("utf-8").split())
    # Five labels of twelve have one story each, the even share is 5 / 12.
    assert "an even share, which is 0.4 stories for each of 12 labels (tolerance: 1 or 2 %," in card
    assert "7 labels have no story" in card
    assert "Before 1.0.0 a minor version may change or remove records" in card


def test_run_of_an_earlier_version_is_a_draft_where_screening_had_no_verdict(make_run, tmp_path):
    made = sample_bundles(3)
    for bundle in made:
        for check in bundle["checks"]:
            check.pop("producer", None)
    made[0]["checks"].append({"code": "screen_wordplay", "path": "$.story_text", "passed": None, "note": "n"})
    run = make_run(made)
    assert validate(run).issues == ()  # its version called it auto_checked
    with pytest.raises(ConfigError, match=r"nobody has read 3 of 3 records \(1 draft, 2 checked\)"):
        pack(run, tmp_path / "out", PackOptions("0.1.0"))
    pack(run, tmp_path / "out", PackOptions("0.1.0", allow_drafts=True))
    assert "drafts" not in json.loads((tmp_path / "out" / "release.json").read_bytes())
    assert verify(tmp_path / "out").ok


def unfilled(bundle):
    """Empty a field that a release requires."""
    bundle["record"]["scenes"][0]["state"] = None
    rehash(bundle)


@pytest.mark.slow
def test_release_when_a_hidden_draft_lacks_a_field_verifies_and_counts_it_there(make_run, tmp_path):
    made = part_drafts(6)
    for bundle in made:
        unfilled(bundle)
    result = pack(make_run(made), tmp_path / "out", PackOptions("0.1.0", allow_drafts=True))
    assert json.loads((result.hidden / "release.json").read_bytes())["drafts"] == 1
    for folder in (result.folder, result.hidden):
        report = verify(folder, readers=False)
        assert report.ok, report.issues
        assert {issue.code for issue in report.issues} == {"incomplete"}
