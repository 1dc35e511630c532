"""Report documents for tests: a plausible one with drawn pictures, and one full of hostile text.

Their numbers are made up and mean nothing.
"""

from collections.abc import Sequence
from pathlib import Path

from ..evaluation.report.model import (
    Case,
    CaseItem,
    Cases,
    Comparison,
    CountRow,
    CountTable,
    Definition,
    Measure,
    ReportDocument,
    ScoreRow,
    ScoreTable,
    Verdict,
)
from ..evaluation.report.showing import Thumbnails
from ..pages.figures import Plot, PlotPoint
from ..schemas.values import Score

HOSTILE = (
    "</bdi></script></style><script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=1">',
    "&lt;b&gt; &amp; &#x3C;i&#x3E; ' \" ` =1+1 {{ 7 * 7 }} {% raw %}",
    "left \u202eright to left\u2066 isolate \u2028 line \x00 \x1b[31m bell\x07",
    "\u05e9\u05dc\u05d5\u05dd, \u0645\u0631\u062d\u0628\u0627 (1) 123",
    "x" * 400,
    "]]> --> <!-- javascript:alert(1) \ud800",
)
CONDITIONS = {"text": "Text", "image": "Images", "text_image": "Text and images"}
DIMENSIONS = ("action_visibility", "causal", "emotional", "consequence", "temporal_order", "moral")
JUDGES = ("google:gemini-2.5-flash", "openai:gpt-4o", "anthropic:claude-sonnet-4-5")


def score(value: float, half: float = 0.03, count: int = 480) -> Score:
    """Return a score with an interval of this half width."""
    return Score(
        value=value, status="ok", numerator=value * count, denominator=count, low=value - half,
        high=value + half, counts={"questions": count},
    )  # fmt: skip


def undefined(reason: str = "no valid question") -> Score:
    """Return a score without a value."""
    return Score(value=None, status="undefined", reason=reason)


def made_report(
    folder: Path | None = None, texts: Sequence[str] = ("The crow drops pebbles into the jar.",)
) -> ReportDocument:
    """Return a document with every part filled."""
    methods = ("sdxl + planner", "storyboard-model-with-a-rather-long-name-v2", texts[0][:60])
    return ReportDocument(
        kind="katha",
        title="Made-up evaluation of three storyboards",
        facts={"Release": "0.1.0", "Stories": "24", "Methods": "3", "Judges": "3", "Judgements": "6,912"},
        warnings=("One method has a negative gap before filtering.", texts[-1]),
        reading=("The gap is what text tells and the pictures do not. Lower is better.",),
        headline=_headline(methods),
        plots=(_plot(methods),),
        details=(_by_dimension(methods),),
        comparisons=(_comparison(methods[0], methods[1]), _comparison(methods[0], methods[2])),
        comparison_note="Wilcoxon signed-rank tests over stories, Bonferroni over 2 comparisons.",
        accounting=(_outcomes(),),
        cases=_cases(folder, methods, texts),
        agreement=(_agreement(),),
        agreement_note="Over all questions that every judge answered.",
        cost=_cost(),
        definitions=(Definition(name="nonresponse", value="incorrect", meaning="No answer is no answer."),),
        manifest={"protocol": {"texts": list(texts[:5])}, "subject": {}, "environment": {"fabula": "0"}},
    )


def _headline(methods: Sequence[str]) -> ScoreTable:
    measures = (
        Measure(name="r_text", label="Text", better="high"),
        Measure(name="r_image", label="Images", better="high"),
        Measure(name="stg", label="Gap", unit="points", better="low"),
        Measure(name="ambiguity", label="Ambiguity", better="low"),
    )
    rows = [
        ScoreRow(
            label=method,
            scores={
                "r_text": score(0.91 - 0.01 * n),
                "r_image": score(0.62 - 0.1 * n),
                "stg": score(0.29 + 0.09 * n),
                "ambiguity": score(0.08) if n < 2 else undefined(),
            },
            note="negative before filtering" if n == 2 else None,
        )
        for n, method in enumerate(methods)
    ]
    return ScoreTable(
        name="headline", title="Recoverability and gap", note="Equal weight per dimension.",
        measures=measures, rows=tuple(rows),
    )  # fmt: skip


