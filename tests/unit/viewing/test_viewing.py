"""Pages that show what a folder holds: all links lead somewhere, nothing else does, nothing is changed."""

import json
import os
import re
import shutil
import socket
import tarfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from html import unescape
from pathlib import Path

import pytest

from fabula.cli.stats import with_states
from fabula.engine.calls import ModelUse
from fabula.engine.status import ItemReport, StageStatus, Status, read_report
from fabula.errors import ConfigError, UserError
from fabula.kinds.verbs import count, diff, pack, validate, verify
from fabula.people.audits.auditing import audit
from fabula.releases.diff import since
from fabula.releases.entities.tree import read_entity_set, render_page, statistics_of_set
from fabula.releases.options import PackOptions
from fabula.schemas.values import MEANINGS, state_of, states_told
from fabula.testing.katha_folders import write_run
from fabula.testing.katha_samples import sample_bundles
from fabula.viewing.editing import HOST, Server
from fabula.viewing.records import laid_out, makers_in, record_lines, state_in, under
from fabula.viewing.shelf import Differing, open_shelf, progress_of
from fabula.viewing.site import Site, in_order

REPLAYS = Path(__file__).parents[2] / "golden" / "replays"
Get = Callable[[str], tuple[int, bytes]]


@pytest.fixture
def replay(tmp_path: Path) -> Callable[[str], Path]:
    def unpack(name: str) -> Path:
        with tarfile.open(REPLAYS / f"{name}.tar.xz") as archive:
            archive.extractall(tmp_path / name, filter="data")
        return tmp_path / name

    return unpack


