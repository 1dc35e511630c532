"""The page of a diff in a real browser: quiet, offline, on a phone, and accessible."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fabula.kinds.verbs import diff, pack
from fabula.releases.diff.render import write_page
from fabula.releases.options import PackOptions
from fabula.testing.katha_folders import rehash, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.testing.report_documents import HOSTILE

Inspected = Callable[[Path], Any]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("diff")
    bundles = copy.deepcopy(sample_bundles(7))
    sound = [text for text in HOSTILE if not any("\ud800" <= char <= "\udfff" for char in text)]
    for bundle, text in zip(bundles, ("x" * 900, *sound), strict=False):
        bundle["record"]["scenes"][1]["action"] = text
    for bundle in bundles:
        rehash(bundle)
    first, second = write_run(folder / "a", sample_bundles(6)), write_run(folder / "b", bundles)
    old = pack(first, folder / "old", PackOptions("0.1.0", allow_drafts=True)).folder
    new = pack(second, folder / "new", PackOptions("0.1.1", allow_drafts=True)).folder
    table = [["kind", "condition", "valid"], ["question", "text_image", "12"]]
    write_page(folder / "diff.html", diff(old, new), table)
    return folder / "diff.html"


def test_diff_page_when_inspected_is_as_every_page(inspected: Inspected, page_file: Path) -> None:
    page = inspected(page_file)
    assert page.title() == "fabula-story-benchmark: what changed from 0.1.0 to 0.1.1"
    assert page.locator(".change").count() > 3
