"""A protocol is frozen: what it says cannot be changed unseen, and an amendment is a version of its own."""

import json
import tarfile
from pathlib import Path

import pytest

from fabula.errors import ConfigError, InputError
from fabula.people.review.flow import open_places
from fabula.people.review.folder import open_study, replace_protocol
from fabula.people.review.protocol import amended, versions
from fabula.people.review.results import results
from fabula.people.review.votes import human_rows
from fabula.schemas.canonical import digest
from fabula.testing.review_studies import NOW, add_votes, toy_answers, toy_study


def test_protocol_when_amended_is_a_new_version_that_names_the_one_before(tmp_path: Path) -> None:
    study = toy_study(tmp_path / "study")
    first = study.protocol
    second = amended(first, {"consensus": True}, who="ana", why="agreed", created_at=NOW)
    replace_protocol(study, second)
    assert (second.version, second.amends, second.consensus) == (2, first.sha256, True)
    assert second.sha256 != first.sha256
    assert [protocol.sha256 for protocol in versions(study.folder)] == [first.sha256, second.sha256]
    assert open_study(study.folder).protocol == second


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"seed": 1}, "fixed"), ({"plan": {}}, "fixed"), ({"task": "x"}, "fixed"), ({"nothing": 1}, "fixed"),
        ({"consensus": False}, "nothing changes"), ({"lease_hours": 0}, "greater than 0"),
        ({"lease_hours": "soon"}, "number"), ({"created_at": NOW}, "fixed"),
    ],
)  # fmt: skip
def test_amendment_when_it_makes_another_study_is_refused(
    tmp_path: Path, changes: dict[str, object], fault: str
) -> None:
    protocol = toy_study(tmp_path / "study").protocol
    with pytest.raises(ConfigError, match=fault):
        amended(protocol, changes, who="ana", why="so", created_at=NOW)


def test_amendment_when_nobody_says_why_is_refused(tmp_path: Path) -> None:
    protocol = toy_study(tmp_path / "study").protocol
    with pytest.raises(ConfigError, match="--who and --why"):
        amended(protocol, {"consensus": True}, who="ana", why=" ", created_at=NOW)


@pytest.mark.parametrize("name", ["protocol.json", "items.jsonl", "key.jsonl", "task.j2", "protocols/1.json"])
def test_study_when_a_frozen_file_was_changed_is_not_opened(tmp_path: Path, name: str) -> None:
    path = toy_study(tmp_path / "study").folder / name
    content = path.read_text("utf-8")
    path.write_text(
        content.replace('"en"', '"fr"').replace("toy", "tow").replace("kb25k", "kb26k").replace("64", "65")
    )
    assert path.read_text("utf-8") != content
    with pytest.raises(InputError, match=r"damaged|not what was frozen|not the protocol"):
        open_study(tmp_path / "study")


@pytest.mark.parametrize(
    "name", ["protocol.json", "items.jsonl", "key.jsonl", "seats.json", "secret.key", "task.j2"]
)
@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"{", b"[" * 5000])
def test_study_when_a_file_is_gone_or_garbage_says_so(
    tmp_path: Path, name: str, content: bytes | None
) -> None:
    path = toy_study(tmp_path / "study").folder / name
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(InputError):
        open_study(tmp_path / "study")


def test_study_when_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fabula review init"):
        open_study(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        open_study(tmp_path / "gone")


def test_study_when_made_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    folder = toy_study(tmp_path / "study").folder
    assert {path.stat().st_mode & 0o077 for path in (folder, *folder.rglob("*"))} == {0}


def test_study_when_made_twice_from_one_seed_deals_the_same_under_other_names(tmp_path: Path) -> None:
    first, second = toy_study(tmp_path / "first"), toy_study(tmp_path / "second")

    def dealt(study: object) -> list[list[tuple[str, int, int, bool]]]:
        return [
            [(study.stands[place.item].about, place.block, place.repeat, place.flip) for place in seat.places]
            for seat in study.seats.values()
        ]

    assert dealt(first) == dealt(second)
    assert not first.items.keys() & second.items.keys()
    assert not first.owner_of_media.keys() & second.owner_of_media.keys()


def test_votes_when_the_protocol_is_amended_keep_their_own(tmp_path: Path) -> None:
    study = toy_study(tmp_path / "study")
    items = [place.item for place in study.seats[1].places]
    add_votes(study, "simulated-1", {items[0]: toy_answers(study, items[0])}, seat=1)
    replace_protocol(study, amended(study.protocol, {"consensus": True}, who="a", why="b", created_at=NOW))
    again = open_study(study.folder)
    later = {"at": "2026-01-02T00:00:00Z", "begin": False}
    add_votes(again, "simulated-1", {items[1]: toy_answers(study, items[1])}, seat=1, **later)
    protocols = [event.protocol for event in again.events() if event.kind == "voted"]
    assert protocols == [study.protocol.sha256, again.protocol.sha256]
    assert json.loads((study.folder / "protocols/2.json").read_text())["amends"] == study.protocol.sha256


def test_study_when_an_earlier_version_made_it_opens_with_its_hash_its_seats_and_its_votes(
    tmp_path: Path,
) -> None:
    """It was dealt by another rule, for a recruitment platform; one of its two seats is half answered."""
    with tarfile.open(Path(__file__).parents[3] / "golden" / "studies" / "earlier.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    study = open_study(tmp_path / "earlier")
    first, second = versions(study.folder)
    assert second.sha256 == "cb79927f8cb1f94d92c7b9bfad1fc83d8690be1469fc1909dcc0ad10a5b57b99"
    assert (second.amends, second.lease_hours) == (first.sha256, 72)
    written = json.loads((study.folder / "protocol.json").read_bytes())
    assert second.as_json() == written
    assert written["participant"] == "PROLIFIC_PID"
    assert [[place.item[:3] for place in seat.places] for seat in study.seats.values()] == [
        ["ie0", "i9c", "i15", "i52", "i9c"], ["ibb", "i15", "i52", "ie0", "ibb"],
    ]  # fmt: skip
    standing = study.standing()
    rows = [row.as_json() for row in human_rows(study, standing)]
    assert digest(rows) == "6f5904a5713169b09c511b1a370ba35adac213cfff8a24995fa2f0b32872437f"
    assert results(study, standing)["kept"]["questions"]["quality"]["answers"] == {"1": 3, "2": 1, "3": 0}
    # what is left of the seat that was begun: its check (of whoever takes over) and two items
    assert [place.item[:3] for place in open_places(study, standing, 2)] == ["i15", "i52", "ie0"]
    again = amended(second, {"lease_hours": 24}, who="ana", why="faster", created_at=NOW)
    replace_protocol(study, again)
    assert open_study(study.folder).protocol == again
    with pytest.raises(ConfigError, match="not there"):
        amended(again, {"participant": "workerId"}, who="ana", why="so", created_at=NOW)
