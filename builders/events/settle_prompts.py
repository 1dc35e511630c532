"""Stage: what was chosen becomes an entry of the suite; the others are rejected with their reason."""

from ...engine.stage import Item, Made, Outcome, Rejected, StageSpec, Tools
from .grade_prompts import labelled

SPEC = StageSpec(
    name="settle_prompts",
    version=3,
    shape="map",
    reads=("choice", "drafted_by", "entry", "grade", "labels", "listed_by", "unit"),
    writes=("record",),
    reject_codes={
        "near_duplicate": "nearly the same as a prompt that stays",
        "not_chosen": "others differ more, and the suite is full",
        "silent": "too many methods without an answer of the judge",
        "unlike_people": "people and judge differ too much",
    },
)


def run(item: Item, tools: Tools) -> Outcome:
    """Return the record of a prompt: its entry in the official form, its name, and who made what."""
    choice, grade, entry, labels = item["choice"], item["grade"], item["entry"], item["labels"]
    for against in (choice, grade):
        if against is not None and "code" in against:
            return Rejected(against["code"], against["reason"])
    if grade is not None:
        labels = list(labelled(labels, grade["level"]))
    kept = {} if entry["given"] is None else entry["given"]["entry"]
    official = {"prompt": entry["prompt"], "event_list": entry["event_list"], **kept, "class": labels}
    made = {"prompt": item["drafted_by"], "event_list": item["listed_by"]}
    return Made(
        {"record": {"unit": item["unit"], "entry": official, "origin": entry["origin"], "producers": made}}
    )
