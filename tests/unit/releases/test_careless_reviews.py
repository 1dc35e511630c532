"""Reviews by people whose answers show signs of carelessness: refused, packed on request, and told."""

import json

import pytest

from fabula.errors import ConfigError, InputError
from fabula.kinds.verbs import pack, verify
from fabula.releases.options import PackOptions
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.review_exports import agreed_by, summary_of, votes_on, write_review

BUNDLES = sample_bundles(6)
ROWS = [summary_of(bundle) for bundle in BUNDLES]


def votes(**of_first):
    """Votes that accept all; those of the first reviewer with other columns, such as a confidence of 1."""
    made = [vote for bundle in BUNDLES for vote in votes_on(bundle)]
    return [
        {
            **vote,
            **{name: value for name, value in of_first.items() if vote["rater"] == "r1" and name in vote},
        }
        for vote in made
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "run", BUNDLES)


@pytest.fixture
def packs(run, tmp_path):
    """Pack that run with a review."""

    def packs_(cast, stated=None, **options):
        review = write_review(tmp_path / "review", ROWS, cast, agreed_by())
        if stated is not None:
            (review / "careless.json").write_text(json.dumps(stated), "utf-8")
        return pack(run, tmp_path / "out", PackOptions("0.1.0", reviews=review, **options)).folder

    return packs_


FIRST_OPTION = "r1: chose option 1 in "


def test_pack_when_somebody_took_the_first_option_throughout_is_refused(packs, tmp_path):
    with pytest.raises(ConfigError, match=f"--accept-careless: .*{FIRST_OPTION}"):
        packs(votes(value=1))
    assert not (tmp_path / "out").exists()


def test_pack_when_votes_took_less_than_half_a_second_an_answer_is_refused(packs):
    with pytest.raises(ConfigError, match="r1: 6 of 6 votes took less than the least time"):
        packs(votes(seconds=2.0))


def test_pack_when_everybody_accepts_with_time_and_confidence_is_not_refused(packs):
    assert "careless" not in json.loads((packs(votes()) / "release.json").read_bytes())["reviews"]


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
        issue.where == "dataset_card.md" or "careless" in issue.message for issue in verify(folder).issues
    )


def test_pack_when_the_export_names_somebody_asks_for_it_too_and_a_damaged_file_is_told(packs):
    stated = {"people": {"r2": ["failed 2 of 2 gold items"], "somebody else": ["slept"]}}
    with pytest.raises(ConfigError, match=r"people: r2: failed 2 of 2 gold items\n") as raised:
        packs(votes(), stated)
    assert "somebody else" not in str(raised.value)
    with pytest.raises(InputError, match=r"careless\.json: this does not say who answered carelessly"):
        packs(votes(), ["r2"])
