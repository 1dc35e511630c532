"""Stage: what was chosen becomes an entry of the suite; the others are rejected with their reason."""

from ...engine.stage import Item, Made, Outcome, Rejected, StageSpec, Tools

SPEC = StageSpec(
    name="settle_prompts",
    version=1,
    shape="map",
    reads=("choice", "drafted_by", "entry", "labels", "listed_by", "unit"),
    writes=("record",),
    reject_codes={
        "near_duplicate": "nearly the same as a prompt that stays",
        "not_chosen": "others differ more, and the suite is full",
    },
)


def run(item: Item, tools: Tools) -> Outcome:  # noqa: ARG001 - the face of a stage
    """Return the record of a prompt: its entry in the official form, its name, and who made what."""
    choice, entry = item["choice"], item["entry"]
    if choice is not None:
        return Rejected(choice["code"], choice["reason"])
    official = {"prompt": entry["prompt"], "event_list": entry["event_list"], "class": item["labels"]}
    made = {"prompt": item["drafted_by"], "event_list": item["listed_by"]}
    return Made(
        {"record": {"unit": item["unit"], "entry": official, "origin": entry["origin"], "producers": made}}
    )
