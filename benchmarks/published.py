"""The ledger of published numbers: every printed cell that can be checked, beside ours.

    FABULA_REFERENCE=FOLDER python benchmarks/published.py --out docs/published.md

Reads the released files, the printed tables and the texts of the four papers, and recomputes what they allow.
The page counts cells by table and verdict, and shows those that contradict others; ``published.csv`` beside
it has every cell that was compared.
"""

import argparse
import csv
import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from fabula.evaluation.events.judging import Results, import_results
from fabula.evaluation.events.score import score_archive
from fabula.evaluation.events.votes import Definitions
from fabula.evaluation.metrics.alignment import average
from fabula.evaluation.stats.tables import Table, correlate_tables, read_table
from fabula.releases.entities.tree import read_entity_set, statistics_of_set
from fabula.releases.events.form import load_suite
from fabula.schemas.values import Score

REPRODUCED = "reproduced"
WITH = "reproduced with the stated convention"
FOLLOWS = "follows from other printed cells"
NOT = "not reproducible"
NOBODY = "nobody can check"
CONTRADICTS = "contradicts other printed cells"
NONE = "no result"
CELLS = "published.csv"
VERDICTS = (REPRODUCED, WITH, FOLLOWS, NOT, CONTRADICTS, NOBODY, NONE)


@dataclass(frozen=True)
class Cell:
    """One printed number, or several that nobody can check.

    Attributes:
        place: table and cell.
        printed: as it is printed.
        ours: what its source gives, rounded as it is printed.
        convention: how it is counted, or why it cannot be.
        verdict: one of :data:`VERDICTS`.
        count: how many printed cells it stands for.
    """

    place: str
    printed: str
    ours: str
    convention: str
    verdict: str
    count: int = 1


def places(number: str) -> int:
    """Digits behind the point."""
    return len(number.partition(".")[2])


def agrees(value: float, printed: str) -> bool:
    """Whether a value rounds to a printed number; a value between two roundings agrees with both."""
    digits = places(printed)
    return abs(value - float(printed)) <= 0.5 * 10**-digits + 1e-9


_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def numbers(text: str) -> list[str]:
    """The numbers in a printed cell, without commas."""
    return [number.replace(",", "") for number in _NUMBER.findall(text)]


def rows_of(lines: Sequence[str], caption: str, *, above: bool = False) -> list[list[str]]:
    """The rows of a table, without marks and citations; ``above``: they stand above its caption."""
    at = next(index for index, line in enumerate(lines) if line.replace("*", "").strip().startswith(caption))
    found: list[list[str]] = []
    for line in lines[at - 1 :: -1] if above else lines[at + 1 :]:
        if "\t" in line:
            found.append([re.sub(r"</?\w+>|\$|\s*\[\d+\]", "", one).strip() for one in line.split("\t")])
        elif found and (above or len(line.strip()) > 60):
            break
    return found[::-1] if above else found


def checked(place: str, printed: str, ours: float, convention: str, verdict: str = FOLLOWS) -> Cell:
    """A cell with one number beside its value from elsewhere."""
    text = numbers(printed)[0]
    good = agrees(ours, text)
    return Cell(place, printed, f"{ours:.{places(text)}f}", convention, verdict if good else CONTRADICTS)


# EntityBench


EARLY = {
    1: ("table_3", "episodes"), 2: ("table_6", "most shots of an episode"), 3: ("table_3", "shots"),
    6: ("table_6", "characters in registries"), 7: ("table_6", "objects in registries"),
    8: ("table_6", "locations in registries"),
}  # fmt: skip
"""Column of the row of EntityBench in Table 1, after the name -> where our statistics have it."""


def early_cells(reference: Path, lines: Sequence[str]) -> Iterator[Cell]:
    """Tables 1, 2 and 11: the set beside others, how it was filtered, and the settings."""
    tables = statistics_of_set(read_entity_set(reference / "entitybench")[0]).as_json()["tables"]
    *others, mine = [row[1:] for row in rows_of(lines, "Table 1:") if len(row) > 11]
    for column, (key, label) in EARLY.items():
        value = next(row["values"]["all"] for row in tables[key]["rows"].values() if row["label"] == label)
        yield checked(f"Table 1, EntityBench, {label}", mine[column], value, "", REPRODUCED)
    for column, metrics, what in ((10, 6 + 24, "Tables 12 and 13"), (11, 21, "Table 14")):
        yield checked(
            f"Table 1, EntityBench, metrics of {what}", mine[column], metrics, "counted in the captions"
        )
    count = sum(bool(numbers(cell)) for row in others for cell in row)
    yield Cell("Table 1: other benchmarks", f"{count} cells", "", "said of other sets", NOBODY, count)
    for stage, before, after, share in rows_of(lines, "Table 2:")[1:4]:
        first, last = (float(numbers(text)[0]) for text in (before, after))
        yield checked(f"Table 2, {stage}, retained", share, 100 * last / first, "share of the printed counts")
    shots = sum(row["values"]["all"] for row in tables["table_3"]["rows"].values() if row["label"] == "shots")
    yield checked("Table 2, Window selection (shots), after", after, shots, "", REPRODUCED)
    yield Cell("Table 2: other counts", "5 cells", "", "what was left out is not released", NOBODY, 5)
    why = "settings and names of models: chosen, not measured"
    yield Cell("Table 11: settings", "12 settings", "", why, NONE)


