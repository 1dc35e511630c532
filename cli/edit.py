"""``fabula edit``: correct one field of a run, or withdraw a record, as data."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from .command import command
from .common import answer

if TYPE_CHECKING:
    from ..builders.corrections import Correction


@command("edit")
def edit(
    run: Path,
    item: str,
    path: str | None = None,
    *,
    new: str | None = None,
    withdraw: bool = False,
    who: str = "",
    why: str = "",
    as_json: bool = False,
) -> int:
    """Correct one field of a record, or withdraw the record.

    The correction is added to the run's edits.jsonl; the next build or retry applies it. Works on runs of
    `build katha` and `build shots`; paths into a script are those of its story.json.

    Changes that follow from the correction are added too: a new gold answer joins the accepted answers; text
    that a scene gains is taken from the scene beside it; a renamed character changes in all texts that name
    it. If the corrected record breaks a rule, the command says so. The correction is kept all the same (exit
    code 0), because a second correction may be needed to complete it.

    A withdrawn record leaves its place in the splits empty, and its id is never used again.

    Options:
        run: Run folder.
        item: Record id.
        path: JSON path of the field, as in $.title.
        new: New value, as JSON (a string needs its quotes).
        withdraw: Take the whole record out, for good; the reason is published.
        who: Who makes the correction.
        why: The reason.

    Examples:
        fabula edit runs/mine kb25k_0001 '$.questions[0].gold_answer' --new '"the net broke"' --who ana
            --why 'names the event'
        fabula edit runs/shots hat '$.Shots[2]["Setting Description"].en' --new '"A dry river bed"' --who
            ana --why 'the text says so'
        fabula edit runs/mine kb25k_0003 --withdraw --who ana --why 'the translation is not free'
        fabula run retry runs/mine
    """
    from ..kinds import verbs

    if withdraw:
        if path is not None or new is not None:
            raise ConfigError(
                "--withdraw", what="a withdrawal takes out the whole record: it has no path and no --new",
                fix="leave them out",
            )  # fmt: skip
        made = verbs.withdraw(run, item, who=who, why=why)
    elif path is None or new is None:
        raise ConfigError(
            "fabula edit", what=f"{'the path' if path is None else '--new'} is missing",
            fix="see fabula edit --help",
        )  # fmt: skip
    else:
        made = verbs.correct(run, item, path, _value(new), who=who, why=why)
    return answer(made.as_json(), _lines(run, made), as_json=as_json)


def _lines(run: Path, made: "Correction") -> Iterator[str]:
    yield f"saved in {run / 'edits.jsonl'}"
    for edit in made.also:
        new = json.dumps(edit.new, ensure_ascii=False)
        yield f"also saved, because it follows from it: {edit.path} = {new}"
    yield from (f"note: {note}" for note in made.notes)
    yield from (f"{issue.level}: {issue}" for issue in made.issues)
    if any(issue.level == "error" for issue in made.issues):
        yield "As corrected, the record breaks the rules above: correct it further before you release it."
    yield f"apply it with: fabula run retry {run}"


def _value(text: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            "--new", what=f"{text[:200]!r} is not a JSON value ({error})",
            fix="put text in quotes: '\"text\"'",
        ) from error  # fmt: skip
