"""Official prompts out of clones, archives, folders and an address; what is missing or changed is named."""

import io
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from fabula.errors import ConfigError, InputError, MissingRequirement
from fabula.evaluation.archive.archive import read_archive
from fabula.evaluation.katha.pipeline import OFFICIAL_TEXTS
from fabula.evaluation.katha.requests import EvaluateOptions, evaluate_katha
from fabula.prompts.fetching import CodeText, NotThere, Official, fetch_prompts, fetch_set, official, texts_in
from fabula.prompts.loader import MANIFEST, TextSet, official_set, read_set, read_set_manifest
from fabula.schemas.canonical import sha256_bytes
from fabula.testing.compass_stories import compass_release, draw_candidates, loses_share
from fabula.testing.model_server import Asked, ModelServer

CONTENT = {
    "code/ask.py": b'ASK = f"Say {word}!"\n',
    "LICENSE": b"Do as you like.\n",
    "plain.txt": b"{as} is\n",
}
COMMIT = "0123456789" * 4


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("fabula.prompts.loader.cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr("fabula.prompts.fetching.cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


def source(commit: str = COMMIT[:7], licence: str | None = "MIT") -> Official:
    return Official.model_validate(
        {
            "title": "Mine", "repository": "http://127.0.0.1:9/mine", "commit": commit, "licence": licence,
            "files": {name: sha256_bytes(data) for name, data in CONTENT.items()},
            "texts": {
                "ask": {"file": "code/ask.py", "variable": "ASK", "slots": {"word": "word"}},
                "plain": {"file": "plain.txt"},
            },
        }
    )  # fmt: skip


def written(folder: Path) -> Path:
    for name, data in CONTENT.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def packed(comment: str = COMMIT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", pax_headers={"comment": comment}) as archive:
        for name, data in CONTENT.items():
            member = tarfile.TarInfo(f"mine-1/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def test_folder_when_plain_makes_a_set_whose_commit_is_not_checked(tmp_path: Path) -> None:
    fetched = fetch_set("mine", source(), written(tmp_path / "plain"))
    assert fetched.manifest.commit_checked is False and fetched.manifest.licence == "MIT"
    made = read_set(fetched.folder)
    assert made.fill("ask", {"word": "{hi}"}) == "Say {hi}!" and made.fill("plain", {}) == "{as} is\n"
    assert made.label("plain") == f"mine/plain@{COMMIT[:7]}#{sha256_bytes(CONTENT['plain.txt'])[:12]}"
    assert (fetched.folder / "LICENSE").read_bytes() == CONTENT["LICENSE"]
    assert official_set("mine", COMMIT[:7]) == made
    told = fetched.as_json()
    assert (told["folder"], told["from"]) == (str(fetched.folder), fetched.where)
    assert (told["name"], told["commit"], set(told["texts"])) == ("mine", COMMIT[:7], {"ask", "plain"})


def test_clone_when_another_commit_is_checked_out_is_read_at_the_pinned_one(tmp_path: Path) -> None:
    clone = written(tmp_path / "clone")
    who = ["-c", "user.name=n", "-c", "user.email=e@x"]
    for arguments in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "one"]):
        subprocess.run(["git", "-C", str(clone), *arguments], check=True)
    command = ["git", "-C", str(clone), "rev-parse", "HEAD"]
    commit = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    (clone / "plain.txt").write_bytes(b"changed since")
    assert fetch_set("mine", source(commit[:7]), clone).manifest.commit_checked is True
    with pytest.raises(InputError, match=r"plain\.txt: this is not the file of commit 0123456"):
        fetch_set("mine", source(), clone)
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(clone), str(bare)], check=True)
    fetched = fetch_set("mine", source(commit[:7]), bare)
    assert fetched.manifest.commit_checked is True
    assert (fetched.folder / "LICENSE").read_bytes() == CONTENT["LICENSE"]
    with pytest.raises(InputError, match="git does not find commit 0123456 in this bare clone"):
        fetch_set("mine", source(), bare)


