"""What records lack: every field is named, and counted over the whole of each record."""

from fabula.cli.build import incomplete_lines
from fabula.testing.katha_folders import rehash, write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.validators.katha.validation import validate

EVERY = ("transition_type", "causality", "consequence", "expected_change")


def lacking_bundles():
    """Three sample bundles; two lack four fields of every transition, one of them an action, too."""
    bundles = sample_bundles(3)
    for bundle in bundles[:2]:
        for transition in bundle["record"]["transitions"]:
            transition.update(dict.fromkeys(EVERY))
    bundles[0]["record"]["transitions"][2]["action"] = None
    bundles[0]["record"]["transitions"][3]["action"] = " "
    for bundle in bundles:
        rehash(bundle)
    return bundles


def test_incomplete_lines_when_records_lack_many_fields_count_each_in_every_record(tmp_path):
    run = write_run(tmp_path / "run", lacking_bundles())
    first, *fields = list(incomplete_lines(run))
    assert first.startswith("2 of 3 records are incomplete")
    assert sorted(fields[:-2]) == [
        "  $.transitions[*].action: missing in 1 story",
        "  $.transitions[*].causality: missing in 2 stories",
        "  $.transitions[*].consequence: missing in 2 stories",
        "  $.transitions[*].expected_change: missing in 2 stories",
        "  $.transitions[*].transition_type: missing in 2 stories",
    ]
    assert f"fabula validate {run} --all" in fields[-1]


def test_validate_when_records_lack_many_fields_names_every_one(tmp_path):
    report = validate(write_run(tmp_path / "run", lacking_bundles()))
    messages = [issue.message for issue in report.issues if issue.code == "incomplete"]
    assert messages[1] == f"missing: {', '.join(f'$.transitions[*].{name}' for name in EVERY)}"
    assert "$.transitions[2,3].action" in messages[0] and "more" not in messages[0]
