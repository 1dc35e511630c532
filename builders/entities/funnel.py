"""The curation funnel: how much of the source is left after each step, as Table 2 of EntityBench has it."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field

from ...engine.status import RunReport
from ...schemas.canonical import Json
from .filter_shots import CONTENT, DECIDES, QUALITY
from .filter_shots import SPEC as FILTER

_APART = "__shot"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the funnel."""

    name: str  # as in Table 2
    unit: str  # what is counted: videos or shots
    before: int  # how many came in
    after: int  # how many went on
    codes: Mapping[str, int] = field(default_factory=dict)  # why the others did not, code -> how many

    @property
    def retained(self) -> float | None:
        """Share that went on; None where nothing came in."""
        return self.after / self.before if self.before else None

    def as_json(self) -> Json:
        """Return the step with its share."""
        return {**asdict(self), "codes": dict(self.codes), "retained": self.retained}


def curation_funnel(
    report: RunReport, kept: Iterable[str], windows: Iterable[Collection[str]] = ()
) -> tuple[Step, ...]:
    """Return the steps from the videos to the shots of the chosen windows.

    - *Reading (videos)*: files that could be read, of all that were found.
    - *Quality filtering (shots)*: shots without an objection to themselves, of all that were found.
    - *Content filtering (videos)*: videos without an objection to them as a whole, of those with a shot left.
    - *Window selection (shots)*: shots in at least one chosen window, of those that were left.
    """
    left = set(kept)
    fallen: Counter[str] = Counter()
    blocked: dict[str, str] = {}
    for item in report.items:
        if item.stage == FILTER.name and item.status == "rejected" and item.code in CONTENT:
            blocked[video_of(item.id)] = item.code
        elif _APART in item.id and item.stage in _BEFORE and item.status in ("rejected", "failed"):
            fallen[str(item.code)] += 1
    content = {item.id for item in report.items if item.stage == FILTER.name and item.code in CONTENT}
    clean = left | content
    videos = {video_of(shot) for shot in clean}
    chosen = {shot for window in windows for shot in window}
    return (
        _reading(report),
        Step("Quality filtering", "shots", len(clean) + fallen.total(), len(clean), _ordered(fallen)),
        Step(
            "Content filtering", "videos", len(videos), len(videos - set(blocked)),
            _ordered(Counter(blocked.values())),
        ),
        Step("Window selection", "shots", len(left), len(chosen)),
    )  # fmt: skip


_BEFORE = ("measure_quality", "read_subtitles", "judge_style", "compare_shots", FILTER.name)
_READING = ("load_videos", "detect_shots")


def _reading(report: RunReport) -> Step:
    failed = Counter(str(item.code) for item in report.items if item.stage in _READING)
    made = next((stage.made for stage in report.stages if stage.name == "detect_shots"), 0)
    return Step("Reading", "videos", made + failed.total(), made, _ordered(failed))


def _ordered(codes: Counter[str]) -> dict[str, int]:
    """Return counts in the order of the codes of the filter, others behind them."""
    known = [code for code in (*QUALITY, *CONTENT) if code in codes]
    return {code: codes[code] for code in (*known, *sorted(set(codes) - set(known)))}


def video_of(shot_id: str) -> str:
    """Return the id of the video that a shot is of."""
    return shot_id.rpartition(_APART)[0]


def funnel_lines(steps: Iterable[Step]) -> list[str]:
    """Return the funnel as lines for people."""
    lines = []
    for step in steps:
        share = "-" if step.retained is None else f"{step.retained:.0%}"
        lost = ", ".join(f"{count} {code}" for code, count in step.codes.items())
        shown = f"{step.name} ({step.unit}): {step.before:,} -> {step.after:,}, {share}"
        lines.append(f"{shown} ({lost})" if lost else shown)
    return lines


def advice_lines(steps: Iterable[Step]) -> list[str]:
    """Return which settings decided about what was filtered out, as lines for people; most frequent first."""
    lost: Counter[str] = Counter()
    for step in steps:
        lost.update({code: count for code, count in step.codes.items() if code in DECIDES})
    return [
        f"  {code}: --set {FILTER.name}.{DECIDES[code]}=... decides about it (docs/shot_detection.md)"
        for code, _ in lost.most_common()
    ]
