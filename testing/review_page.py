"""The pages of a study as a program reads them: what is asked, what is shown, what a request needs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

from ..schemas.canonical import Json


@dataclass
class Field:
    """A question of a page."""

    place: str  # what the answer is called in a vote
    name: str  # of the question
    part: str  # id of the part that it is about; empty for the whole item
    type: str  # choice, scale, labels, text or edits
    most: int  # how many labels at most
    optional: bool  # whether it may be left out
    when: Mapping[str, Sequence[Json]]  # name of another question -> answers at which it is asked
    # values that can be chosen, in the order shown; with ``unclear`` where it is one
    options: list[Json] = field(default_factory=list)
    unclear: bool = False  # whether ``unclear`` may be answered
    # path -> what can be corrected: value, takes, options, optional
    values: dict[str, Mapping[str, Json]] = field(default_factory=dict)

    def is_due(self, answers: Mapping[str, Json]) -> bool:
        """Return whether it is asked after the answers given."""
        of_part = f"/{self.part}" if self.part else ""
        return all(
            answers.get(f"{name}{of_part}", answers.get(name)) in wanted for name, wanted in self.when.items()
        )


@dataclass
class Page:
    """A page of a study."""

    kind: str = ""  # consent, item, overview, break, done, error
    token: str = ""  # what requests are sent with
    key: str = ""  # of an item, with ``#n`` for a repetition
    block: str = ""  # that the overview closes
    seconds: float = 0.0  # that a break lasts
    expertise: list[str] = field(default_factory=list)  # levels that can be declared
    fields: list[Field] = field(default_factory=list)  # what is asked
    media: list[str] = field(default_factory=list)  # addresses of the pictures and videos
    said: str = ""  # texts of the page, such as its heading


def read_page(text: str) -> Page:
    """Return what a page shows and asks."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.page


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.page = Page()
        self._in: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "body":
            self.page.kind = given.get("data-page", "")
        elif tag == "meta" and given.get("name") == "review-token":
            self.page.token = given["content"]
        elif tag in ("img", "video") and given.get("src", "").startswith("/media/"):
            self.page.media.append(given["src"])
        elif tag == "fieldset" and "data-place" in given:
            self.page.fields.append(_field(given))
        elif tag in ("input", "option"):
            self._take_option(tag, given)
        self.page.key = given.get("data-key", self.page.key)
        self.page.block = given.get("data-block", self.page.block)
        self.page.seconds = float(given.get("data-seconds", self.page.seconds))
        if tag == "h1":
            self._in.append(tag)

    def _take_option(self, tag: str, given: Mapping[str, str]) -> None:
        known = self.page.fields[-1] if self.page.fields else None
        if given.get("name") == "expertise":
            self.page.expertise.append(given["value"])
        elif known is not None and tag == "option" and "data-value" in given:
            known.values[given["value"]] = json.loads(given["data-value"])
        elif known is not None and "data-unclear" in given:
            known.unclear = True
        elif known is not None and tag == "input" and given.get("name") == known.place:
            known.options.append(json.loads(given["value"]))
            known.unclear = known.unclear or known.options[-1] == "unclear"

    def handle_endtag(self, tag: str) -> None:
        if self._in and self._in[-1] == tag:
            self._in.pop()

    def handle_data(self, data: str) -> None:
        if self._in:
            self.page.said += data


def _field(given: Mapping[str, str]) -> Field:
    return Field(
        place=given["data-place"], name=given["data-name"], part=given["data-part"], type=given["data-type"],
        most=int(given["data-most"]), optional="data-optional" in given, when=json.loads(given["data-when"]),
    )  # fmt: skip
