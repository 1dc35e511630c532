"""Findings that repeat are told once; nothing is lost: the count is there, and --all and --json have them."""

import json
import re
import shutil
from pathlib import Path

from fabula.cli.common import PLACES, VALUES, finding_lines
from fabula.errors import InputError, UserError
from fabula.schemas.values import Issue


def issue(number: int, message: str = "expected a word, found 'x'", code: str = "unlisted-value") -> Issue:
    return Issue(f"records.jsonl:{number} s{number}", "$.moral_label", code, message, "use a listed value")


def test_lines_when_a_finding_repeats_are_its_count_and_first_places() -> None:
    lines = list(finding_lines([issue(n) for n in range(1, 121)], everything=False))
    assert lines[0] == "error: [unlisted-value] expected a word, found 'x', in 120 places:"
    assert lines[1] == "  records.jsonl:1 s1 $.moral_label"
    assert lines[1 + PLACES :] == [
        f"  ... and {120 - PLACES} more places; --all prints them", "  fix: use a listed value"
    ]  # fmt: skip


def test_lines_when_one_rule_finds_many_values_name_the_first_and_count_the_rest() -> None:
    found = [issue(n, f"found {n}") for n in range(50)] + [issue(1, "other", "scene-order")]
    lines = list(finding_lines(found, everything=False))
    assert sum(line.startswith("error: records") for line in lines) == VALUES + 1
    assert sum(line == "  fix: use a listed value" for line in lines) == 2  # each rule says once what to do
    assert lines[-1] == f"... and {50 - VALUES} more of [unlisted-value]; --all prints them"


def test_lines_when_everything_is_asked_for_are_one_for_each_finding() -> None:
    found = [issue(n) for n in range(30)]
    assert "\n".join(finding_lines(found, everything=True)) == "\n".join(f"error: {one}" for one in found)


def test_lines_when_levels_differ_stay_apart_and_nothing_is_lost() -> None:
    found = [Issue("a", "$", "c", "m", "f", level) for level in ("error", "warning") for _ in range(2)]
    lines = list(finding_lines(found, everything=False))
    assert [line for line in lines if line.endswith("places:")] == [
        "error: [c] m, in 2 places:", "warning: [c] m, in 2 places:"
    ]  # fmt: skip


def test_input_error_when_problems_differ_in_their_place_only_tells_them_once() -> None:
    problems = [UserError(f"a.jsonl:{n}", expected="a word", found="'x'", fix="use it") for n in range(200)]
    other = UserError("a.jsonl:7", expected="a title", found="none", fix="write one")
    assert str(InputError([*problems, other])).splitlines() == [
        "a.jsonl:0: expected a word, found 'x'", "  fix: use it",
        f"  the same at {', '.join(f'a.jsonl:{n}' for n in range(1, 21))} and 179 more places",
        "a.jsonl:7: expected a title, found none", "  fix: write one",
    ]  # fmt: skip
    assert len(InputError([*problems, other]).problems) == 201


def test_validate_when_every_record_has_the_same_fault_tells_it_once_and_json_has_all(
    fabula_command, sample_run: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(sample_run, tmp_path / "run"))
    text = (run / "records.jsonl").read_text("utf-8")
    (run / "records.jsonl").write_text(
        re.sub(r'"answerability":"[a-z_]*"', '"answerability":"maybe"', text), "utf-8"
    )
    short = fabula_command("validate", run)
    whole = fabula_command("validate", run, "--all")
    report = json.loads(fabula_command("validate", run, "--json").stdout)
    listed = [one for one in report["issues"] if one["code"] == "unlisted-value"]
    assert len(listed) > 100
    assert (short.returncode, whole.returncode) == (1, 1)
    assert short.stdout.count("'maybe'") == 1
    assert f"in {len(listed)} places" in short.stdout
    assert whole.stdout.count("'maybe'") == len(listed)