def _by_dimension(methods: Sequence[str]) -> ScoreTable:
    return ScoreTable(
        name="by_dimension", title="Gap per dimension", note="Valid set of each method.",
        measures=tuple(Measure(name=name, label=name, unit="points") for name in DIMENSIONS),
        rows=tuple(
            ScoreRow(label=one, scores={name: score(0.1 * n + 0.05 * d) for d, name in enumerate(DIMENSIONS)})
            for n, one in enumerate(methods)
        ),
    )  # fmt: skip


def _plot(methods: Sequence[str]) -> Plot:
    gaps = {
        name.replace("_", " ").capitalize(): tuple(
            PlotPoint(
                series=method, score=score(0.12 * n + 0.05 * d - 0.06) if d < 5 or n < 2 else undefined()
            )
            for n, method in enumerate(methods)
        )
        for d, name in enumerate(DIMENSIONS)
    }
    return Plot(name="gaps", title="Gap per dimension", note="Points, with 95 % intervals.", unit="points",
                groups=gaps)  # fmt: skip


def _comparison(first: str, second: str) -> Comparison:
    return Comparison(
        measure="Gap", first=first, second=second, difference=score(-0.09, 0.04, 24),
        p={"Wilcoxon": 0.0008, "bootstrap": 0.0312},
        effects={"Cohen's d": -0.61, "rank-biserial": None},
        pairs=24, verdict="The first has the smaller gap.",
    )  # fmt: skip


def _outcomes() -> CountTable:
    columns = {"asked": "Asked", "answered": "Answered", "refused": "Refused", "malformed": "Malformed"}
    rows = tuple(
        CountRow(label=judge, values={"asked": 2304, "answered": 2290, "refused": 14 - n, "malformed": n})
        for n, judge in enumerate(JUDGES)
    )
    return CountTable(
        name="outcomes", title="Replies by outcome", heading="Judge", columns=columns, rows=rows
    )


def _agreement() -> ScoreTable:
    return ScoreTable(
        name="agreement", title="Agreement between judges", heading="Condition",
        measures=(Measure(name="fleiss", label="Fleiss' kappa", unit="number", better="high"),),
        rows=tuple(ScoreRow(label=name, scores={"fleiss": score(0.71)}) for name in CONDITIONS.values()),
    )  # fmt: skip


def _cost() -> CountTable:
    columns = {"calls": "Replies", "input": "Input tokens", "output": "Output tokens", "usd": "Cost, USD"}
    rows = tuple(
        CountRow(label=judge, values={"calls": 2304, "input": 2_304_000, "output": 92_160, "usd": cost})
        for judge, cost in zip(JUDGES, (0.5312, 4.1, None), strict=True)
    )
    return CountTable(name="cost", title="Replies and cost", heading="Judge", columns=columns, rows=rows)


def _cases(folder: Path | None, methods: Sequence[str], texts: Sequence[str]) -> Cases:
    small = Thumbnails()
    files: list[Path | None] = [None, None]
    if folder is not None:
        from .drawn import write_storyboard

        files = list(write_storyboard(folder, panels=2, suffix="png"))
    shown = []
    for number in range(6):
        text = texts[number % len(texts)]
        frames = tuple(small.frame(file, f"Scene {n + 1}", text) for n, file in enumerate(files))
        shown.append(
            Case(
                unit=f"kb25k_{number:04d}", title=text, place=f"scene {number + 1} to {number + 2}",
                method=methods[number % 3], seed=None if number % 2 else 7,
                why="worst" if number < 3 else "typical", score=score(0.5 - 0.1 * number),
                frames=frames, items=tuple(_item(n, text) for n in range(3)),
            )
        )  # fmt: skip
    return Cases(
        title="Transitions", note="6 of 96 transitions: the worst, and those nearest to the median.",
        measure=Measure(name="gap", label="Gap", unit="points", better="low"), total=96,
        conditions=CONDITIONS, shown=tuple(shown),
    )  # fmt: skip


def _item(number: int, text: str) -> CaseItem:
    verdicts = tuple(
        Verdict(
            judge=judge, condition=condition, outcome="answered" if n or number else "refused",
            answer=text, status="recoverable", confidence="high",
            correct=None if not (n or number) else condition != "image",
        )
        for n, judge in enumerate(JUDGES)
        for condition in CONDITIONS
    )  # fmt: skip
    return CaseItem(
        id=f"q{number}", group=DIMENSIONS[number], text=f"What happens next? {text}",
        accepted=(text, "pebbles"), verdicts=verdicts,
        combined={"text": True, "image": False, "text_image": None if number == 2 else True},
        valid=number != 2,
    )  # fmt: skip
