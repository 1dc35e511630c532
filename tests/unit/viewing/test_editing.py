"""Editing in the browser: the lines of `fabula edit`, one or many, for whoever has the link alone."""

import json
import re
import shutil
from html import unescape
from importlib import resources
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from fabula.builders.katha.building import BuildOptions, build_katha
from fabula.engine.edits import NAME, read_edits
from fabula.kinds.verbs import correct, editable_of, withdraw
from fabula.viewing.editing import Editing, fields_at, replaced
from fabula.viewing.shelf import open_shelf
from fabula.viewing.site import Site

STORIES = ("kb25k_0001", "kb25k_0002")
HERE = "http://127.0.0.1"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two stories whose drafts are by hand."""
    samples, folder = resources.files("fabula.builders.katha") / "samples", tmp_path_factory.mktemp("edited")
    for name in ("stories.jsonl", "gold.jsonl"):
        lines = (samples / name).read_bytes().splitlines(keepends=True)[:2]
        (folder / name).write_bytes(b"".join(lines))
    options = BuildOptions(created_at="2026-01-01T00:00:00Z", workers=0, records=folder / "gold.jsonl")
    build_katha(folder / "stories.jsonl", folder / "run", options)
    return folder / "run"


@pytest.fixture
def run(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "run"))


@pytest.fixture
def client(run: Path):
    """Somebody who has opened the link; ``token`` is what our page sends."""
    with open_shelf(run) as shelf:
        assert shelf.rows["records"].wait(120)
        editing = Editing(Site(shelf), editable_of(run))
        with TestClient(editing.application(), base_url=HERE) as made:
            made.link = f"/enter/{editing.token}"
            assert made.get(made.link).status_code == 200
            page = made.get(f"/row/records/{STORIES[0]}").text
            made.token = re.search(r'data-token="([0-9a-f]+)"', page)[1]
            yield made


def sent(client, token: str | None = None, **body):
    headers = {"x-review-token": client.token if token is None else token}
    signed = {"who": "ana", "why": "clearer"}
    return client.post("/api/change", json={**signed, **body}, headers=headers)


def test_fields_when_a_path_has_stars_are_those_of_every_part() -> None:
    document = {"a": [{"b": ["x", "y"]}, {"c": 1}, {"b": []}], "A b": {"d": "z"}}
    assert list(fields_at(document, "$.a[*].b")) == [("$.a[0].b", ["x", "y"]), ("$.a[2].b", [])]
    assert list(fields_at(document, "$.a[*].b[*]")) == [("$.a[0].b[0]", "x"), ("$.a[0].b[1]", "y")]
    assert list(fields_at(document, "$['A b'].d")) == [("$['A b'].d", "z")]
    assert list(fields_at(document, "$.nothing[*].b")) == list(fields_at(document, "$.a.b")) == []
    assert replaced(["a cat", "cats", 3], "cat", "dog") == ["a dog", "dogs", 3]


@pytest.mark.slow  # each change is made twice, by both
def test_change_when_saved_writes_the_lines_that_edit_writes(run: Path, tmp_path: Path, client) -> None:
    other = Path(shutil.copytree(run, tmp_path / "other"))
    for path, new in (("$.title", "Once"), ("$.questions[0].gold_answer", "a leaf"), ("$.title", "Twice")):
        made = correct(other, STORIES[0], path, new, who="ana", why="clearer")
        tried = sent(client, item=STORIES[0], path=path, new=new).json()
        saved = sent(client, item=STORIES[0], path=path, new=new, save=True).json()
        assert tried == {**saved, "saved": False}
        assert saved["findings"] == [issue.as_dict() for issue in made.issues]
        assert (run / NAME).read_bytes() == (other / NAME).read_bytes()
    page = client.get(f"/row/records/{STORIES[0]}").text
    assert ">Twice<" in page and page.count(">waits<") == 3, "title, answer and accepted answers"
    sent(client, item=STORIES[0], path="$.title", new="Once", save=True)
    assert [edit.new for edit in read_edits(run / NAME) if edit.path == "$.title"] == [
        "Once",
        "Twice",
        "Once",
    ]


def test_change_when_tried_or_unsigned_or_impossible_writes_nothing(run: Path, client) -> None:
    assert sent(client, item=STORIES[0], path="$.title", new="Once").json()["fields"] == 1
    refused = [
        sent(client, item=STORIES[0], path="$.title", new="Once", save=True, who=" "),
        sent(client, item=STORIES[0], path="title", new="Once", save=True),
        sent(client, item=STORIES[0], path="$.title", new=5, save=True),
        sent(client, list={"file": "records"}, path="$.split", new="train", save=True),
    ]
    refused.append(sent(client, item="nobody", path="$.title", new="x", save=True))
    assert [answer.status_code for answer in refused] == [422] * 5
    assert "no item nobody" in refused[4].json()["why"]
    assert "title" in refused[2].json()["why"] and "$.split" in refused[3].json()["why"]
    assert not (run / NAME).exists()


def test_change_when_a_list_is_filtered_goes_over_all_that_it_shows_and_no_withdrawn_ones(run, client):
    many = {"path": "$.scenes[*].scene_text", "find": "the", "new": "THE"}
    rows = map(json.loads, (run / "records.jsonl").read_text("utf-8").splitlines())
    word = next(row["payload"]["record"]["title"] for row in rows if row["id"] == STORIES[1]).split()[-1]
    one = sent(client, list={"file": "records", "q": word}, **many).json()
    assert {edit["id"] for edit in one["edits"]} == {STORIES[1]}
    both = sent(client, list={"file": "records"}, **many).json()
    assert both["records"] == 2 and both["fields"] > one["fields"] and not (run / NAME).exists()
    withdraw(run, STORIES[1], who="ana", why="not free")
    saved = sent(client, list={"file": "records"}, save=True, **many).json()
    assert saved["records"] == 1 and saved["fields"] == both["fields"] - one["fields"]
    changed = [edit for edit in read_edits(run / NAME) if edit.new is not None]
    page = client.get(f"/row/records/{STORIES[0]}").text
    assert page.count(">waits<") == sum(edit.path.endswith("scene_text") for edit in changed) > 1
    assert "THE" in page and "THE" not in client.get(f"/row/records/{STORIES[1]}").text
    assert {edit.new for edit in changed if edit.path.endswith("scene_text")} == {
        edit.old.replace("the", "THE") for edit in changed if edit.path.endswith("scene_text")
    }


def test_pages_when_nobody_entered_or_somebody_else_asks_are_closed(run: Path, client) -> None:
    stranger = TestClient(client.app, base_url=HERE)
    for address in ("/", "/row/records/" + STORIES[0], "/enter/forged", "/enter/" + "a" * 600):
        assert stranger.get(address).status_code == 403, address
    change = {"item": STORIES[0], "path": "$.title", "new": "x", "save": True, "who": "ana", "why": "w"}
    headers = {"x-review-token": client.token}
    assert stranger.post("/api/change", json=change, headers=headers).status_code == 403
    assert sent(client, token="", **change).status_code == 403
    for wrong in ({"sec-fetch-site": "cross-site"}, {"content-type": "text/plain"}):
        answer = client.post("/api/change", content=json.dumps(change), headers={**headers, **wrong})
        assert answer.status_code == 403, wrong
    assert client.get("/", headers={"host": "evil.example"}).status_code == 400
    page = client.get(f"/row/records/{STORIES[0]}")
    assert "connect-src 'self'" in unescape(page.text) and "frame-ancestors" not in page.text
    assert page.headers["x-frame-options"] == "DENY" and page.headers["cache-control"] == "no-store"
    assert not (run / NAME).exists()
