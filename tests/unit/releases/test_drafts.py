"""Records that nobody has read: refused, packed on request, counted in card, manifest and statistics."""

import json
import re

import pytest

from fabula.errors import ConfigError
from fabula.kinds.verbs import load, pack, verify
from fabula.releases.options import PackOptions
from fabula.schemas.states import state_of
from fabula.testing.katha_folders import rehash
from fabula.testing.katha_samples import sample_bundles
from fabula.validators.katha.validation import statistics_of, validate

SEEN = {"path": "$.questions[*]", "note": "n"}
UNREAD = {"code": "question_drawable", "passed": None, "producer": None, **SEEN}
READ = {"code": "question_drawable", "passed": True, "producer": "author:ana", **SEEN}


def bundles(drafts, count=6):
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
        pack(make_run(bundles(2)), tmp_path / "out", PackOptions("0.1.0"))
    message = str(raised.value)
    assert "nobody has read 6 of 6 records (2 draft, 4 checked)" in message
    assert "question_drawable in 2" in message and "--allow-drafts" in message and "--reviews" in message
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_pack_when_every_check_passed_and_nobody_read_them_needs_the_option_as_drafts_do(make_run, tmp_path):
    run = make_run(bundles(0))
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
        ("drafted", "draft"),
        ("review_needed", "draft"),
        ("auto_checked", "checked"),
        ("human_review_complete", "reviewed"),
        ("human_adjudicator_accepted", "reviewed"),
        ("pre_release_reviewed", "reviewed"),
    ],
)
def test_state_of_a_record_when_its_status_is_of_any_version_has_one_meaning(status, state):
    assert state_of(status) == state
    assert state_of(status, [{"passed": None}]) == ("draft" if state == "checked" else state)


@pytest.mark.slow
def test_pack_when_drafts_are_allowed_says_how_many_are_what_and_whose(make_run, tmp_path):
    run = make_run(bundles(2))
    result = pack(run, tmp_path / "out", PackOptions("0.1.0", allow_drafts=True))
    assert any("packed in public that nobody has read: 2 draft, 3 checked" in note for note in result.notes)
    document, statistics = (
        json.loads((tmp_path / "out" / name).read_bytes()) for name in ("release.json", "statistics.json")
    )
    assert document["drafts"] == 2
    # Each bundle has six questions or so; a check of all of them counts for each.
    counts = [len(bundle["record"]["questions"]) for bundle in bundles(2)]
    public = [bundle["record"]["split"] != "hidden_test" for bundle in bundles(2)]
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
    pack(make_run(bundles(2)), tmp_path / "out", PackOptions("0.1.0", repo="ana/fables", allow_drafts=True))
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
    made = bundles(6)
    for bundle in made:
        unfilled(bundle)
    result = pack(make_run(made), tmp_path / "out", PackOptions("0.1.0", allow_drafts=True))
    assert json.loads((result.hidden / "release.json").read_bytes())["drafts"] == 1
    for folder in (result.folder, result.hidden):
        report = verify(folder, readers=False)
        assert report.ok, report.issues
        assert {issue.code for issue in report.issues} == {"incomplete"}
