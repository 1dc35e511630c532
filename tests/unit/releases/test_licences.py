"""The licence of a release: given by its makers, stated by its records, never made up."""

import pytest

from fabula.errors import ConfigError
from fabula.kinds.verbs import load, pack, verify
from fabula.releases.options import PackOptions
from fabula.schemas.canonical import Json
from fabula.testing.katha_samples import sample_bundles
from fabula.validators.katha.validation import validate

OPTIONS = PackOptions("0.1.0", allow_drafts=True)


def unlicensed(count: int, *stated: str) -> list[Json]:
    """Return bundles of which the first state these licences, and the others none."""
    bundles = sample_bundles(count)
    for number, bundle in enumerate(bundles):
        bundle["record"]["provenance"]["dataset_license"] = stated[number] if number < len(stated) else None
    return bundles


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


def test_pack_when_nobody_states_a_licence_names_common_ones(make_run, tmp_path):
    with pytest.raises(ConfigError, match=r"--license.*no licence is given") as error:
        pack(make_run(unlicensed(3)), tmp_path / "out", OPTIONS)
    assert all(name in error.value.fix for name in ("--license CC-BY-4.0", "CC0-1.0", "MIT"))
    assert not (tmp_path / "out").exists()


def test_pack_when_the_usual_licence_is_another_keeps_that_of_the_records(make_run, tmp_path):
    options = PackOptions("1.0.0", usual_license="MIT", allow_drafts=True)
    assert (
        "SPDX-License-Identifier: CC-BY-4.0\n"
        in (pack(make_run(sample_bundles(3)), tmp_path / "out", options).folder / "LICENSE").read_text()
    )


def test_pack_when_some_records_state_another_licence_than_the_others_get_is_refused(make_run, tmp_path):
    run = make_run(unlicensed(3, "CC0-1.0"))
    with pytest.raises(ConfigError, match=r"1 under CC0-1\.0, 2 that state none"):
        pack(run, tmp_path / "out", PackOptions("1.0.0", usual_license="MIT", allow_drafts=True))


def test_pack_when_records_state_what_is_no_licence_says_that_they_do(make_run, tmp_path):
    with pytest.raises(ConfigError, match=r"dataset_license: .* is not the SPDX id"):
        pack(
            make_run(unlicensed(3, "mine")),
            tmp_path / "out",
            PackOptions("1.0.0", license="MIT", allow_drafts=True),
        )


def test_a_record_of_a_release_without_a_licence_is_a_finding(release, helpers):
    helpers.edit_line(
        release / "annotations.jsonl", 0, lambda row: row["provenance"].update(dataset_license=None)
    )
    assert "license" in {one.code for one in validate(release).issues}