def test_archives_when_they_say_their_commit_are_checked_by_it(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(packed())
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name, data in CONTENT.items():
            archive.writestr(f"mine-1/{name}", data)
    for name, checked in (("a.tar.gz", ""), ("a.zip", " (commit not checked, every file by SHA-256)")):
        fetched = fetch_set("mine", source(), tmp_path / name)
        assert fetched.manifest.commit_checked is (not checked)
        assert next(fetched.lines()).endswith(f"of commit {fetched.manifest.commit}{checked}")
    (tmp_path / "b.tar.gz").write_bytes(packed("f" * 40))
    with pytest.raises(InputError, match="it is of commit ffffffffffff, and 0123456 is pinned"):
        fetch_set("mine", source(), tmp_path / "b.tar.gz")
    (tmp_path / "c.zip").write_bytes(b"no archive")
    with pytest.raises(InputError, match="no zip or tar archive"):
        fetch_set("mine", source(), tmp_path / "c.zip")


@pytest.fixture
def address() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path.endswith("/archive/0123456.tar.gz")
            self.send_response(200 if found else 404)
            self.end_headers()
            self.wfile.write(packed() if found else b"nothing")

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/mine"
    server.shutdown()
    server.server_close()
    thread.join()


def test_address_when_nothing_is_named_is_the_archive_of_the_repository(address: str) -> None:
    mine = source().model_copy(update={"repository": address})
    assert fetch_set("mine", mine).manifest.commit_checked is True
    with pytest.raises(MissingRequirement, match="404"):
        fetch_set("mine", mine.model_copy(update={"commit": "abcdef0"}))


def test_fetching_when_files_lack_or_differ_names_each(tmp_path: Path, cache: Path) -> None:
    folder = written(tmp_path / "plain")
    (folder / "plain.txt").unlink()
    (folder / "LICENSE").write_bytes(b"Do not.\r\n")
    with pytest.raises(InputError) as caught:
        fetch_set("mine", source(), folder)
    told = str(caught.value)
    assert "plain.txt: it is not there" in told and "LICENSE: this is not the file of commit" in told
    assert not cache.exists()
    with pytest.raises(InputError, match="no such file or folder"):
        fetch_set("mine", source(), tmp_path / "nowhere")


def test_fetching_when_there_is_no_licence_asks_first(tmp_path: Path, cache: Path) -> None:
    folder = written(tmp_path / "plain")
    for agrees in (None, lambda _: False):
        with pytest.raises(ConfigError, match=r"has no licence[\s\S]*ask the authors"):
            fetch_set("mine", source(licence=None), folder, may_be_unlicensed=agrees)
    assert not cache.exists()
    made = fetch_set("mine", source(licence=None), folder, may_be_unlicensed=lambda _: True)
    assert "none: ask its authors" in "\n".join(made.lines())


def test_set_when_a_text_was_changed_is_refused_and_a_missing_one_named(tmp_path: Path) -> None:
    folder = fetch_set("mine", source(), written(tmp_path / "plain")).folder
    (folder / "texts" / "plain.txt").write_text("mine")
    (folder / "texts" / "ask.txt").unlink()
    with pytest.raises(InputError, match=r"ask\.txt: it is not there[\s\S]*plain\.txt: it was changed"):
        read_set(folder)
    (folder / MANIFEST).write_text("{}")
    with pytest.raises(InputError, match="no manifest of a set"):
        read_set_manifest(folder)
    with pytest.raises(MissingRequirement, match="fabula prompts fetch mine"):
        official_set("mine", "abc")
    with pytest.raises(ConfigError, match="use storyeval, vistorybench, entitybench"):
        fetch_prompts("nothing")


# -- Templates out of code say what the code itself says when it is called

CODE = """
GREETING = ("Good " "day {not a slot}")
WORDS = {"one": {"big": "very " "large"}}

def ask(name, items, hidden, send):
    first = f"Never mind {name}"
    rows = "\\n".join(f"- {item}" for item in items)
    lines = []
    for index, item in enumerate(items):
        lines.append(f"Line {index + 1}: {item}")
    prompt = (
        f"To {name}: {len(items)} things"
        + (f" ({hidden} hidden)" if hidden else "")
        + ".\\n" + "\\n".join(lines) + f'\\n{{"a": 1, {rows}}} {name}'
    )
    body = [{"role": "system", "content": GREETING}, {"role": "user", "content": [prompt or "nothing"]}]
    send(prompt)
    return "{} and {}"
"""
SLOTS = {
    "name": "who", "len(items)": "count", "hidden": "hidden", "'\\n'.join(lines)": "lines", "rows": "rows"
}  # fmt: skip


def place(**about: object) -> CodeText:
    return CodeText.model_validate({"file": "code.py", **about})


def called(name: str, items: list[str], hidden: int) -> str:
    """What the code sends when it is run; the test alone runs it."""
    sent: list[str] = []
    space: dict[str, object] = {}
    exec(CODE, space)
    space["ask"](name, items, hidden, sent.append)  # type: ignore[operator]
    return sent[0]


@pytest.mark.parametrize("hidden", [0, 3])
def test_template_when_filled_is_what_the_called_function_sends(hidden: int) -> None:
    found = texts_in(CODE, "long", place(function="ask", variable="prompt", slots=SLOTS, otherwise="short"))
    texts = {name: text for name, text, template in found if template}
    made = TextSet(name="mine", commit="1", texts=texts, templates=("long", "short"))
    items = ["{pear}", "fig}}"]
    slots = {"who": "Ann {x}", "count": 2, "hidden": hidden, "rows": "- {pear}\n- fig}}"}
    slots["lines"] = "Line 1: {pear}\nLine 2: fig}}"
    assert made.fill("long" if hidden else "short", slots) == called("Ann {x}", items, hidden)


def test_places_when_named_lead_into_lists_calls_and_dictionaries() -> None:
    whole = place(variable="GREETING")
    assert list(texts_in(CODE, "a", whole)) == [("a", "Good day {not a slot}", False)]
    words = place(variable="WORDS", data=True, path=("one",))
    assert list(texts_in(CODE, "w", words)) == [("w", '{\n "big": "very large"\n}', False)]
    nothing = place(function="ask", variable="body", path=(1, "content", 0, 1))
    assert list(texts_in(CODE, "n", nothing)) == [("n", "nothing", False)]
    line = place(function="ask", call="lines.append", path=(0,), slots={"index + 1": "i", "item": "it"})
    assert list(texts_in(CODE, "l", line)) == [("l", "Line {i}: {it}", True)]


@pytest.mark.parametrize(
    ("about", "told"),
    [
        ({"variable": "MISSING"}, "has no MISSING"),
        ({"function": "ask", "variable": "prompt", "nth": 1, "slots": SLOTS}, "has no prompt"),
        ({"function": "ask", "variable": "prompt"}, "no slot is known for name"),
        ({"variable": "GREETING", "positional": ("one",)}, "0 slots where 1 are known"),
        ({"variable": "WORDS", "path": ("two",)}, "nothing at 'two'"),
        ({"function": "ask", "variable": "prompt", "data": True}, "is no constant"),
    ],
)
def test_code_when_it_was_changed_is_not_guessed(about: dict[str, object], told: str) -> None:
    with pytest.raises(NotThere, match=told):
        list(texts_in(CODE, "x", place(**about)))


# -- Texts that only a paper has

INSTRUCTIONS = {
    "Action visibility": "Identify what is done.", "Causal": "Identify what brings it about.",
    "Emotional": "Identify what is felt.", "Consequence": "Identify what comes of it.",
    "Temporal order": "Identify what comes first.",
    "Moral-target": "Identify the value that the whole sup-\nports.",
}  # fmt: skip
TEMPLATES = {
    name: f"You are given {given}. Answer from it.\nReturn only structured output."
    for name, given in (
        ("Image-only", "images alone"), ("Text-only", "the story alone"), ("Text+image", "both of them"),
    )
}  # fmt: skip


def paper(form: str) -> str:
    """A paper of our own words, in Markdown or as ``pdftotext`` writes one."""
    if form == "markdown":
        parts = [f"#### {name} prompt.\n\n{text}\n" for name, text in TEMPLATES.items()]
        rows = [f"{name}\t{text}" for name, text in INSTRUCTIONS.items()]
    else:
        parts = [f"  {name} prompt. {text}\n" for name, text in TEMPLATES.items()]
        rows = [f"  {name}      {text}" for name, text in INSTRUCTIONS.items()]
    return "\n".join([*parts, "Table 35: instructions.", *rows, "Next section."])


@pytest.mark.parametrize("form", ["markdown", "pdftotext"])
def test_prompts_of_a_paper_when_its_text_is_given_are_its_passages(tmp_path: Path, form: str) -> None:
    (tmp_path / "paper.md").write_text(paper(form))
    with pytest.raises(MissingRequirement, match=r"fabula prompts fetch kathatrace --from paper\.md$"):
        official_set("kathatrace", official("kathatrace").commit)
    fetched = fetch_prompts("kathatrace", tmp_path / "paper.md")
    found = official_set("kathatrace", "paper")
    assert set(found.texts) == set(OFFICIAL_TEXTS)
    said = "You are given images alone. Answer from it. Return only structured output."
    assert found.text("question_image") == said
    assert found.text("dimension_moral") == "Identify the value that the whole supports."
    assert fetched.manifest.licence is None and list(fetched.manifest.sources) == ["paper.md"]


def test_prompts_of_a_paper_when_they_cannot_be_read_say_how_to_get_its_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="pdftotext"):
        fetch_prompts("kathatrace")
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.7 ...")
    with pytest.raises(InputError, match=r"this is a PDF(.|\n)*pdftotext"):
        fetch_prompts("kathatrace", tmp_path / "paper.pdf")
    (tmp_path / "other.md").write_text(paper("markdown").replace("Causal\t", "Casual\t"))
    with pytest.raises(InputError, match="passages dimension_causal"):
        fetch_prompts("kathatrace", tmp_path / "other.md")