@contextmanager
def running(server: Server, pause: float = 0.02) -> Iterator[str]:
    """Serve in a thread, and give the address."""
    thread = threading.Thread(target=server.serve_forever, args=(pause,), daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()


@pytest.fixture
def served() -> Iterator[Callable[..., Get]]:
    with ExitStack() as stack:

        def serve(folder: Path, other: Path | None = None) -> Get:
            shelf = stack.enter_context(open_shelf(folder))
            for rows in shelf.rows.values():
                assert rows.wait(120) or rows.problem
            second = None if other is None else stack.enter_context(open_shelf(other))
            differing = None if second is None else stack.enter_context(Differing(shelf, second))
            server = stack.enter_context(Server(0, Site(shelf, differing)))
            place = stack.enter_context(running(server))
            return lambda address: got(f"{place}{address}")

        yield serve


def got(address: str, **headers: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def lines_of(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


def links_in(page: bytes) -> set[str]:
    found = re.findall(r'(?:href|src|action)="([^"]*)"', page.decode())
    found = [link for link in found if not link.startswith(("#", "data:"))]
    assert all(link.startswith("/") for link in found), "nothing is asked of anybody else"
    return set(map(unescape, found))


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name.split(".")[0] for path in REPLAYS.glob("*.tar.xz")))
def test_pages_when_every_link_is_followed_are_all_there_and_change_nothing(name, replay, served):
    folder = replay(name)
    for place in (folder / "run", folder / "release"):
        if not place.is_dir() or not [*place.glob("*.jsonl")]:
            continue
        before = content(place)
        get = served(place)
        seen, waiting = set[str](), {"/"}
        while waiting and len(seen) < 60:
            address = sorted(waiting)[0]
            waiting.remove(address)
            seen.add(address)
            status, page = get(address)
            assert status == 200, (address, page[-600:])
            assert len(page) < 1_000_000, address
            if page.lstrip().startswith(b"<!doctype"):
                waiting |= links_in(page) - seen
        after = content(place)
        assert {path: data for path, data in after.items() if path in before} == before
        assert all(path.endswith(("-wal", "-shm")) for path in after.keys() - before.keys())


def test_records_when_searched_and_filtered_are_those_that_fit(replay, served):
    folder = replay("katha-rules") / "run"
    records = [json.loads(line)["payload"]["record"] for line in lines_of(folder / "records.jsonl")]
    get = served(folder)
    word = records[0]["title"].split()[-1].lower()
    fitting = [record for record in records if word in json.dumps(record).lower().replace("_", " ")]
    _, page = get(f"/rows/records?q={word}")
    assert records[0]["story_id"].encode() in page
    assert int(re.search(rb"<output>(\d+) row", page)[1]) <= len(fitting)  # type: ignore[index]
    assert b"0 rows" in get("/rows/records?q=nowhereatall")[1]
    split = records[0]["split"]
    same = sum(record["split"] == split for record in records)
    assert f"<output>{same} row".encode() in get(f"/rows/records?split={split}")[1]
    unread = sum(state_of(record["validation_status"]) != "reviewed" for record in records)
    states = [get(f"/rows/records?state={state}")[1] for state in ("draft", "checked")]
    found = [int(part) for page in states for part in re.findall(rb"<output>(\d+) row", page)]
    assert sum(found) == unread == len(records), "nobody has read them, whoever passed them"
    _, page = get(f"/row/records/{records[0]['story_id']}")
    for scene in records[0]["scenes"]:
        assert scene["action"] in unescape(page.decode())
    assert b'class="made"' in page, "who made a field stands beside it"


def test_record_when_shown_is_in_reading_order_with_paths_and_makers(replay, served):
    run = replay("katha-rules") / "run"
    get = served(run)
    row = json.loads((run / "records.jsonl").read_text("utf-8").splitlines()[0])
    record = row["payload"]["record"]
    title, text, path = record["title"], record["scenes"][0]["scene_text"], "$.scenes[0]"
    start = unescape(get("/")[1].decode())
    assert f">{title}</a>" in start
    assert "Threshold" not in start and "Seed" not in start
    page = unescape(get(f"/row/records/{row['id']}")[1].decode())
    assert f"<h1><bdi>{title}</bdi></h1>" in page
    card = page[page.index(f"<b>scene 1</b> <code>{path}</code>") : page.index("<code>$.scenes[1]</code>")]
    assert text in card
    assert card.index("scene text") < card.index("characters") < card.index("generation prompt")
    assert "story id" not in card
    lines_made = {line["path"]: line["producer"] for line in row["payload"]["producers"]}
    maker = lines_made.get("$.scenes[*].scene_text") or lines_made["$.scenes[0].scene_text"]
    assert 'class="made"' not in card, "all of it is by who made most of the scenes"
    assert f'<dt class="group">scenes<span class="made" title="{maker}">' in page
    assert page.count("</span> " + maker.replace(":", ":<wbr>")) == 1, "the legend names each producer once"
    question = page[page.index("<code>$.questions[0]</code>") :].partition("required evidence")[0]
    assert ("target scene" in question) != ("target transition" in question)
    lines = "\n".join(record_lines(laid_out(row).record))
    assert f"scene 1  {path}" in lines and f"  scene text: {text}" in lines
    assert record["questions"][0]["question"] in lines
    distances = get("/rows/edit_distances")[1].decode()
    assert "nothing was changed" in distances
    assert "stand-in" not in start and "stand-in" not in page


def test_pages_when_stand_ins_made_what_they_show_say_so_first(replay, served):
    warning = "A stand-in for a model (compatible:stand-in) wrote or checked records here: they mean nothing."
    for name in ("katha-model", "shots-model", "events-model", "entities-model"):
        get = served(folder := replay(name) / "run")
        pages = [get(address)[1].decode() for address in ("/", *sorted(links_in(get("/")[1]))[-1:])]
        assert all(
            page.partition("<main>")[2].lstrip().startswith(f'<ul class="warnings"><li>{warning}')
            for page in pages
        )
        said = validate(folder)
        assert said.summary().endswith(f"note: {warning[0].lower()}{warning[1:-1]}")
        assert said.as_json()["stand_ins"] == ["compatible:stand-in"]
    get = served(replay("evaluate-katha") / "run")
    assert "by a stand-in for a judge: these scores mean nothing" in get("/")[1].decode()
    clean = validate(replay("katha-rules") / "run")
    assert clean.stand_ins == () and "stand_ins" not in clean.as_json()


def test_makers_when_one_field_of_a_group_is_by_another_are_named_there_alone() -> None:
    who = makers_in(
        {"$.title": "author", "$.scenes[*].action": "rules@1", "$.scenes[*].state": "rules@1",
         "$.scenes[1].action": "edit:ana", "$.Shots[*]['A b'].en": "m"}
    )  # fmt: skip
    assert who.letters == {"author": "A", "rules@1": "B", "edit:ana": "C", "m": "D"}
    assert who.usual == {"$": "author", "$.scenes": "rules@1", "$.Shots": "m"}
    assert [who.exception(f"$.scenes[{n}].action") for n in range(2)] == ["", "edit:ana"]
    assert who.of("$.Shots[3]['A b'].en") == "m" and under("$.Shots[3]", "A b") == "$.Shots[3]['A b']"
    assert (who.groups("author"), who.groups("edit:ana")) == (["fields of the whole record"], [])


def test_run_when_looked_at_leads_to_its_progress_corrections_and_audit(replay, served):
    run = replay("katha-model") / "run"
    report = read_report(run)
    get = served(run)
    assert {"/progress", "/audit"} <= links_in(get("/")[1]) and get("/corrections")[0] == 404
    page = get("/progress")[1].decode()
    assert "Nothing is working on it now." in page
    assert f">{report.totals['made']}<" in re.sub("<bdi[^>]*>|</bdi>|<dd>", ">", page).replace(">>", ">")
    spent = sum(use.cost for use in report.models)
    assert f"{spent:.4f}" in page
    assert all(item.id in page.replace("<wbr>", "") for item in report.items)
    row = json.loads(lines_of(run / "records.jsonl")[0])
    edit = {"id": row["id"], "path": "$.title", "old": "The old one", "new": "<b>", "who": "ana", "why": "w"}
    (run / "edits.jsonl").write_text(json.dumps(edit) + "\n", "utf-8")
    page = get("/corrections")[1].decode()
    assert "1 correction" in page and "The old one" in page and "&lt;b&gt;" in page
    assert f"Audit of drafts: {run.name}" in get("/audit")[1].decode()
    (run.parent / "audited").mkdir()
    document = {"facts": {"draft": f"somewhere/{run.name} (3 records)"}}
    (run.parent / "audited" / "audit.json").write_text(json.dumps(document))
    (run.parent / "audited" / "audit.html").write_text("<!doctype html>with gold")
    assert get("/audit")[1] == b"<!doctype html>with gold"


def test_progress_when_a_stage_is_half_done_tells_what_the_rest_costs_where_prices_are_known(
    monkeypatch: pytest.MonkeyPatch, replay: Callable[[str], Path]
) -> None:
    stages = [StageStatus(name, 1, 1, 1, 0, 2, 1, {}) for name in ("asks", "unpriced", "plain")]
    uses = (ModelUse("asks", "m", cost=0.5, uncertain=2), ModelUse("unpriced", "m", unpriced=1))
    holder = {"pid": 1, "host": "here", "since": "now"}
    status = Status({"made": 0}, tuple(stages), holder, (), explained=False, models=uses)
    monkeypatch.setattr("fabula.viewing.shelf.run_status", lambda *_: status)
    progress = progress_of(replay("katha-model") / "run")
    assert [(one.made, one.stopped, one.to_come, one.asked) for one in progress.stages] == [
        (1, 1, 3, 2), (1, 1, 3, 0), (1, 1, 3, 0),
    ]  # fmt: skip
    # 0.5 USD for 2 items of 5
    assert [(one.spent, one.forecast) for one in progress.stages] == [(0.5, 1.25), (None, None), (None, None)]
    assert (progress.spent, progress.forecast, progress.asked, progress.again) == (0.5, 1.25, 2, 5)


def test_file_when_it_is_written_while_pages_are_shown_is_shown_as_it_is_now(tmp_path, served):
    (tmp_path / "records.jsonl").write_text('{"id": "a", "t": "first"}\n')
    get = served(tmp_path)
    assert b"first" in get("/row/records/a")[1]
    (tmp_path / "more.jsonl").write_text('{"id": "m"}\n')
    (tmp_path / "records.jsonl").write_text('{"id": "longer", "t": "second"}\n{"id": "a", "t": "third"}\n')
    assert "/rows/more" in links_in(get("/")[1])
    get("/rows/records")  # waits for what the first page shows
    assert b"third" in get("/row/records/a")[1]


def test_release_when_an_earlier_version_lies_beside_it_leads_to_what_changed(replay, served):
    release = replay("katha-rules") / "release"
    older = release.with_name("older")
    shutil.copytree(release, older)
    told = json.loads((older / "release.json").read_text("utf-8"))
    foreign = {**told["about"], "name": "another-set"}
    for name, document in (
        ("older", {**told, "version": "0.0.1"}), ("newer", {**told, "version": "99.0.0"}),
        ("foreign", {**told, "version": "0.0.1", "about": foreign}), ("other", []),
    ):  # fmt: skip
        release.with_name(name).mkdir(exist_ok=True)
        (release.with_name(name) / "release.json").write_text(json.dumps(document))
    get = served(release)
    assert [link for link in links_in(get("/")[1]) if link.startswith("/diff")] == ["/diff/older"]
    assert get("/diff/other")[0] == 404 and get("/diff/older")[0] in (200, 500)


def test_record_when_parts_were_written_again_shows_both_versions_of_what_differs(replay, served):
    run = replay("katha-rules") / "run"
    first, *more = (run / "records.jsonl").read_text("utf-8").splitlines()
    row = json.loads(first)
    row["payload"]["rewritten"] = [
        {"part": "scenes", "number": 2, "outcome": "repaired: findings weigh 4, then 0",
         "findings": ["scene 2, state: the fox <b>left</b>"],
         "first": {"state": "He sits."}, "second": {"state": "He is gone."}},
        {"part": "questions", "number": 1, "outcome": "left as it was", "findings": []},
    ]  # fmt: skip
    (run / "records.jsonl").write_text("\n".join((json.dumps(row), *more)) + "\n", "utf-8")
    page = served(run)(f"/row/records/{row['id']}")[1].decode()
    assert "scenes 2: repaired: findings weigh 4, then 0" in page
    assert "<del><bdi>He sits.</bdi></del>" in page and "<ins><bdi>He is gone.</bdi></ins>" in page
    assert "the fox &lt;b&gt;left" in page and "questions 1: left as it was" in page


def test_episode_when_shown_is_as_on_the_page_of_its_set(replay, served):
    folder = replay("entities-model")
    whole, _ = read_entity_set(folder / "release")
    name = whole.episodes[0].episode_id
    static = render_page(whole, statistics_of_set(whole))
    drawn = re.findall(r'(?s)<svg class="strip".*?</svg>|<table.*?</table>', static)
    place = next(number for number, part in enumerate(drawn) if part.startswith('<svg class="strip'))
    for shown in (folder / "run", folder / "release"):
        page = served(shown)(f"/row/episodes/{name}")[1].decode()
        assert all(part in page for part in drawn[place : place + 3]), "strip, registry and shots"
    assert "Every field" in page and "entity schedule" in page


def test_episode_when_faulty_is_shown_by_its_fields(tmp_path: Path, served: Callable[..., Get]) -> None:
    faulty = ({"entity_schedule": 3}, {"entity_schedule": {"odd key": {"characters": ["A"]}}, "scenes": []})
    rows = [{"episode_id": f"e{place}", "entry": entry} for place, entry in enumerate(faulty)]
    (tmp_path / "episodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    get = served(tmp_path)
    for row in rows:
        status, page = get(f"/row/episodes/{row['episode_id']}")
        assert status == 200 and b"entity schedule" in page


def test_answers_when_an_evaluation_is_looked_at_stand_with_pictures_questions_and_replies(replay, served):
    folder = replay("evaluate-katha") / "run"
    judgements = [json.loads(line) for line in lines_of(folder / "judgements.jsonl")]
    judged = next(row for row in judgements if row["method"] and row["raw"])
    get = served(folder)
    address = f"/unit/{judged['method']}/{judged['unit']}"
    board = json.loads(lines_of(folder / "frames.jsonl")[0])
    unread = {**board, "method": "unjudged", "frames": [None, {"missing": "refused"}, *board["frames"][:1]]}
    with (folder / "frames.jsonl").open("a") as frames:
        frames.write(json.dumps(unread) + "\n")
    about = [row for row in judgements if (row["method"], row["unit"]) == (judged["method"], judged["unit"])]
    home = get("/")[1]
    assert f"{len(about)} replies" in home.decode() and "no replies" in home.decode()
    for page in ("/", "/rows/frames", f"/row/judgements/{judged['unit']}", f"/record/{judged['unit']}"):
        assert address in links_in(get(page)[1]), page
    status, page = get(f"/unit/unjudged/{board['unit']}")
    assert status == 200 and re.findall(r"Picture \d", page.decode()) == ["Picture 3"] * 2
    status, page = get(address)
    assert status == 200
    assert judged["raw"] in unescape(page.decode())
    pictures = [link for link in links_in(page) if link.startswith("/picture/")]
    assert pictures and get(pictures[0])[1][:3] in (b"\xff\xd8\xff", b"\x89PN")
    _, calls = get("/calls")
    call = next(link for link in sorted(links_in(calls)) if link.startswith("/call/"))
    assert b"What came back" in get(call)[1]


def test_lists_when_longer_than_a_page_lead_to_the_pages_beside_it_and_end(replay, served, monkeypatch):
    get = served(replay("evaluate-katha") / "run")
    for address in ("/rows/judgements", "/calls"):
        monkeypatch.setattr("fabula.viewing.site.MOST", 1000)
        count = get(address)[1].count(b"<tr") - 1
        beside = []
        for most, number in ((count, 1), (count - 1, 1), (count - 1, 2)):
            monkeypatch.setattr("fabula.viewing.site.MOST", most)
            page = get(f"{address}?page={number}")[1].decode()
            beside.append(sorted(re.findall(r"page=(\d+)", page)))
        assert beside == [[], ["2"], ["1"]], count


@pytest.mark.parametrize(
    "address",
    ["/picture/../secret.png", "/picture/..%2fsecret.png", "/picture/%2fetc%2fpasswd", "/picture/run.json",
     "/rows/run.json", "/row/records/nobody", "/call/00/0", "/unit/a/b", "/nothing"],
)  # fmt: skip
def test_page_when_it_does_not_exist_or_leads_out_of_the_folder_is_not_shown(address, replay, served):
    folder = replay("katha-rules") / "run"
    (folder.parent / "secret.png").write_bytes(b"secret")
    status, page = served(folder)(address)
    assert status == 404
    assert b"secret" not in page.replace(address.encode(), b"")


def test_server_when_asked_under_another_name_refuses(replay: Callable[[str], Path]) -> None:
    with open_shelf(replay("katha-rules") / "run") as shelf, Server(0, Site(shelf)) as server:
        port = server.server_address[1]
        with running(server) as place:
            assert got(f"{place}/", Host=f"evil.example:{port}")[0] == 403
            assert got(f"{place}/", Host=f"localhost:{port}")[0] == 200
            with pytest.raises(ConfigError, match="--port"):
                Server.at(port, Site(shelf))


def test_server_when_clients_keep_it_waiting_lets_them_go_and_serves_the_others(tmp_path: Path) -> None:
    (tmp_path / "records.jsonl").write_bytes(b'{"id": "a"}\n')
    with (
        open_shelf(tmp_path) as shelf,
        Server(0, Site(shelf), wait=0.4) as server,
        running(server, 0.05) as place,
    ):
        server.most = 5
        idle = [socket.create_connection(server.server_address[:2], timeout=60) for _ in range(30)]
        assert got(f"{place}/")[0] == 200
        end = time.monotonic() + 60
        with pytest.raises(OSError, match=r"reset|pipe"):  # a line of a head that never ends
            while time.monotonic() < end:
                idle[-1].sendall(b"GET / HTTP/1.1\r\nX: ")
                time.sleep(0.05)
        for client in idle:
            with suppress(OSError):
                assert client.recv(10) == b""
            client.close()


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/rows/records?page=" + "9" * 30, 400), ("/rows/records?page=x", 400), ("/?page=-5", 200),
        ("/rows/records?page=999999999999999", 200), ("/rows/records?q=" + "a+" * 20_000, 200),
        ("/rows/records?q=%00%22*%ff", 200), ("/rows/%00", 404), ("/picture/%00.png", 400),
        ("/picture/a%00/../../etc.png", 400), ("/picture/" + "a" * 5000 + ".png", 404),
        ("/row/records/" + "%ed%a0%80", 404), ("//evil.example/", 404), ("/picture/pipe.png", 404),
        ("/picture/zero.png", 404), ("/[::1", 404),
    ],
)  # fmt: skip
def test_address_when_hostile_is_answered(tmp_path, served, address, status):
    (tmp_path / "records.jsonl").write_bytes(b'{"id": "a", "t": "\\ud800 NUL \\u0000"}\n{"id": "\\udfff"}\n')
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    get = served(tmp_path)
    assert get(address)[0] == status
    assert get("/rows/records")[0] == 200


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices")
def test_folder_when_files_are_hostile_shows_the_others_and_says_what_cannot_be_read(tmp_path, served):
    ids = (b"1e999", b"NaN", b"1" + b"0" * 4000, b'{"a": []}', b"true", b'"<script>"', b'"last"')
    odd = [b'{"id": %s}' % name for name in ids]
    odd += [b'{"id": "deep", "x": ' + b"[" * 900 + b"]" * 900 + b"}", b"[" * 100_000]
    (tmp_path / "records.jsonl").write_bytes(b"\n".join(odd))
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "device.jsonl").symlink_to("/dev/zero")
    for number, about in enumerate(
        (b"{", b"[1]", b'{"sources": 5}', b'{"sources": [{"role": "release", "path": 1}]}')
    ):
        (tmp_path / "run.json").write_bytes(about)
        get = served(tmp_path)
        assert get("/")[0] == 200, number
    assert [get(f"/rows/{name}")[0] for name in ("records", "pipe", "device")] == [200, 200, 200]
    assert b"this cannot be read" not in get("/rows/records")[1]
    assert b"a pipe or a device" in get("/rows/pipe")[1] and b"a pipe or a device" in get("/rows/device")[1]
    assert get("/row/records/last")[0] == 200
    assert get("/row/records/deep")[0] == 500