def of_value(value: Any, printed: str) -> list[float]:  # noqa: ANN401 - any JSON
    """The numbers of one of our values that stand against those of a printed cell."""
    if not isinstance(value, Mapping):
        return [100 * value if "%" in printed and value <= 1 else float(value)]
    if "share" in value:
        return [100 * value["share"] if "%" in printed else value["count"]]
    return [value["mean"], value["sd"]] if "±" in printed else [value["mean"]]


def entity_cells(reference: Path) -> Iterator[Cell]:
    tables = statistics_of_set(read_entity_set(reference / "entitybench")[0]).as_json()["tables"]
    for key, table in tables.items():
        for row in table["rows"].values():
            for tier, cell in row["published"].items():
                main, bracket, other = cell.partition(" (")
                place = f"{name_of(key)}, {row['label']}, {tier}"
                yield entity_cell(place, main, row["values"][tier], row["convention"])
                if bracket and numbers(other):
                    second = other.removesuffix(")")
                    yield entity_cell(
                        f"{place}, {second.partition(' in ')[2] or 'count'}", second.partition(" in ")[0],
                        row["values"][tier], row["convention"],
                    )  # fmt: skip


SAID: dict[str, Callable[[float], bool]] = {
    "past 25": lambda value: value > 25,
    "about 0.5 to 1.0": lambda value: 0.5 <= value <= 1.0,
}
"""What is said in words -> whether a value is that."""


def name_of(key: str) -> str:
    kind, _, number = key.partition("_")
    return f"Table {number}" if kind == "table" else f"Section {number[:1].upper()}.{number[1:]}"


def entity_cell(place: str, printed: str, value: object, convention: str) -> Cell:
    given, wanted = of_value(value, printed), numbers(printed)
    shown = " ± ".join(f"{one:.{places(text)}f}" for one, text in zip(given, wanted, strict=False))
    if SAID.get(printed, lambda _: False)(given[0]):
        return Cell(place, printed, shown, convention, WITH if convention else REPRODUCED)
    if all(agrees(one, text) for one, text in zip(given, wanted, strict=False)):
        return Cell(place, printed, shown, convention, WITH if convention else REPRODUCED)
    return Cell(place, printed, shown, convention, NOT)


_FOUND = re.compile(r"[−+-]?\d+\.\d+|\d+")


def effects(lines: Sequence[str], first: str, last: str) -> dict[str, list[float]]:
    """Metric -> difference, d, d_z and n of the tables of effect sizes between two captions."""
    start = next(index for index, line in enumerate(lines) if line.startswith(first))
    stop = next(index for index, line in enumerate(lines) if line.startswith(last))
    found: dict[str, str] = {}
    name = ""
    for line in lines[start:stop]:
        head = re.match(r"^([a-z]+(?:_[a-z]+)+)\b", line.strip())
        if head:
            name = head[1]
            found[name] = line.strip()[len(name) :]
        elif name:
            found[name] += line.strip()
    return {
        key: [float(number.replace("−", "-")) for number in _FOUND.findall(text.replace("\t", " "))]
        for key, text in found.items()
    }


CATEGORIES = {
    "Character fidelity (intra-shot)": r"intra_face_", "Character presence": r"intra_character_presence",
    "Action overall & sub-criteria": r"intra_action_", "Location fidelity (intra-shot)":
    r"intra_location_(?!presence)", "LLM character (cross-shot)": r"llm_face_", "Object presence":
    r"intra_object_presence", "Object fidelity (intra-shot)": r"intra_object_(?!presence)",
    "DINOv2 cross-shot (face / object / boundary)": r"cs_", "LLM object (cross-shot)": r"llm_object_",
    "LLM scene (cross-shot)": r"llm_scene_", "VBench intra-shot quality (Pillar 1)": "",
}  # fmt: skip
"""Row of Table 5 -> the metrics of Tables 16 to 18 that it sums up; the last one is Table 16."""


