"""The pages of adjudicators: the cases of a study, and one case with all that was said about it.

Reviewers get none of it: for them these addresses are not there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from ....schemas.canonical import Json
from ..adjudication import ADJUDICATOR, REASON, NotDecided, cases, decide, has_reviewed
from ..corrections import edits_after, listed_edits, values_of
from ..design import Place
from ..items import Part, Value, opaque
from ..points import Known, Point
from ..standing import Reviewer
from ..task import LONGEST_TEXT, Question, place_of
from .pages import Reader, Shown
from .routes import Routes
from .server import Refused, sent_id

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

LISTED = 500
"""Most cases of a list."""


def adjudication_routes(routes: Routes) -> list[Any]:
    """Return the routes of adjudication, to be added to those of a study."""
    from starlette.routing import Route

    own = Adjudication(routes)
    return [
        Route("/cases", own.cases),
        Route("/case/{case}", own.case),
        Route("/api/decide", routes.change(own.decide, role=ADJUDICATOR), methods=["POST"]),
    ]


@dataclass
class Adjudication:
    """What the addresses of adjudication answer."""

    routes: Routes
    _seen: int = field(default=-1, repr=False)
    _cases: list[Point] = field(default_factory=list, repr=False)
    _points: Known = field(default_factory=dict, repr=False)

    def known(self) -> list[Point]:
        """Return all cases, decided ones too; they are looked for again when something has happened."""
        server = self.routes.server
        server.catch_up()
        if self._seen != server.standing.events:
            self._cases = cases(server.study, server.standing, everything=True, known=self._points)
            self._seen = server.standing.events
        return self._cases

    def adjudicator(self, request: "Request") -> Reviewer | None:
        """Return the adjudicator who asks; None where it is somebody else, or nobody."""
        person = self.routes.person_of(request)
        fits = person is not None and not person.revoked and person.role == ADJUDICATOR
        return person if fits else None

    async def cases(self, request: "Request") -> "Response":
        """List the cases that somebody may decide, open ones first."""
        person = self.adjudicator(request)
        if person is None:
            return self.routes.error(request, 404, "error.lost")
        listed = sorted(self._own(person), key=lambda point: not point.is_open)
        reader = self.routes.reader(request)
        page = self.routes.server.pages.show(
            "cases", reader, total=len(listed), left=sum(point.is_open for point in listed),
            entries=[self._entry(reader, point) for point in listed[:LISTED]],
        )  # fmt: skip
        return self.routes.page(request, page)

    def _own(self, person: Reviewer) -> list[Point]:
        return [point for point in self.known() if not has_reviewed(person, point.item)]

    def _entry(self, reader: Reader, point: Point) -> dict[str, Json]:
        part = self._part(point)
        why = [reader.say(f"case.why.{reason}") for reason in point.verdict.why]
        return {"case": point.id, "about": point.about, "title": dict(point.question.title),
                "part": part.text if part else "", "why": why, "open": point.is_open}  # fmt: skip

    async def case(self, request: "Request") -> "Response":
        """Show a case: the item, what each reviewer said, and what is to be decided."""
        person = self.adjudicator(request)
        known = {} if person is None else {point.id: point for point in self._own(person)}
        point = known.get(request.path_params["case"])
        if person is None or point is None:
            return self.routes.error(request, 404, "error.lost")
        others = [each for each in known.values() if each.is_open and each is not point]
        after = next(
            (each.id for each in others if each.item == point.item), others[0].id if others else None
        )
        return self.routes.page(request, self._page(self.routes.reader(request), point, after))

    def _page(self, reader: Reader, point: Point, following: str | None) -> str:
        from markupsafe import Markup

        pages, study = self.routes.server.pages, self.routes.server.study
        item, after = study.items[point.item], edits_after(study.task, point.question)
        shown = Shown(item, Place(point.item, 0), item.parts, study.task.card, point.id)
        values = () if after is None else values_of(item, after, point.part)
        return pages.show(
            "case", reader, point=point, item=shown, part=self._part(point), values=values,
            evidence=Markup(pages.evidence(reader, shown)), votes=self._votes(point, after, values),
            decided=_decided(point), answers=_begun(point, after), following=following,
            asked_questions=[point.question, *([after] if after is not None else ()), _reason(reader)],
            place_of=place_of, longest_text=LONGEST_TEXT,
        )  # fmt: skip

    def _votes(self, point: Point, after: Question | None, values: Sequence[Value]) -> list[dict[str, Any]]:
        """Return what each reviewer said, under letters; which letter is whose is drawn for each item."""
        secret, known = self.routes.server.study.secret, {value.path: value for value in values}
        ordered = sorted(point.said, key=lambda said: opaque(secret, "letter", point.item, said.reviewer))
        return [
            {
                "letter": _letter(number),
                "answer": _text_of(point.question, said.answer),
                "note": said.note,
                "said": _as_answers(point, after, said.answer, said.edits),
                "edits": [
                    {"label": known[path].label, "old": known[path].value, "new": new}
                    for path, new in sorted(said.edits.items())
                ],
            }
            for number, said in enumerate(ordered)
        ]

    def _part(self, point: Point) -> Part | None:
        parts = self.routes.server.study.items[point.item].parts.get(point.question.each or "", ())
        return next((part for part in parts if part.id == point.part), None)

    async def decide(self, person: Reviewer, body: Mapping[str, Json]) -> None:
        """Take a decision; one that was sent before counts once."""
        server = self.routes.server
        sent = sent_id(body)
        server.catch_up()
        if server.standing.knows(f"{person.id}/{sent}"):
            return
        try:
            event = decide(server.study, server.standing, person.id, body, server.clock(), sent)
        except NotDecided as error:
            status, why = REFUSED.get(error.code, (422, "answers"))
            raise Refused(status, why, {error.place: error.code} if error.place else {}) from error
        if event is not None:
            await server.put(event)


REFUSED = {"role": (403, "page"), "own": (403, "page"), "case": (409, "closed")}
"""Why a decision is not taken -> status and word of the answer; all else is a matter of what was answered."""


def _letter(number: int) -> str:
    return ascii_uppercase[number] if number < len(ascii_uppercase) else str(number + 1)


def _reason(reader: Reader) -> Question:
    title = {"en": reader.say("case.reason")}
    return Question(name=REASON, type="text", title=title, help={"en": reader.say("case.reason.help")})


def _text_of(question: Question, answer: Json) -> Any:  # noqa: ANN401 - texts by language
    """Return how an answer reads, by language."""
    listed = answer if isinstance(answer, list) else [answer]
    texts = {option.value: dict(option.text) for option in question.choices}
    if len(listed) == 1:
        return texts.get(listed[0], {"en": str(listed[0])})
    return {"en": ", ".join(str(texts.get(value, {}).get("en", value)) for value in listed)}


def _decided(point: Point) -> Sequence[dict[str, Any]]:
    return [
        {
            "value": _text_of(point.question, each.value),
            "reason": each.reason,
            "stands": each is point.decision,
        }
        for each in reversed(point.decisions)
    ]


def _begun(point: Point, after: Question | None) -> dict[str, Json]:
    """Return the answers that the form begins with: those of the decision that stands."""
    decision = point.decision
    if decision is None:
        return {}
    return {REASON: decision.reason, **_as_answers(point, after, decision.value, decision.edits)}


def _as_answers(
    point: Point, after: Question | None, value: Json, edits: Mapping[str, Json]
) -> dict[str, Json]:
    """Return an answer with its corrections as the form has them: place -> answer."""
    listed = {} if after is None or not edits else {place_of(after.name, point.part): listed_edits(edits)}
    return {point.place: value, **listed}
