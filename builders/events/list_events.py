"""Stage: the events of a prompt and who leads it, where nobody has said: by a model, or else by rules."""

from ...engine.asking import Ask, BadReply
from ...engine.stage import Item, Made, Outcome, StageSpec, Tools
from ...models.settings import ModelSettings
from ...models.spec import parse_spec
from ...prompts.loader import load_prompt
from ...schemas.canonical import Json
from .rules import MAKER, participants_of, split_events

LIST = "events/list_events"

SPEC = StageSpec(
    name="list_events",
    version=3,
    shape="map",
    reads=("drafted",),
    writes=("entry", "listed_by"),
    settings=ModelSettings,
    asks=(LIST,),
)


async def run(item: Item, tools: Tools) -> Outcome:
    """Return the prompt with events, participants and origin; and who listed the events."""
    drafted, maker = item["drafted"], "given"
    if drafted["given"] is not None:
        return Made({"entry": drafted, "listed_by": maker})
    prompt = " ".join(drafted["prompt"].split())
    found = {"event_list": drafted["event_list"], "participants": drafted["participants"]}
    creative = drafted["creative"]
    if not found["event_list"] or not found["participants"]:
        if tools.asker is None:
            listed, maker = (
                {"event_list": list(split_events(prompt)), "participants": list(participants_of(prompt))},
                MAKER,
            )
        else:
            listed, maker = await _ask(prompt, tools)
            creative = listed["creative"] if creative is None else creative
        found = {name: found[name] or listed[name] for name in found}
    entry = {"prompt": prompt, **found, "creative": creative}
    entry |= {"origin": drafted["origin"], "given": None}
    return Made({"entry": entry, "listed_by": maker})


async def _ask(prompt: str, tools: Tools) -> tuple[dict[str, Json], str]:
    settings = tools.settings
    assert isinstance(settings, ModelSettings)
    assert tools.asker is not None
    template = load_prompt(LIST)
    request = template.request(settings, tools.seed, prompt=prompt)
    answer = await tools.asker.ask(Ask(request, _read, template.label, sample=settings.sample))
    spec = parse_spec(settings.model or "")
    name = spec.text if spec.base_url is None else f"{spec.provider}:{spec.name}"
    return answer.value, ", ".join([f"{name} via {template.label}", *answer.notes])


def _read(reply: Json) -> dict[str, Json]:
    events = [" ".join(str(event).split()) for event in reply["event_list"]]
    # One event, or five, may be the truth about a prompt: the conditions then reject it.
    if not events or not all(events):
        raise BadReply("$.event_list: expected the events of the prompt, found none, or an empty one")
    if not reply["participants"]:
        raise BadReply("$.participants: expected at least one, found none")
    kinds = list(dict.fromkeys(reply["participants"]))
    return {"event_list": events, "participants": kinds, "creative": bool(reply["creative"])}