def effect_cells(lines: Sequence[str]) -> Iterator[Cell]:
    quality = effects(lines, "Table 16:", "Table 17:")
    others = effects(lines, "Table 17:", "Table 18:") | effects(lines, "Table 18:", "F.4")
    start = next(index for index, line in enumerate(lines) if line.startswith("Table 5:"))
    joined = "".join(line.strip() if "\t" not in line else f"\n{line}" for line in lines[start : start + 90])
    for category, pattern in CATEGORIES.items():
        found = re.search(rf"{re.escape(category)}\t\d+\t([+−])([\d.]+)", joined)
        if found is None:
            raise SystemExit(f"Table 5 has no row {category}")
        printed = f"{found[1].replace('−', '-')}{found[2]}"
        some = (
            quality.values()
            if not pattern
            else [row for key, row in others.items() if re.match(pattern, key)]
        )
        values = [row[1] for row in some]
        mean = sum(values) / len(values)
        yield Cell(
            f"Table 5, {category}", printed, f"{mean:+.2f}", "mean of d over its metrics in Tables 16 to 18",
            FOLLOWS if abs(mean - float(printed)) <= 0.0101 else CONTRADICTS,
        )  # fmt: skip


def coverage_cells(lines: Sequence[str]) -> Iterator[Cell]:
    """Corrected means of Tables 12 to 14 against raw mean times coverage of Table 15."""
    rows = [line.split("\t") for line in lines if "\t" in line]
    corrected = {
        re.sub(r"\W+$", "", row[0].strip()): row[1:5] for row in rows if len(row) == 5 and "/" not in row[1]
    }
    for name, *pairs in (row for row in rows if len(row) == 5 and " / " in row[1]):
        if name not in corrected:
            continue
        for method, pair, printed in zip(
            ("EntityMem", "StoryMem", "HoloCine", "CineTrans"), pairs, corrected[name], strict=True
        ):
            raw, share = map(float, pair.split(" / "))
            low, high = (raw - 0.0005) * (share - 0.005), (raw + 0.0005) * (share + 0.005)
            fits = low - 0.0005 <= float(printed) <= high + 0.0005
            yield Cell(
                f"Tables 13 and 14, {name}, {method}", printed, f"{raw * share:.3f}",
                "raw mean times coverage, both of Table 15", FOLLOWS if fits else CONTRADICTS,
            )  # fmt: skip


def tier_cells(lines: Sequence[str]) -> Iterator[Cell]:
    """Table 23 against the differences of Table 22; how many cells Tables 16 to 18 have."""
    start = next(index for index, line in enumerate(lines) if line.startswith("Table 22:"))
    metric, gaps = "", {}
    for line in lines[start : start + 40]:
        cells = line.split("\t")
        tier = next((cell for cell in cells if cell in ("Easy", "Medium", "Hard")), None)
        if tier is None:
            continue
        at = cells.index(tier)
        metric = cells[0].partition(" ")[0] if at else metric
        if len(cells) > at + 2 and numbers(cells[at + 1]):
            gaps[metric, tier] = float(cells[at + 1]) - float(cells[at + 2])
    after = "".join(line.strip() for line in lines[next(
        index for index, line in enumerate(lines) if line.startswith("Table 23:")
    ) :][:80])  # fmt: skip
    for (metric, tier), gap in gaps.items():
        found = re.search(rf"{metric}\D*?((?:[+−][\d.]+\s*){{3}})", after)
        if found is None:
            continue
        three = [number.replace("−", "-") for number in re.findall(r"[+−][\d.]+", found[1])]
        printed = three[("Easy", "Medium", "Hard").index(tier)]
        yield Cell(
            f"Table 23, {metric}, {tier}", printed, f"{gap:+.3f}", "difference of the cells of Table 22",
            FOLLOWS if abs(gap - float(printed)) <= 0.0011 else CONTRADICTS,
        )  # fmt: skip
    for first, last in (("Table 16:", "Table 17:"), ("Table 17:", "Table 18:"), ("Table 18:", "F.4")):
        count = sum(len(row) for row in effects(lines, first, last).values())
        yield Cell(f"{first.rstrip(':')}: effect sizes", f"{count} cells", "", RESULTS, NOBODY, count)


def unreleased(
    lines: Sequence[str], tables: Mapping[str, str], why: str, taken: Mapping[str, int] | None = None
) -> Iterator[Cell]:
    """How many cells of tables nobody can check: those with a number, less those that stand above."""
    for caption, said in tables.items():
        start = next(
            index for index, line in enumerate(lines) if line.replace("*", "").strip().startswith(caption)
        )
        count, seen = 0, False
        for line in lines[start + 1 : start + 80]:
            if "\t" in line:
                seen = True
                count += sum(bool(re.match(r"\W*(?:<b>)?[−+-]?\d", cell)) for cell in line.split("\t")[1:])
            elif seen and len(line.strip()) > 60:
                break
        count -= (taken or {}).get(caption, 0)
        if count:
            yield Cell(f"{caption[:-1]}: {said}", f"{count} cells", "", why, NOBODY, count)


# StoryEval