def test_evaluations_when_two_are_compared_show_where_answers_differ(replay, served):
    first = replay("evaluate-katha") / "run"
    second = first.with_name("second")
    shutil.copytree(first, second)
    lines = [json.loads(line) for line in lines_of(second / "judgements.jsonl")]
    changed = next(row for row in lines if row["parsed"] and isinstance(row["parsed"].get("answer"), str))
    changed["parsed"]["answer"] = "something else altogether"
    (second / "judgements.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    get = served(first, second)
    page = get("/")[1].decode()
    assert page.count('class="differs"') == 1 and "something else altogether" in page
    assert changed["item"] in page.replace("<wbr>", "")
    assert "<output>1 question<" in page
    everything = get("/?only=all")[1].decode()
    assert everything.count("<tr") - 1 >= min(50, len({(row["unit"], row["item"]) for row in lines}))
    assert "<output>0 questions<" in get("/?q=zzzz")[1].decode()


def test_rows_when_lines_are_broken_are_shown_as_what_they_are(tmp_path, served):
    (tmp_path / "records.jsonl").write_bytes(
        b'{"id": "a", "t": "<script>alert(1)</script>"}\nno json\n[1]\n\n{"id": '
    )
    get = served(tmp_path)
    status, page = get("/rows/records")
    assert status == 200 and b"4 rows" in page
    assert b"<script>" not in page
    assert b"line 2" in get("/row/records/row%202")[1]


def test_folder_when_it_has_nothing_to_show_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="files of records or judgements"):
        open_shelf(tmp_path)
    with pytest.raises(UserError, match="no folder"):
        open_shelf(tmp_path / "missing")


