"""Stage: near-duplicates, and the most different of the prompts that a model wrote.

Prompts by people come first and stay; of a model's, the one that is least like any chosen one is taken next.
Similarity is the token-set ratio of normalised prompts without articles and joining words.
"""

from collections.abc import Iterable, Mapping

from ...engine.stage import Item, StageSpec, Tools
from ...schemas.canonical import Json
from ...schemas.text import normalize_answer
from .settings import SelectSettings

_SMALL = frozenset(("a", "an", "the", "and", "then", "finally", "its", "his", "her", "their", "it", "of"))

SPEC = StageSpec(
    name="select_prompts",
    version=1,
    shape="gather",
    reads=("entry", "unit"),
    writes=("choice",),
    libraries=("rapidfuzz",),
    settings=SelectSettings,
)


def run(items: Iterable[Item], tools: Tools) -> Mapping[str, Mapping[str, Json]]:
    """Return for each prompt null where it stays, or code and reason why it goes."""
    settings = tools.settings
    assert isinstance(settings, SelectSettings)
    rows = sorted(
        (item["entry"]["origin"] == "guided", item.id, item["unit"], _words(item["entry"]["prompt"]))
        for item in items
    )
    kept: list[tuple[str, str]] = []
    choices: dict[str, Json] = {}
    waiting: list[tuple[str, str]] = []
    units: dict[str, str] = {}
    for is_guided, name, unit, text in rows:
        if unit in units:
            choices[name] = {"code": "near_duplicate", "reason": f"the same file name as {units[unit]}"}
            continue
        units[unit] = name
        if is_guided:
            waiting.append((name, text))
        else:
            _take((name, text), kept, choices, settings)
    _choose(waiting, kept, choices, settings)
    return {name: {"choice": choices[name]} for _, name, _, _ in rows}


def _take(
    row: tuple[str, str], kept: list[tuple[str, str]], choices: dict[str, Json], settings: SelectSettings
) -> None:
    from rapidfuzz.fuzz import token_set_ratio

    name, text = row
    near = max(((token_set_ratio(text, other), other_name) for other_name, other in kept), default=(0.0, ""))
    if near[0] >= settings.near:
        choices[name] = {"code": "near_duplicate", "reason": f"{near[0]:.0f} of 100 like {near[1]}"}
        return
    choices[name] = None
    kept.append(row)


def _choose(
    waiting: list[tuple[str, str]],
    kept: list[tuple[str, str]],
    choices: dict[str, Json],
    settings: SelectSettings,
) -> None:
    """Take the waiting prompts one by one, always that which is least like any chosen one."""
    from rapidfuzz.fuzz import token_set_ratio

    nearest = {
        name: max((token_set_ratio(text, other) for _, other in kept), default=0.0) for name, text in waiting
    }
    left = dict(waiting)
    while left:
        name = min(left, key=lambda one: (nearest[one], one))
        text = left.pop(name)
        if nearest[name] >= settings.near:
            choices[name] = {
                "code": "near_duplicate",
                "reason": f"{nearest[name]:.0f} of 100 like one that stays",
            }
            continue
        if settings.most is not None and len(kept) >= settings.most:
            choices[name] = {
                "code": "not_chosen",
                "reason": f"{settings.most} prompts are chosen that differ more",
            }
            continue
        choices[name] = None
        kept.append((name, text))
        for other, words in left.items():
            nearest[other] = max(nearest[other], token_set_ratio(text, words))


def _words(prompt: str) -> str:
    return " ".join(word for word in normalize_answer(prompt).split() if word not in _SMALL)