FILES = {
    ("pika1.5", "gpt4o"): "Pika-1.5", ("modelscope", "gpt4o"): "ModelScope",
    ("easyanimate", "gpt4o"): "EasyAnimate v4", ("modelscope", "llava"): "ModelScope",
    ("easyanimate", "llava"): "EasyAnimate v4", ("cogvideox", "llava"): "CogVideoX-5B",
}  # fmt: skip
TABLE = {"gpt4o": "Table 6 (GPT-4o)", "llava": "Table 8 (LLaVA-OV)"}
TABLE_8 = {
    "human": ("0.91", "0.81"), "animal": ("0.97", "0.89"), "object": ("0.96", "0.86"),
    "retrieval": ("0.89", "0.78"), "creative": ("0.98", "0.92"), "easy": ("0.96", "0.86"),
    "hard": ("0.71", "0.53"), "average": ("0.98", "0.93"),
}  # fmt: skip
TABLE_3 = {"retrieval": ("0.891", "0.782"), "creative": ("0.980", "0.917"), "average": ("0.982", "0.927")}
UNANIMOUS = "unanimous votes of those answered; a prompt without any answer counts 0"


def story_cells(reference: Path) -> Iterator[Cell]:
    suite = load_suite(reference / "storyeval" / "prompts" / "all_prompts.json")
    for judge, title in TABLE.items():
        released = {model: method for (method, one), model in FILES.items() if one == judge}
        with (reference / "tables" / f"storyeval_{judge}.tsv").open(encoding="utf-8") as handle:
            rows = list(csv.DictReader(handle, delimiter="\t"))
        for row in rows:
            model = row.pop("model")
            if model not in released:
                why = "the judge's replies are not released"
                yield Cell(f"{title}, {model}", f"{len(row)} cells", "", why, NOBODY, len(row))
                continue
            file = reference / "storyeval" / "results" / f"{released[model]}_{judge}_final.json"
            archive = import_results([Results(file)], suite).archive
            (panel,) = score_archive(archive, suite, Definitions(resamples=0)).panels
            for column, printed in row.items():
                score = panel.nonresponse if column == "non_response" else panel.classes[column]
                value = 100 * known(score.value)
                yield Cell(
                    f"{title}, {model}, {column}", printed, f"{value:.1f}", UNANIMOUS,
                    WITH if agrees(value, printed) else NOT,
                )  # fmt: skip
    yield from verifier_cells(reference)
    lines = (reference / "papers" / "storyeval.md").read_text("utf-8").splitlines()
    yield from repeated_cells(reference, lines)
    why = "the rates of people are not released"
    yield Cell("Table 4: differences from people under four ways to vote", "4 cells", "", why, NOBODY, 4)


def repeated_cells(reference: Path, lines: Sequence[str]) -> Iterator[Cell]:
    """Tables 1, 2, 3, 5 and 7: what repeats Tables 6 and 8, ranks, and lengths."""
    rates = {}
    for judge in TABLE:
        with (reference / "tables" / f"storyeval_{judge}.tsv").open(encoding="utf-8") as handle:
            found = list(csv.DictReader(handle, delimiter="\t"))
        rates[judge] = {row["model"]: row for row in found}
    whole = ("human", "animal", "object", "retrieval", "creative", "easy", "hard", "average")
    tables = (("Table 1.", "gpt4o", whole, "Table 6"), ("Table 3.", "llava", tuple(TABLE_3), "Table 8"))
    for caption, judge, columns, source in tables:
        for model, *cells in rows_of(lines, caption, above=True):
            if model not in rates[judge]:
                continue
            same = [
                float(numbers(cell)[0]) == float(rates[judge][model][column])
                for cell, column in zip(cells, columns, strict=True)
            ]
            yield Cell(
                f"{caption[:-1]}, {model}", f"{len(same)} cells", f"{sum(same)} the same",
                f"repeats {source}", FOLLOWS if all(same) else CONTRADICTS, len(same),
            )  # fmt: skip
    averages = {model: float(row["average"]) for model, row in rates["gpt4o"].items()}
    yield from ranked_cells(lines, averages)
    _, *rows = rows_of(lines, "Table 5.", above=True)
    for model, rate, frames, length in rows:
        value = float(frames) / float(rate)
        yield checked(f"Table 5, {model}, length", length, value, "frames by frames per second")
    count = 2 * len(rows)
    why = "properties of videos that are not released"
    yield Cell("Table 5: frames and their rate", f"{count} cells", "", why, NOBODY, count)