def test_states_of_records_are_told_in_the_same_words_and_order_everywhere(served, tmp_path):
    bundles = sample_bundles(5)
    bundles[0]["record"]["validation_status"] = "drafted"
    gone = ItemReport(
        "kb25k_0099", "assemble_records", "rejected", "withdrawn", "by ana: a copy", "It was withdrawn."
    )
    run = write_run(tmp_path / "run", bundles, [gone], splits={"kb25k_0099": "train"})
    hidden = sum(bundle["record"]["split"] == "hidden_test" for bundle in bundles)
    unread = f"1 draft, {4 - hidden} checked"
    packed = pack(run, tmp_path / "release", PackOptions("0.1.0", allow_drafts=True))
    assert any(note.endswith(f"nobody has read: {unread}") for note in packed.notes)
    told = f"{unread}, 1 withdrawn"
    assert states_told(json.loads((packed.folder / "release.json").read_text("utf-8"))["states"]) == told
    assert verify(packed.folder, readers=False).summary().endswith(f"({unread})")
    card = (packed.folder / "README.md").read_text("utf-8")
    meanings = re.findall(r"^\| (draft|checked|reviewed|withdrawn) \| ([^|]+) \|", card, re.MULTILINE)
    assert dict(meanings) == MEANINGS
    compared = diff(packed.folder, packed.folder)
    assert list(since.lines(compared))[1] == f"records: {told}"
    assert f"Records: {told}" in since.render_page(compared)
    assert f"records: {unread}" in audit(packed.folder).lines()
    assert with_states(count(packed.folder))["states"] == {"draft": 1, "checked": 4 - hidden, "reviewed": 0}
    get = served(packed.folder)
    first = bundles[0]["record"]["story_id"]
    home, record = (get(at)[1].decode() for at in ("/", f"/row/annotations/{first}"))
    assert told in re.sub(r"<[^>]+>", "", home) and home.count('class="chip checked"') == 4 - hidden
    assert f'class="chip draft" title="{MEANINGS["draft"]}">draft</span> {MEANINGS["draft"]}' in record
    counted = [("draft", 1), ("checked", 9), ("reviewed", 3)]
    assert in_order([counted[1], counted[2], counted[0]]) == counted
    written = [{"text": "A text."}, {"bundle": {"record": bundles[0]["record"], "checks": []}}]
    assert state_in(written, [])[0] == "draft"
    withdrawal = {"path": "$", "new": None, "who": "ana", "why": "a copy"}
    assert state_in(written, [withdrawal]) == ("withdrawn", "by ana: a copy")
