"""Rules about the prompts of a suite, whatever they were read from."""

from collections.abc import Iterator, Mapping

from ...schemas.events import EventPrompt
from ...schemas.issue import Issue
from ...schemas.paths import Steps
from ...schemas.quoted_paths import quoted_path
from ..codes import show
from ..redacted import find_redacted
from .codes import issue
from .conditions import compared, nearest, objections, participants_in


def check_prompts(prompts: Mapping[str, EventPrompt], where: str) -> Iterator[Issue]:
    """Yield everything that is wrong with the prompts of a suite.

    As in a build, near-duplicates are sought among the prompts that meet the conditions, and the first stays.

    Args:
        prompts: file name of the video -> its prompt.
        where: the file that holds them.
    """
    names: list[str] = []
    texts: list[str] = []
    for name, prompt in prompts.items():
        yield from check_entry(prompt, where, (name,))
        against = list(objections(prompt.prompt, prompt.event_list, participants_in(prompt.labels)))
        for found in against:
            yield issue(found.code, where, quoted_path((name, found.field)), found.message)
        if against:
            continue
        text = compared(prompt.prompt)
        if near := nearest(text, texts):
            message = f"{near[0]:.0f} of 100 like {show(names[near[1]], 240)}"
            yield issue("near-duplicate", where, quoted_path((name, "prompt")), message)
            continue
        names.append(name)
        texts.append(text)


def check_entry(prompt: EventPrompt, where: str, steps: Steps) -> Iterator[Issue]:
    """Yield what makes an entry unsound, whether or not it meets the conditions.

    Args:
        prompt: the entry.
        where: the file or record.
        steps: path of the entry in it.
    """
    yield from find_redacted(prompt.as_json(), where, steps)
    size = f"{len(prompt.event_list)}_events"
    if stated := [label for label in prompt.labels if label.endswith("_events") and label != size]:
        message = f"labelled {', '.join(stated)}, and has {size.replace('_', ' ')}"
        yield issue("event-label", where, quoted_path((*steps, "class")), message)
