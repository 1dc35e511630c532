import pytest

from fabula.errors import ConfigError
from fabula.releases.subsets.requests import GOLD, SubsetRequest, requested


def test_requests_when_read_are_what_was_typed_parents_first():
    found = requested(["strict=50/category:even", "lite=200", "even=125/category"])
    assert [request.name for request in found] == ["lite", "even", "strict"]
    assert found[2] == SubsetRequest("strict", 50, per_category=True, parent="even")
    assert [request.asked for request in found] == ["200", "125/category", "50/category:even"]


def test_files_when_the_paper_names_them_lie_at_the_top():
    found = requested(["human_gold_1k=125/category", "lite=1", "strict_gold_400=50/category:human_gold_1k"])
    assert sorted(request.file for request in found) == [
        "human_gold_1k.jsonl", "strict_gold_400.jsonl", "subsets/lite.jsonl",
    ]  # fmt: skip
    assert [request.name for request in found if request.gold] == ["human_gold_1k", "strict_gold_400"]


def test_shares_when_read_are_what_was_typed_and_those_of_the_paper():
    assert requested(["lite=10%", "even=5%/category"])[1] == SubsetRequest("even", 5, True, None, share=True)
    gold = requested(GOLD)
    assert [request.asked for request in gold] == ["20%/category", "8%/category:human_gold"]
    assert [request.strict for request in gold] == [False, True]
    assert requested([f"{request.name}={request.asked}" for request in gold]) == gold


def test_earlier_requests_when_not_named_again_go_on():
    earlier = [SubsetRequest("lite", 200), SubsetRequest("even", 5, per_category=True)]
    assert requested([], earlier) == earlier
    assert [one.asked for one in requested(["lite=300"], earlier)] == ["300", "5/category"]
    assert requested(["even=none"], earlier) == earlier[:1]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["lite"], "before a ="),
        (["=200"], "before a ="),
        (["Lite=200"], "before a ="),
        (["../x=200"], "before a ="),
        (["a b=200"], "before a ="),
        (["x" * 65 + "=1"], "before a ="),
        (["lite=0"], "at least 1"),
        (["lite=-1"], "at least 1"),
        (["lite="], "at least 1"),
        (["lite=1.5"], "at least 1"),
        (["lite=٣"], "at least 1"),
        (["lite=9999999999"], "at least 1"),
        (["lite=5/kind"], "at least 1"),
        (["lite=5:"], "at least 1"),
        (["lite=5:../x"], "at least 1"),
        (["lite=0%"], "at least 1"),
        (["lite=101%"], "a share of 1 to 100 %"),
        (["lite=5%%"], "at least 1"),
        (["lite=5/category%"], "at least 1"),
        (["votes=5"], "no file of a release has"),
        (["annotations=5"], "no file of a release has"),
        (["human_validation=5"], "no file of a release has"),
        (["lite=5", "lite=6"], "twice"),
        (["lite=none"], "no such subset"),
        (["lite=5:even"], "--subset even=SIZE"),
        (["lite=5:lite"], "in a circle"),
        (["a=5:b", "b=5:a"], "in a circle"),
    ],
)
def test_a_request_when_it_cannot_be_met_is_refused_with_a_cure(texts, message):
    with pytest.raises(ConfigError, match=message) as caught:
        requested(texts)
    assert caught.value.where.startswith("--subset")
    assert caught.value.fix


def test_a_parent_when_it_is_dropped_leaves_no_orphan():
    earlier = requested(["even=5/category", "strict=2/category:even"])
    with pytest.raises(ConfigError, match="parent"):
        requested(["even=none"], earlier)