def ranked_cells(lines: Sequence[str], averages: Mapping[str, float]) -> Iterator[Cell]:
    """Tables 2 and 7: averages of Table 6 beside numbers of VBench, with ranks."""
    consistency: list[list[str]] = []
    for caption in ("Table 2.", "Table 7."):
        head, *rows = rows_of(lines, caption, above=True)
        pairs = [[numbers(cell) for cell in row[1:]] for row in rows]
        for column, name in enumerate(head[1:]):
            values = [float(row[column][0]) for row in pairs]
            for row, value, (_, rank) in zip(rows, values, (one[column] for one in pairs), strict=True):
                place = f"{caption[:-1]}, {name}, {row[0]}"
                above = 1 + sum(other > value for other in values)
                yield checked(f"{place}, rank", rank, above, "of the printed values")
                if "StoryEval" in name:
                    spelt = row[0].replace("Kling1", "Kling-1").replace("Pika1", "Pika-1")
                    yield checked(place, row[column + 1], averages[spelt], "average of Table 6")
            if "StoryEval" in name:
                continue
            cells = [row[column][0] for row in pairs]
            again = cells in consistency
            why = "repeats Table 2" if again else "VBench's own numbers, of other videos; not in the release"
            verdict = FOLLOWS if again else NOBODY
            yield Cell(f"{caption[:-1]}: {name}, values", f"{len(cells)} cells", "", why, verdict, len(cells))
            consistency.append(cells)


def known(value: float | None) -> float:
    """Return a value; a cell whose value is not defined must not be compared as 0."""
    if value is None:
        raise ValueError("a cell of the ledger has no value: say so in a row of its own")
    return value


def verifier_cells(reference: Path) -> Iterator[Cell]:
    tables = [read_table(reference / "tables" / f"storyeval_{judge}.tsv") for judge in TABLE]
    found = {one.first: one for one in correlate_tables(*tables, ["model"]).pairings}
    for title, printed in (("Table 8", TABLE_8), ("Table 3", TABLE_3)):
        for column, values in printed.items():
            _, *ranks = found[column].correlations
            for result, text in zip(ranks, values, strict=True):
                value = known(result.value)
                twice = agrees(round(value, 3), text)
                said = f"{result.name} of the printed rates of 11 models"
                said += "" if agrees(value, text) else "; rounded twice"
                yield Cell(
                    f"{title}, {column}", text, f"{value:.{places(text) + 2}f}", said,
                    FOLLOWS if twice else CONTRADICTS,
                )  # fmt: skip


# ViStoryBench

ALIAS = {"MMSStoryAgent": "MMStoryAgent"}
TEXTS = (
    ("Metrics page, Pearson of self-similarity and people", "0.80", "character_consistency", "cids_self", 0),
    ("Section H.7, Pearson of two judges", "0.93", "pa_avg", "lite_avg", 0),
    ("Section H.7, Spearman of two judges", "0.89", "pa_avg", "lite_avg", 1),
)
STATED = {
    "GPT-4o": {"pa_avg": "3.673", "occm": "93.5", "cids_cross": "0.571", "cids_self": "0.679",
               "csd_cross": "0.481", "csd_self": "0.680", "inception": "9.02", "aesthetics": "5.49"},
    "OmniGen2": {"cids_self": "0.537", "occm": "90.8"},
    "Doubao": {"pa_avg": "3.494"}, "MOKI": {"aesthetics": "5.79", "cids_cross": "0.214"},
    "MorphicStudio": {"csd_cross": "0.653"},
}  # fmt: skip
"""Method -> column of Table S4 -> what section B says of it."""


def vistory_cells(reference: Path) -> Iterator[Cell]:
    folder = reference / "tables"
    lite = read_table(folder / "vistory_lite_metrics.tsv")
    qwen = read_table(folder / "vistory_qwen_prompt_alignment.tsv")
    study = read_table(folder / "vistory_user_study.tsv")
    for table, prefix, title in ((lite, "pa", "S4"), (qwen, "lite", "S5"), (qwen, "full", "S5")):
        for row in (row for row in table.rows if numbers(row[f"{prefix}_avg"])):
            parts = [float(row[f"{prefix}_{name}"]) for name in ("scene", "shot", "ci", "ia")]
            value = known(average([Score.ratio(part, 1, "") for part in parts]).value)
            printed = row[f"{prefix}_avg"]
            fits = abs(value - float(printed)) <= 0.0101  # four roundings and one
            place = f"Table {title}, {row['method']} ({row['model']}), {prefix}_avg"
            yield Cell(
                place, printed, f"{value:.4f}", "mean of the four printed sub-scores",
                FOLLOWS if fits else CONTRADICTS,
            )  # fmt: skip
    why = "neither pictures, crops, vectors nor ratings are released"
    for title, table in (
        ("Table S4, without averages of alignment", lite),
        ("Table S5, without averages", qwen),
        ("Table S7, the user study", study),
    ):
        count = sum(
            bool(numbers(cell))
            for row in table.rows
            for name, cell in row.items()
            if name not in ("method", "model") and not name.endswith("_avg")
        )
        yield Cell(title, f"{count} cells", "", why, NOBODY, count)
    supplement = (reference / "papers" / "vistorybench_supplement.md").read_text("utf-8").splitlines()
    yield from mean_cells(supplement, lite, qwen)
    rest = {"Table S8.": "drawn references", "Table S9.": "seconds on their machine"}
    yield from unreleased(supplement, rest, why)
    *styles, (_, total) = rows_of(supplement, "Table S1.")[1:]
    summed = sum(int(count) for _, count in styles)
    yield checked("Table S1, total", total, summed, "sum of the printed styles")
    count = len(styles)
    yield Cell(
        "Table S1: stories by style",
        f"{count} cells",
        "",
        "the set is not among the files at hand",
        NOBODY,
        count,
    )
    yield from unreleased(supplement, {"Table S3.": "other data sets"}, "said of other sets")
    for place, printed, first, second, index in TEXTS:
        left, right = (study, lite) if index == 0 and first == "character_consistency" else (lite, qwen)
        exclude = ("StoryGen*",) if left is study else ()
        found = correlate_tables(left, right, ["method", "model"], [(first, second)], ALIAS, exclude)
        value = known(found.pairings[0].correlations[index].value)
        said = f"{found.shared} rows of {'Tables S7 and S4' if left is study else 'Tables S4 and S5'}"
        said += ", without StoryGen" if exclude else "; the text is about ratings by GPT-4.1, not printed"
        yield Cell(place, printed, f"{value:.3f}", said, FOLLOWS if agrees(value, printed) else CONTRADICTS)
    by_method = {row["method"]: row for row in lite.rows}
    for method, stated in STATED.items():
        for column, printed in stated.items():
            cell = by_method[method][column]
            yield Cell(
                f"Section B, {method}, {column}", printed, cell, "printed in Table S4",
                FOLLOWS if float(cell) == float(printed) else CONTRADICTS,
            )  # fmt: skip


