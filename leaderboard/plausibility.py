"""Whether replies can be what judges said who looked: copies, constants, impossible values, plants.

What is found is a reason to leave a row unranked until its makers have explained it; it proves no intent.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..evaluation.archive.archive import Archive
from ..evaluation.archive.replies import last_attempts
from ..schemas.canonical import canonical_text
from ..schemas.judgement import Judgement
from ..schemas.text import tallied
from ..schemas.values import Issue, Score
from .board import Board, Planted, question_of, what_of

FEW = 20
"""Below so many replies nothing is said about whether they are copied or constant."""
SAME = 0.98
"""Share of word-for-word equal replies about other outputs from which they count as copied."""
SILENT = ("unclear", "not_recoverable", "none")
EXPLAIN = "ask its makers how it was judged; evaluate again where they cannot say"


@dataclass(frozen=True)
class Replies:
    """The replies of a submission that are about its outputs, in a form that can be compared.

    Attributes:
        name: of the submission.
        submitted: when.
        outputs: hash of the outputs.
        raw: what was asked -> the reply as it came.
    """

    name: str
    submitted: str
    outputs: str | None
    raw: Mapping[tuple[object, ...], str]


def replies_of(name: str, submitted: str, method: str, archive: Archive) -> Replies:
    """Return the replies about a method's outputs."""
    about = (archive.manifest.subject.get("methods") or {}).get(method) or {}
    shown = {
        (*question_of(judgement), judgement.seed): judgement.raw or canonical_text(judgement.parsed)
        for judgement in last_attempts(archive.judgements)
        if judgement.method == method and judgement.outcome == "answered"
    }
    return Replies(name, submitted, about.get("outputs_sha256"), shown)


def copied(every: Iterable[Replies]) -> Iterator[tuple[str, Issue]]:
    """Yield the submissions that repeat one before them: its outputs, or what judges said of them.

    Judges that look at other pictures do not answer everything in the same words. Of two that are alike, the
    one that was submitted first stays.
    """
    earlier: list[Replies] = []
    for replies in sorted(every, key=lambda each: (each.submitted, each.name)):
        for other in earlier:
            if replies.outputs is not None and replies.outputs == other.outputs:
                message = f"its outputs are those of {other.name}, byte for byte"
                yield replies.name, _issue("copied-outputs", message)
            else:
                shared = replies.raw.keys() & other.raw.keys()
                same = sum(replies.raw[key] == other.raw[key] for key in shared)
                if len(shared) >= FEW and same >= SAME * len(shared):
                    message = (
                        f"{same:,} of {len(shared):,} replies about its outputs are those to {other.name}"
                    )
                    yield replies.name, _issue("copied-answers", f"{message}, word for word")
                else:
                    continue
            break
        earlier.append(replies)


def constant(archive: Archive, method: str) -> Iterator[Issue]:
    """Yield the kinds of question to which everything was answered alike.

    A warning where no answer tells anything: outputs that show nothing are answered so.
    """
    said: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for judgement in last_attempts(archive.judgements):
        if judgement.method == method and judgement.parsed is not None:
            said[what_of(judgement)][canonical_text(judgement.parsed)] += 1
    for what, answers in sorted(said.items()):
        text, count = answers.most_common(1)[0]
        if len(answers) == 1 and count >= FEW:
            silent = any(word in text for word in SILENT)
            message = f"all {count:,} replies to {what} are {text[:120]}"
            yield _issue("constant-answers", message, level="warning" if silent else "error")


def impossible(archive: Archive, method: str, scores: Mapping[str, Score], board: Board) -> Iterator[Issue]:
    """Yield numbers that cannot be: counts of tokens and USD below zero, shares outside of 0 to 1."""
    wrong = Counter(problem for judgement in archive.judgements for problem in _impossible(judgement))
    for problem, count in sorted(wrong.items()):
        yield _issue("impossible-value", f"{tallied(count, 'judgements')} with {problem}")
    about = (archive.manifest.subject.get("methods") or {}).get(method) or {}
    for made, wanted in COUNTS:
        if _number(about.get(made)) > _number(about.get(wanted), math.inf):
            yield _issue("impossible-value", f"{about[made]} of {about[wanted]} are valid ({made})")
    for measure in board.measures:
        score = scores.get(measure.name)
        if score is None or score.value is None:
            continue
        low = {"percent": 0.0, "points": -1.0}.get(measure.unit, -math.inf)
        high = 1.0 if measure.unit in ("percent", "points") else math.inf
        if not low <= score.value <= high:
            yield _issue("impossible-value", f"{measure.label} is {score.value}")


COUNTS = (
    ("generations_valid", "generations_requested"), ("stories_valid", "stories_requested"),
    ("shots_valid", "shots_requested"), ("valid", "requested"),
)  # fmt: skip
"""What is valid of outputs, and what was asked for, as the manifests of the protocols call it."""


def _number(value: Any, otherwise: float = 0.0) -> float:  # noqa: ANN401 - of a manifest that anybody wrote
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else otherwise


def _impossible(judgement: Judgement) -> Iterator[str]:
    if _number(judgement.input_tokens) < 0 or _number(judgement.output_tokens) < 0:
        yield "fewer than no tokens"
    if judgement.cost is not None and not 0 <= judgement.cost < math.inf:
        yield "a cost below 0, or none that is a number"


def planted_issues(planted: Planted, archive: Archive, score: Score | None) -> Iterator[Issue]:
    """Yield why planted outputs were not judged as somebody judges them who looks.

    Args:
        planted: what was planted.
        archive: of the submission.
        score: of the planted outputs in it; None where they were not judged.
    """
    about = (archive.manifest.subject.get("methods") or {}).get(planted.method)
    if about is None or score is None or score.value is None:
        cure = f"judge the planted outputs, too: another --outputs, of method {planted.method}"
        yield Issue(
            "evaluation.json", "$.subject", "planted-missing", "the planted outputs were not judged", cure
        )
    elif about.get("outputs_sha256") != planted.outputs_sha256:
        yield _issue("planted-changed", "the planted outputs are not those of the maintainer")
    elif not planted.low <= score.value <= planted.high:
        yield _issue(
            "planted-failed",
            f"the planted outputs have {score.value:.3f}; judges that look give {planted.low:.3f} to "
            f"{planted.high:.3f}",
        )


def _issue(code: str, message: str, level: str = "error") -> Issue:
    return Issue("judgements.jsonl", "$", code, message, EXPLAIN, "error" if level == "error" else "warning")