@pytest.mark.slow
def test_storyboards_when_judged_with_the_words_of_a_paper_are_asked_in_them(tmp_path: Path) -> None:
    (tmp_path / "paper.md").write_text(paper("markdown"))
    fetch_prompts("kathatrace", tmp_path / "paper.md")
    release = compass_release(tmp_path / "release", 0, 1)
    outputs = draw_candidates(tmp_path / "m", release.records, loses_share(0.5), seeds=(42,))
    reply = {"answer": "so", "confidence": "high", "evidence_status": "recoverable"}
    both = {"source_answer": "so", "image_support": "supported", "final_answer": "so", "confidence": "high"}
    said = set()

    def answer(asked: Asked) -> dict[str, str]:
        said.add(asked.system)
        return both if "both of them" in asked.system else reply

    with ModelServer(answer) as server:
        options = EvaluateOptions(
            judges=[f"{server.openai_url}#one"], prompts="official", questions_only=True, workers=0,
            created_at="2026-01-01T00:00:00Z",
        )  # fmt: skip
        evaluate_katha(release.path, [outputs], tmp_path / "run", options)
    assert {text.partition(".")[0] for text in said} == {
        "You are given images alone", "You are given the story alone", "You are given both of them",
    }  # fmt: skip
    archive = read_archive(tmp_path / "run")
    assert {row.prompt.partition("@")[0] for row in archive.judgements} == {
        f"kathatrace/question_{name}" for name in ("text", "image", "text_image")
    }
    assert archive.manifest.protocol["prompts"]["kathatrace/dimension_causal"].startswith("kathatrace/")