S2 = (
    "csd_cross", "csd_self", "cids_cross", "cids_self", "occm", "aesthetics", "inception", "scene", "shot",
    "ci", "ia",
)  # fmt: skip


def mean_cells(lines: Sequence[str], lite: Table, qwen: Table) -> Iterator[Cell]:
    """Table S2 against means over the methods of Tables S4 and S5."""
    for split in ("Full", "Lite"):
        row = next(line.split("\t") for line in lines if line.startswith(f"{split}\t"))
        for column, printed in zip(S2, row[1:], strict=True):
            judged = column in S2[7:]
            if split == "Full" and not judged:
                yield Cell(f"Table S2, Full, {column}", printed, "", "no table by method", NOBODY)
                continue
            table, name = (qwen, f"{split.lower()}_{column}") if judged else (lite, column)
            values = [float(cell) for line in table.rows if numbers(cell := line[name])]
            value = sum(values) / len(values)
            place = f"Table S2, {split}, {column}"
            if judged:
                said = f"mean of {len(values)} rows of Table S5; neither judge nor methods are stated"
                yield Cell(place, printed, f"{value:.3f}", said, NOT)
                continue
            slack = 0.0056 if column in S2[4:7] else 0.00101  # rounded to two and to three digits
            fits = abs(value - float(printed)) <= slack
            said = f"mean of {len(values)} rows of Table S4"
            yield Cell(place, printed, f"{value:.3f}", said, FOLLOWS if fits else CONTRADICTS)


# KathaTrace

KATHA = {
    "Table 5:": "components", "Table 6:": "categories", "Table 9:": "transitions", "Table 10:": "fields",
    "Table 12:": "moral targets", "Table 14:": "questions", "Table 17:": "construction",
    "Table 20:": "review", "Table 21:": "workload", "Table 22:": "agreement", "Table 24:": "sources",
    "Table 26:": "filtering",
    "Table 37:": "study", "Table 47:": "calls", "Table 48:": "cost", "Table 57:": "valid subsets",
    "Table 3:": "evaluators", "Table 38:": "people", "Table 39:": "people and judges",
    "Table 53:": "planners and generators", "Table 54:": "controls", "Table 55:": "bridges",
    "Table 56:": "latent gaps", "Table 58:": "components", "Table 59:": "evidence", "Table 60:": "questions",
    "Table 61:": "matching of answers",
    "Table 62:": "judges", "Table 63:": "reranking", "Table 64:": "held-out judges", "Table 65:": "labels",
    "Table 66:": "actions", "Table 72:": "controls", "Table 73:": "ambiguity", "Table 75:": "lengths",
}  # fmt: skip
SETTINGS = ("Table 36:", "Table 43:", "Table 44:", "Table 45:", "Table 46:")
SENTENCES = {"Table 4:": 1, "Table 72:": 2}
"""Table whose results stand in sentences -> their column."""
TWICE = (
    ("Gemma-ST + FLUX, image recoverability", "53.8", "49.4", "section 4.4", "Tables 52 and 53"),
    ("Gemma-ST + FLUX, STG", "24.0", "28.4", "section 4.4", "Tables 52 and 53"),
    ("Direct + FLUX, STG", "35.2", "37.0", "section 4.4", "Table 53"),
    ("Semantic Compass, image recoverability", "55.8", "56.7", "Tables 2 and 64", "Tables 52, 55 and 63"),
    ("Semantic Compass, moral target", "39.1", "47.8", "Table 2", "Tables 52 and 65"),
    ("GPT-4o + GPT-image-1, image recoverability", "52.4", "51.4", "Table 2", "Tables 52 and 53"),
    ("GPT-4o + GPT-image-1, STG", "25.2", "26.2", "Table 2", "Tables 52 and 53"),
)


