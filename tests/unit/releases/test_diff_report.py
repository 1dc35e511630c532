"""The page of a diff: whole, escaped, and loading nothing."""

import copy

import pytest

from fabula.kinds.verbs import diff, pack
from fabula.releases.diff.compare import ReleaseDiff
from fabula.releases.diff.render import render_page
from fabula.releases.options import PackOptions
from fabula.testing.katha_folders import rehash, write_run
from fabula.testing.katha_samples import sample_bundles

HOSTILE = '</td></table><script>alert("x")</script>\u202e<img src=x onerror=y>'


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> ReleaseDiff:
    folder = tmp_path_factory.mktemp("diff")
    bundles = copy.deepcopy(sample_bundles(7))
    bundles[0]["record"]["scenes"][1]["action"] = HOSTILE
    for bundle in bundles:
        rehash(bundle)
    folders = []
    for version, stories in (("0.1.0", sample_bundles(6)), ("0.1.1", bundles)):
        run = write_run(folder / f"run-{version}", stories)
        folders.append(
            pack(run, folder / version, PackOptions(version, title=HOSTILE[:20], allow_drafts=True)).folder
        )
    return diff(*folders)


def test_page_when_rendered_shows_changes_step_and_problem_and_escapes_every_value(
    found: ReleaseDiff,
) -> None:
    page = render_page(found, [["kind", "valid"], ["question", "<3>"]]).replace("<wbr>", "")
    assert "$.scenes[1].action" in page and "kb25k_0007" in page
    assert "Step due: <strong>major</strong>; next version: 0.2.0" in page
    assert "the new release says version 0.1.1" in page
    assert "<script" not in page and "<img" not in page and "\u202e" not in page
    assert "&lt;script&gt;alert" in page and "&lt;3&gt;" in page
