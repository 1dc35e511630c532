import pytest

from fabula.errors import InputError
from fabula.evaluation.katha.load_items import subset_ids


@pytest.fixture
def release(tmp_path):
    (tmp_path / "subsets").mkdir()
    (tmp_path / "subsets" / "lite.jsonl").write_text('{"story_id":"kb25k_0002"}\n{"story_id":"kb25k_0003"}\n')
    (tmp_path / "strict_gold_400.jsonl").write_text('{"story_id":"kb25k_0004"}\n')
    (tmp_path / "annotations.jsonl").write_text('{"story_id":"kb25k_0005"}\n')
    return tmp_path


def test_a_subset_when_it_is_named_gives_its_ids_wherever_its_file_lies(release):
    assert subset_ids(release, "lite") == {"kb25k_0002", "kb25k_0003"}
    assert subset_ids(release, "strict_gold_400") == {"kb25k_0004"}


@pytest.mark.parametrize(
    "name", ["none", "annotations", "../annotations", "subsets/lite", "", "lite.jsonl", "a" * 300]
)
def test_a_subset_when_there_is_none_of_that_name_lists_those_there_are(release, name):
    with pytest.raises(InputError, match="one of: lite, strict_gold_400"):
        subset_ids(release, name)