def katha_cells(lines: Sequence[str]) -> Iterator[Cell]:
    whole = "\n".join(lines)
    for caption, columns in (("Table 2:", (2, 3, 4)), ("Table 52:", (3, 4, 5))):
        start = next(index for index, line in enumerate(lines) if caption in line[:20])
        for line in lines[start + 1 : start + 20]:
            row = [re.sub(r"</?b>", "", cell) for cell in line.split("\t")]
            if len(row) < 6 or not re.match(r"\d", row[columns[0]]):
                continue
            text, image, gap = (numbers(row[column])[0] for column in columns)
            value = float(text) - float(image)
            label = row[0] if caption == "Table 2:" else f"{row[0]}, {row[1]}"
            yield Cell(
                f"{caption.rstrip(':')}, {label}, STG", gap, f"{value:.1f}",
                "text minus image recoverability",
                FOLLOWS if abs(value - float(gap)) <= 0.1501 else CONTRADICTS,
            )  # fmt: skip
    for what, first, second, here, there in TWICE:
        if first not in whole or second not in whole:
            raise SystemExit(f"{what}: {first} or {second} is not printed")
        yield Cell(f"{what}, {here}", first, second, f"printed in {there}", CONTRADICTS)
    why = "no stories, storyboards, replies or ratings of the benchmark are released"
    rest = {"Table 2:": "methods, without STG", "Table 52:": "leaderboard, without STG"}
    yield from unreleased(lines, rest | KATHA, why, {"Table 2:": 8, "Table 52:": 11})
    for caption, column in SENTENCES.items():
        count = sum(len(numbers(row[column])) for row in rows_of(lines, caption)[1:])
        yield Cell(f"{caption[:-1]}: numbers in sentences", f"{count} cells", "", why, NOBODY, count)
    known = {*rest, *KATHA, *SENTENCES}
    captions = [found[1] for line in lines if (found := re.match(r"\W*(Table \d+:)", line))]
    words = [one[6:-1] for one in captions if one not in known and one not in SETTINGS]
    yield Cell(
        f"Tables {', '.join(one[6:-1] for one in SETTINGS)}", "settings", "",
        "seeds, machines, prompts, and counts of other tables: chosen, not measured", NONE,
    )  # fmt: skip
    yield Cell(
        f"Tables {', '.join(words)}", "words", "",
        "marks, fields, rules, labels and examples without numbers", NONE,
    )  # fmt: skip


# The page

ENTITY = {
    "Table 4:": "main results (most repeat Tables 12 to 14)",
    "Table 12:": "quality", "Table 13:": "prompt following", "Table 14:": "across shots",
    "Table 15:": "raw means and coverage",
    "Table 19:": "similarity by gap, faces", "Table 20:": "similarity by gap, DINOv2",
    "Table 21:": "similarity by gap, all", "Table 22:": "tiers",
}  # fmt: skip
RESULTS = "the evaluator's files of the four methods are not released"


def sections(reference: Path) -> dict[str, list[Cell]]:
    papers = reference / "papers"
    entity = (papers / "entitybench.md").read_text("utf-8").splitlines()
    katha = (papers / "kathatrace.md").read_text("utf-8").splitlines()
    return {
        "EntityBench, the set": [*early_cells(reference, entity), *entity_cells(reference)],
        "EntityBench, results": [
            *effect_cells(entity), *coverage_cells(entity), *tier_cells(entity),
            *unreleased(entity, ENTITY, RESULTS, {"Table 13:": 12, "Table 14:": 20}),
        ],
        "StoryEval": list(story_cells(reference)),
        "ViStoryBench": list(vistory_cells(reference)),
        "KathaTrace": list(katha_cells(katha)),
    }  # fmt: skip


INTRODUCTION = """# Published numbers, and ours

Which printed numbers of the four papers come out again, and which do not. A cell is a printed number; a mean
with its deviation is one.

- *reproduced*: the released files give the printed digits; a value between two roundings agrees with both.
- *follows*: other printed cells give it, within their rounding.
- *not reproducible*: the released files give another number. EntityBench's paper counts 11,445 slots and
  3,593 names, the released schedule has 11,437 and 3,585: that is behind most of the small differences.
- *nobody can check*: nothing is released, or at hand, from which it could be computed.
- *no result*: settings, examples and words; they are no cells.

[published.csv](published.csv) has every compared cell with our value and how it is counted. Both are made by
`python benchmarks/published.py`.
"""


