"""``fabula audit`` as a user types it."""

import json

import pytest
from typer.testing import CliRunner

from fabula.cli.main import app

from .conftest import authored, drafted


@pytest.fixture
def command(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gold = authored(8)
    written(gold, "gold")
    written(drafted(gold), "draft")

    def run(*words):
        done = CliRunner().invoke(app, ["audit", *words])
        return done.exit_code, done.output

    return run


def test_audit_when_compared_prints_shares_with_counts_and_writes_a_page(command, tmp_path) -> None:
    code, output = command("draft", "--gold", "gold", "--out", "audit")
    assert code == 0 and "Decisive acts, recall" in output and "100.0 % [100, 100] 40 of 40" in output
    assert "8 auto_checked" in output and (tmp_path / "audit" / "audit.html").is_file()
    code, output = command("draft", "--gold", "gold", "--json")
    assert code == 0 and json.loads(output)["scores"]["answers"]["value"] == 1.0
    code, output = command("draft", "--gold", "gold", "--format", "csv")
    assert code == 0 and "questions,Answers,value,1.0,1.0,1.0," in output
    assert command("draft", "--gold", "gold", "--format", "csv", "--json")[0] == 2


def test_form_when_sampled_is_written_and_read_back(command, tmp_path) -> None:
    code, output = command("draft", "--sample", "3", "--out", "audit")
    assert code == 0 and "12 lines" in output
    form = tmp_path / "audit" / "form.csv"
    text = form.read_text("utf-8").replace(",,,not_answerable", ",no,guessable,not_answerable")
    form.write_text(text, "utf-8")
    code, output = command("draft", "--read", "audit/form.csv")
    assert code == 0 and "0 of 3" in output and "3 guessable" in output
    code, output = command("draft", "--sample", "3")
    assert code == 2 and "--out" in output


def test_audit_when_only_planned_says_what_would_be_asked(command, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-0123456789")
    code, output = command("draft", "--gold", "gold", "--model", "openai:gpt-4.1-mini", "--dry-run", "--json")
    assert code == 0, output
    plan = json.loads(output)
    assert "16" in json.dumps(plan)  # eight records each


def test_audit_when_a_folder_is_no_records_says_what_it_is(command, tmp_path) -> None:
    (tmp_path / "empty").mkdir()
    code, output = command("empty", "--gold", "gold")
    assert code != 0 and "empty folder" in output