def page(found: Mapping[str, Sequence[Cell]]) -> str:
    lines = [INTRODUCTION, f"| source | {' | '.join(VERDICTS)} | cells |", "|---" * (len(VERDICTS) + 2) + "|"]
    for name, cells in found.items():
        counts = tally(cells)
        numbers_of = [f"{counts[verdict]:,}" for verdict in VERDICTS]
        lines.append(f"| {name} | {' | '.join(numbers_of)} | {sum(counts.values()):,} |")
    every = tally([cell for cells in found.values() for cell in cells])
    sums = " | ".join(f"{every[verdict]:,}" for verdict in VERDICTS)
    lines += [f"| all | {sums} | {sum(every.values()):,} |", ""]
    for name, cells in found.items():
        lines += [f"## {name}", "", *agreeing(cells)]
        if against := [*contradicting(cells)]:
            lines += ["- Contradicts other printed cells: [how it is counted]: **printed** (ours)", *against]
        lines += [*left(cells), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def agreeing(cells: Iterable[Cell]) -> Iterator[str]:
    """A line for each verdict other than those of single cells: the printed tables, and how many cells."""
    counts: dict[str, Counter[str]] = {}
    for cell in cells:
        if cell.verdict in (REPRODUCED, WITH, FOLLOWS, NOT):
            counts.setdefault(cell.verdict, Counter())[table_of(cell)] += cell.count
    for verdict in sorted(counts, key=VERDICTS.index):
        said = ", ".join(f"{table} ({count})" for table, count in counts[verdict].items())
        yield f"- {verdict[0].upper()}{verdict[1:]}: {said}."


def contradicting(cells: Iterable[Cell]) -> Iterator[str]:
    """Each cell that contradicts other printed ones, with ours and how it is counted."""

    def alike(cell: Cell) -> tuple[str, ...]:
        return (cell.place.rpartition(", ")[0], cell.convention)

    for _, some in groupby((one for one in cells if one.verdict == CONTRADICTS), alike):
        yield f"    - {differences(list(some))}"


def compared(found: Mapping[str, Sequence[Cell]]) -> str:
    """Every cell that was compared, beside ours, as CSV."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("source", "cell", "printed", "ours", "how it is counted", "verdict", "cells"))
    for name, cells in found.items():
        rows.writerows(
            (name, cell.place, cell.printed, cell.ours, cell.convention, cell.verdict, cell.count)
            for cell in cells
            if cell.verdict not in (NOBODY, NONE)
        )
    return text.getvalue()


def differences(cells: Sequence[Cell]) -> str:
    """Cells of one printed row: how they are counted, what is printed, and ours."""
    row = cells[0].place if len(cells) == 1 else cells[0].place.rpartition(", ")[0]
    said = ", ".join(
        f"{cell.place.removeprefix(row).removeprefix(', ')} **{cell.printed}** ({cell.ours})".lstrip()
        for cell in cells
    )
    return f"{row} [{cells[0].convention}]: {said}"


def table_of(cell: Cell) -> str:
    """The printed table, or part of the text, that a cell is of."""
    return cell.place.partition(":")[0].partition(",")[0]


def left(cells: Iterable[Cell]) -> Iterator[str]:
    """A sentence for each reason why nobody can check cells, and for what is no result."""
    reasons: dict[str, Counter[str]] = {}
    for cell in cells:
        if cell.verdict == NOBODY:
            reasons.setdefault(cell.convention, Counter())[table_of(cell)] += cell.count
        elif cell.verdict == NONE:
            word, _, tables = cell.place.partition(":")[0].partition(" ")
            yield f"- No result ({cell.convention}): {word} {in_order(tables.split(', '))}."
    for why, counts in reasons.items():
        tables = in_order([table.removeprefix("Table ") for table in counts])
        word = "Table" if len(counts) == 1 else "Tables"
        yield f"- Nobody can check {sum(counts.values())} cells of {word} {tables}: {why}."


def in_order(tables: Sequence[str]) -> str:
    """Numbers of tables in order, three or more in a row as the first and the last."""
    numbers = sorted(int(table) for table in tables if table.isdigit())
    said = []
    for _, run in groupby(enumerate(numbers), lambda one: one[1] - one[0]):
        row = [number for _, number in run]
        said += [f"{row[0]} to {row[-1]}"] if len(row) > 2 else [str(number) for number in row]
    return ", ".join([*said, *(table for table in tables if not table.isdigit())])


def tally(cells: Iterable[Cell]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for cell in cells:
        counts[cell.verdict] += cell.count if cell.verdict != NONE else 0
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    reference = os.environ.get("FABULA_REFERENCE")
    if not reference:
        raise SystemExit("FABULA_REFERENCE is not set: the folder of released files, tables and papers")
    found = sections(Path(reference))
    given.out.write_text(page(found), "utf-8")
    given.out.with_name(CELLS).write_text(compared(found), "utf-8")
    for name, cells in found.items():
        print(name, dict(tally(cells)))


if __name__ == "__main__":
    main()
