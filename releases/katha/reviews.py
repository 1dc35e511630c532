"""Summaries of human reviews (Table 16) that back what a release claims to be reviewed."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import InputError, UserError
from ...schemas.canonical import Json, canonical_bytes
from ...schemas.paths import REVIEWS
from ...schemas.plain_files import MISSHAPEN, explaining, json_lines, read_json, reason_of
from ...schemas.values import Issue, vocabulary
from ...validators.careless import CARELESS, SECONDS_PER_ANSWER, Said, careless, hasty
from ...validators.katha.review_tables import (
    CONFIDENCE,
    FIELDS,
    LABELS,
    PASSED_OVER,
    UNITS,
    Vote,
    binding_of,
    changed_paths,
    is_unbound,
    order_of,
    read_vote,
    seen_content,
    seen_sha256,
    stray,
)
from ...validators.katha.set_rules import check_review_words, check_reviewers
from ...validators.lines import check_schema, read_objects
from ...validators.report import STANDS_FOR, VOTES, as_user_error, is_simulated, issue, show
from ...validators.view import Part
from ..parquet import table

# -- Signs that reviewers of records answered without care: from their votes, and as a review's export says

Signs = Mapping[str, Sequence[str]]
"""Reviewer -> signs that their answers say little, one sentence each."""


def signs_in(*votes: Iterable[Vote], stated: Signs | None = None) -> dict[str, list[str]]:
    """Return the signs that some sets of votes show, each by itself, with those that are stated; sorted."""
    signs: dict[str, list[str]] = {name: list(each) for name, each in (stated or {}).items()}
    for listed in map(list, votes):
        seen = careless(list(_said(listed)))
        for name, sentence in _hasty(listed).items():
            seen.setdefault(name, []).append(sentence)
        for name in seen.keys() - signs.keys():
            signs[name] = seen[name]
    return dict(sorted(signs.items()))


def _said(votes: Iterable[Vote]) -> Iterator[Said]:
    for vote in votes:
        criterion, answer = str(vote["criterion"]), vote["answer"]
        thing = (vote["item"], vote["part"])
        if vote["kind"] == "review" and criterion == CONFIDENCE and isinstance(vote["value"], int):
            yield Said(str(vote["rater"]), thing, criterion, None, vote["value"] - 1)
        elif vote["kind"] == "review" and criterion in UNITS:
            words = UNITS[criterion].words
            number = words.index(str(answer)) if answer in words else None
            yield Said(str(vote["rater"]), thing, criterion, answer, number)


def _hasty(votes: Iterable[Vote]) -> dict[str, str]:
    """Return who answered faster than anybody can; how many words were shown is not on file."""
    lines, seconds = Counter[tuple[str, str]](), dict[tuple[str, str], float]()
    for vote in votes:
        if vote["kind"] == "review" and isinstance(vote["seconds"], int | float):
            key = (str(vote["rater"]), str(vote["item"]))
            lines[key] += 1
            seconds[key] = float(vote["seconds"])
    given = Counter(rater for rater, _ in lines)
    under = Counter(key[0] for key, count in lines.items() if seconds[key] < SECONDS_PER_ANSWER * count)
    return hasty(under, given)


def stated_signs(folder: Path) -> dict[str, list[str]]:
    """Return the signs that a review's export states; none where it is of before."""
    path = folder / CARELESS
    if not path.is_file():
        return {}
    with explaining(
        path, "export the review again", what="this does not say who answered carelessly", of=MISSHAPEN
    ):
        return signs_of(read_json(path, follow=True)["people"])


def signs_of(document: Json) -> dict[str, list[str]]:
    """Return the signs of a JSON object; nothing where it is none."""
    if not isinstance(document, dict):
        return {}
    return {str(name): list(map(str, each)) for name, each in document.items() if isinstance(each, list)}


# -- Votes of reviewers: those of a review, whether they may be published, and how a release has them

CONSENT = "consent.json"
"""What reviewers agreed to: ``publish_votes``, and how many of how many reviewers did."""
PUBLISHED, KEPT, NONE = "published", "kept", "none"
"""What became of the votes: they are in the release; only the tables are; there are none."""
VOTE_TABLE = table(
    "votes", "One row per vote of a reviewer on a public story.", "item kind criterion part rater",
    ("kind", "text", "review, or moral_label for the label that a reviewer gives."),
    ("rater", "text", "Pseudonym of the reviewer."),
    ("item", "text", "The story."),
    ("criterion", "text", "Unit of the record (Table 18), or confidence."),
    ("part", "text", "The transition (1-2), question or variant; null for the whole."),
    ("answer", "text", "The decision, in the words of the unit (Table 18)."),
    ("labels", "texts", "Moral labels that the reviewer gives, the likeliest first."),
    ("value", "integer", "How confident the reviewer was, 1 to 5."),
    ("confidence", "text", "How sure of this answer, if asked."),
    ("condition", "text", "What the reviewer saw; of moral labels."),
    ("seconds", "number", "How long it took."),
    ("at", "text", "When it was said, RFC 3339."),
    ("protocol", "text", "SHA-256 of the protocol of the review."),
    ("simulated", "boolean", "Whether a program said it and no person."),
    references={"item": ("stories", "story_id")}, optional=True,
)  # fmt: skip


def read_votes(path: Path) -> list[Vote]:
    """Return the votes of a file, in the order in which releases have them.

    Lines about attention checks, and repeated controls, are no votes on a record and are left out.
    """
    problems: list[Issue] = []
    votes: dict[tuple[str, ...], Vote] = {}
    for line in read_objects(path, path.name, problems.append):
        if line.data.get("kind") in PASSED_OVER or line.data.get("repeat"):
            continue
        where = f"{path.name}:{line.number}"
        vote = read_vote(Part(where, line.data), problems)
        if vote is not None:
            if order_of(vote) in votes:
                problems.append(issue("vote", where, "$", "the same reviewer said this before"))
            votes[order_of(vote)] = vote
    errors = [as_user_error(problem) for problem in problems if problem.level == "error"]
    if errors:
        raise InputError(errors)
    return [votes[order] for order in sorted(votes)]


def kept_back(folder: Path, votes: Iterable[Vote]) -> str | None:
    """Return why the votes of a review are not published; None where every reviewer agreed to it."""
    path = folder / CONSENT
    if not path.is_file():
        return f"there is no {CONSENT} in {folder}"
    try:
        document = read_json(path, follow=True)
    except (OSError, ValueError) as error:
        raise InputError([_no_consent(path, reason_of(error))]) from error
    agreed, reviewers = (_number(document, name) for name in ("consented", "reviewers"))
    publish = document.get("publish_votes") if isinstance(document, dict) else None
    if type(publish) is not bool or agreed is None or reviewers is None:
        raise InputError([_no_consent(path, "it lacks one of its three values, or has one of another kind")])
    raters = {vote["rater"] for vote in votes if not is_simulated(vote["rater"])}
    if not publish:
        return f"{path} says that they are not to be published"
    if agreed < reviewers:
        return f"{agreed} of {reviewers} reviewers agreed to it ({path})"
    if len(raters) > agreed:
        return f"there are votes of {len(raters)} reviewers, and {path} speaks of {reviewers}"
    return None


def _number(document: Json, name: str) -> int | None:
    value = document.get(name) if isinstance(document, dict) else None
    return value if type(value) is int and value >= 0 else None


def _no_consent(path: Path, fault: str) -> UserError:
    return UserError(
        str(path), what=f"this does not say what the reviewers agreed to: {fault}",
        fix='write it like {"publish_votes": true, "consented": 3, "reviewers": 3}, or export it again',
    )  # fmt: skip


def check_votes(
    votes: Iterable[Vote],
    parts: Mapping[str, Mapping[str, frozenset[str]]],
    known: Collection[str],
    where: Path,
) -> None:
    """Refuse votes that are not about these stories.

    ``parts``: id of a finished story -> what of it can be voted on.
    """
    strange = {
        f"{vote['item']}: {problem[1]}"
        for vote in votes
        if (vote["item"] in parts or vote["item"] not in known) and (problem := stray(vote, parts))
    }
    fix = "pack the run that was reviewed, or export the review again"
    if strange:
        raise InputError([UserError(str(where), what=what, fix=fix) for what in sorted(strange)])


def vote_lines(votes: Iterable[Vote], stories: Collection[str]) -> bytes:
    """Return the file of the votes on some stories."""
    chosen = sorted((vote for vote in votes if vote["item"] in stories), key=order_of)
    return b"".join(canonical_bytes(dict(vote)) + b"\n" for vote in chosen)


def vote_rows(votes: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Json]]:
    for vote in votes:
        row = {name: vote.get(name) for name in FIELDS}
        seconds = row["seconds"]
        yield {**row, "seconds": float(seconds) if isinstance(seconds, int) else seconds}


# -- Summaries of reviews

GOLD_STATUS = "human_adjudicator_accepted"
"""What a review of a gold record says (paper, D.7)."""
STATUS_WORDS: dict[str, tuple[str, str]] = {
    "d7": (GOLD_STATUS, "pre_release_reviewed"),
    "a7": ("human_review_complete", "human_review_complete"),
}
"""Section of the paper -> the status of a reviewed record in a gold subset, and of any other."""
GOLD_REVIEWERS = 3
"""Independent reviewers of a gold record (paper, Table 20)."""
DEFECTS = ("ambiguous", "invalid", "unusable", "unsafe", "rights_uncertain")
"""What a flag such as ``ambiguous:moral_label`` begins with that keeps a story out of strict gold."""


@dataclass(frozen=True, slots=True)
class Reviews:
    path: Path | None  # their file, or the folder that a review exported; None where there is none
    rows: Mapping[str, Mapping[str, Json]]  # story id -> its review
    votes: Sequence[Vote] | None = None  # the votes behind them; None where none are at hand
    # why the votes are not to be published; None where they may be, or there are none
    kept_back: str | None = None
    # story id -> the paths of what changed since people read it, as far as that is known
    changed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unbound: frozenset[str] = frozenset()  # the stories whose review does not name what was read
    accept_unbound: bool = False  # whether such a review counts
    careless: Signs = field(default_factory=dict)  # the signs of carelessness that their export states

    @property
    def simulated(self) -> bool:
        """Whether programs took part."""
        people = ((*row["annotator_ids"], row["adjudicator_id"]) for row in self.rows.values())
        votes = any(vote["simulated"] for vote in self.votes or ())
        return votes or any(is_simulated(name) for names in people for name in names)

    @property
    def published(self) -> str:
        """What becomes of the votes."""
        return NONE if self.votes is None else PUBLISHED if self.kept_back is None else KEPT

    @property
    def open_votes(self) -> Sequence[Vote]:
        """The votes that a release may hold."""
        return self.votes or () if self.published == PUBLISHED else ()

    def bound_to(self, bundles: Iterable[Mapping[str, Any]], *, accept_unbound: bool) -> "Reviews":
        """Return the reviews as they hold for records now: what changed since is told, and unread."""
        if not self.rows:
            return self
        votes = votes_by_story(self.votes)
        now: dict[str, Mapping[str, Json]] = {}
        unbound = set()
        for bundle in bundles:
            name = bundle["record"]["story_id"]
            row = self.rows.get(name)
            if row is None or not is_accepting(row):
                continue
            content = seen_content(bundle["record"], bundle["variants"])
            match binding_of(row, votes.get(name, ()), seen_sha256(name, content)):
                case "changed":
                    now[name] = content
                case "unbound":
                    unbound.add(name)
        changed: dict[str, tuple[str, ...]] = dict.fromkeys(now, ())
        stood = self.path / STANDS_FOR if self.path is not None else None
        for line in json_lines(stood) if now and stood is not None and stood.is_file() else ():
            if line["story_id"] in now:
                changed[line["story_id"]] = tuple(changed_paths(line["content"], now[line["story_id"]]))
        return replace(self, changed=changed, unbound=frozenset(unbound), accept_unbound=accept_unbound)

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Return whether a review accepted its story, as it stands, under the whole protocol."""
        name = row["story_id"]
        stands = name not in self.changed and (self.accept_unbound or name not in self.unbound)
        return stands and is_accepting(row)

    def accepted(self, ids: Collection[str]) -> list[Mapping[str, Json]]:
        """Return the reviews that hold of stories, by id."""
        return [row for name, row in sorted(self.rows.items()) if name in ids and self.holds(row)]

    def bindings(self, public: Collection[str]) -> dict[str, Json]:
        """Return what ``release.json`` says of what the reviews of public stories are bound to."""
        holding = [row["story_id"] for row in self.accepted(public)]
        unbound = self.unbound & set(public)
        changed = [{"id": name, "paths": list(paths)} for name, paths in sorted(self.changed.items())]
        return {
            "bound": sum(name not in unbound for name in holding),
            "unbound": len(unbound),
            "unbound_accepted": self.accept_unbound,
            "changed": [entry for entry in changed if entry["id"] in public],
        }

    def with_statuses(self, gold: Collection[str], words: str) -> "Reviews":
        """Return the reviews with a release's statuses: what is gold is known when it is packed."""
        in_gold, reviewed = STATUS_WORDS[words]
        rows = {
            name: {**row, "validation_status": in_gold if name in gold else reviewed}
            if is_accepting(row)
            else row
            for name, row in self.rows.items()
        }
        return replace(self, rows=rows)

    def reviewed(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record with the status that its review gives it; the same record where there is none."""
        row = self.rows.get(record["story_id"])
        if record["story_id"] in self.changed:
            return {**record, "validation_status": UNREAD}
        if row is None or not self.holds(row):
            return dict(record)
        evidence = {"human_evidence_accepted": True, "resolution": row["resolution"]}
        return {**record, "validation_status": row["validation_status"], "evidence_status": evidence}

    def rejects(self, story_id: str) -> bool:
        return story_id in self.rows and self.rows[story_id]["decision"] == "rejected"

    def unbacked(self, story_id: str, *, strict: bool = False) -> str | None:
        """Return why a story may not be called gold, or strict gold, or None if it may.

        Three reviewers must have accepted it under the whole protocol, unanimously or with an adjudicator.
        Strict gold also has no unresolved defect: no flag such as ``ambiguous:moral_label``.
        """
        row = self.rows.get(story_id)
        if row is None or not is_accepting(row):
            return "no review on file" if row is None else _undecided(row)
        if not self.holds(row):
            return "changed since its review" if story_id in self.changed else "its votes name no content"
        if row["resolution"] not in vocabulary("resolution").having("reviewed"):
            return f"neither unanimous nor adjudicated ({row['resolution']})"
        if len(row["annotator_ids"]) < GOLD_REVIEWERS:
            return f"fewer than {GOLD_REVIEWERS} reviewers"
        defects = [flag for flag in sorted(row["correction_flags"]) if flag.partition(":")[0] in DEFECTS]
        return f"flag {defects[0]}" if strict and defects else None


NO_REVIEWS = Reviews(None, {})
UNREAD = "review_needed"
"""Status of a record that changed since people read it."""


def votes_by_story(votes: Iterable[Vote] | None) -> dict[str, list[Vote]]:
    listed: dict[str, list[Vote]] = {}
    for vote in votes or ():
        listed.setdefault(str(vote["item"]), []).append(vote)
    return listed


def _undecided(row: Mapping[str, Any]) -> str:
    return f"decision {row['decision']}" if row["protocol_complete"] else "protocol not complete"


def is_accepting(row: Mapping[str, Any]) -> bool:
    """Return whether a review accepted its story under the whole protocol."""
    reviewed = vocabulary("validation_status").having("reviewed")
    return bool(
        row["decision"] == "accepted" and row["protocol_complete"] and row["validation_status"] in reviewed
    )


def read_reviews(path: Path) -> Reviews:
    """Return reviews: of a file of JSON Lines in the form of Table 16, or of a folder that a review exports.

    Such a folder may hold votes, too, and what its reviewers agreed to.
    """
    if not path.is_dir():
        return Reviews(path, _summaries(path))
    rows, careless = _summaries(path / REVIEWS), stated_signs(path)
    if not (path / VOTES).exists():
        return Reviews(path, rows, careless=careless)
    votes = read_votes(path / VOTES)
    return Reviews(path, rows, votes, kept_back(path, votes), careless=careless)


def released_reviews(folder: Path) -> Reviews:
    """Return the reviews in a release, and the votes that it publishes."""
    if not (folder / REVIEWS).is_file():
        return NO_REVIEWS
    votes = read_votes(folder / VOTES) if (folder / VOTES).is_file() else None
    rows, said = _summaries(folder / REVIEWS), votes_by_story(votes)
    unbound = frozenset(name for name, row in rows.items() if is_unbound(row, said.get(name, ())))
    return Reviews(folder / REVIEWS, rows, votes, unbound=unbound, accept_unbound=True)


def _summaries(path: Path) -> dict[str, Mapping[str, Json]]:
    problems: list[Issue] = []
    rows: dict[str, Mapping[str, Json]] = {}
    if not path.is_file():
        raise InputError([_missing(path)])
    for line in read_objects(path, path.name, problems.append):
        part = Part(f"{path.name}:{line.number}", line.data)
        issues = [finding.issue for finding in check_schema("katha_human_validation", part.data, part.where)]
        if not any(issue.level == "error" for issue in issues):
            issues += check_review_words(part)
            issues += check_reviewers(part)
            if part.data["story_id"] in rows:
                message = f"{show(part.data['story_id'])} has a second review"
                issues.append(issue("id-repeated", part.where, "$.story_id", message))
            rows[part.data["story_id"]] = part.data
        problems += issues
    errors = [as_user_error(problem) for problem in problems if problem.level == "error"]
    if errors:
        raise InputError(errors)
    return rows


def check_against(reviews: Reviews, labels: Mapping[str, str | None], known: Collection[str]) -> None:
    """Refuse reviews that are not about these records.

    ``labels``: id of a finished record -> its moral label.
    """
    where = str(reviews.path)
    problems = []
    for story_id, row in reviews.rows.items():
        if story_id not in known:
            problems.append(
                UserError(
                    f"{where} {story_id}",
                    what="the run has no story with this id",
                    fix="remove the review, or pack the run that it belongs to",
                )
            )
        elif (
            story_id in labels
            and reviews.holds(row)
            and (row["final_moral_label"] or None) != labels[story_id]
        ):
            problems.append(
                UserError(
                    f"{where} {story_id}",
                    what=f"the review says final_moral_label {row['final_moral_label']!r}, and the record "
                    f"says {labels[story_id]!r}",
                    fix="correct the record with `fabula edit`, or the review",
                )
            )
    if problems:
        raise InputError(problems)


def why_unbacked(reviews: Reviews, ids: Iterable[str], *, strict: bool = False) -> str:
    """Return why stories may not be called gold, or strict gold, with counts."""
    counts = Counter(filter(None, (reviews.unbacked(story_id, strict=strict) for story_id in ids)))
    return ", ".join(f"{count} {why}" for why, count in sorted(counts.items()))


def _missing(path: Path) -> UserError:
    return UserError(
        str(path),
        what="there is no file with this name",
        fix=f"give a file of review summaries ({REVIEWS}, Table 16) or a folder with one, or leave --reviews "
        "out",
    )


# -- The tables of a review as a card and a command line show them: titles, columns, rows of text

MEASURES = {
    LABELS: "Moral-target label (12-way)",
    "safety": "Narrative",
    "scene_sequence": "Scene sequence",
    "transition_annotation": "Transition annotation",
    "recoverability_qa": "Recoverability QA",
    "contrastive_variant": "Contrastive variant",
    "narrative_category": "Narrative category",
    "moral_label": "Moral-label check",
}
"""Measure of agreement -> what it is called in the paper's Tables 18 and 22."""
TIERS = {
    "responses": "Full human-review responses",
    "unanimous": "Consensus records",
    "adjudicated": "Adjudicated records",
}
"""Unit of work -> what it is called in Table 21."""


Row = tuple[str, Mapping[str, float | int | str | None]]
"""Label, and column -> value."""


@dataclass(frozen=True, slots=True)
class ShownTable:
    name: str  # its name in data
    title: str  # what it shows
    heading: str  # of the first column
    columns: Mapping[str, str]  # name -> heading of the other columns
    rows: Sequence[Row]  # label, and value by column; None where there is none


def review_tables_shown(review: Mapping[str, Any]) -> list[ShownTable]:
    """Return the tables that ``statistics.json`` has under ``review``, in the order of the paper."""
    made = []
    if "validation" in review:
        made.append(_validation(review["validation"]))
    if "construction" in review:
        made.append(_construction(review["construction"]))
    if "workload" in review:
        made.append(_workload(review["workload"], review.get("agreement", {})))
    if "agreement" in review:
        made.append(_agreement(review["agreement"], review.get("confidence", {})))
    return made


def _validation(part: Mapping[str, Json]) -> ShownTable:
    rows: list[Row] = [
        ("Reviews", {"count": part["reviews"]}),
        *((f"Decision {word}", {"count": count}) for word, count in part["decisions"].items()),
        *(
            (f"Decision {word}, of stories not accepted here", {"count": count})
            for word, count in part["not_in_release"].items()
        ),
        *((f"Status {word}", {"count": count}) for word, count in part["validation_status"].items()),
        *((f"Resolution {word}", {"count": count}) for word, count in part["resolution"].items()),
        *((f"Flag {word}", {"count": count}) for word, count in part["correction_flags"].items()),
        ("Reviewers", {"count": part["reviewers"]}),
        ("Adjudicators", {"count": part["adjudicators"]}),
    ]
    if part["simulated"]:
        rows.append(("Reviewers and adjudicators that are programs", {"count": part["simulated"]}))
    return ShownTable(
        "validation", "Review summaries (Table 16); flags count stories", "What", {"count": "Count"}, rows
    )


def _construction(part: Mapping[str, Mapping[str, Json]]) -> ShownTable:
    columns = {
        "items": "Items judged", "changed": "To be changed", "judgements": "Judgements", "rate": "Rate",
        "elsewhere": "Of them elsewhere", "final": "Final count",
    }  # fmt: skip
    rows = [
        (
            unit.label,
            {
                **{name: part[key][name] for name in ("items", "changed", "judgements", "rate", "final")},
                "elsewhere": "{changed} of {judgements}".format(**part[key]["elsewhere"]),
            },
        )
        for key, unit in UNITS.items()
        if key in part
    ]
    title = "Edits and rejections before adjudication (Table 17)"
    return ShownTable("construction", title, "Component", columns, rows)


def _workload(part: Mapping[str, Any], agreement: Mapping[str, Mapping[str, Json]]) -> ShownTable:
    columns = {"items": "Items", "judgements": "Judgements", "adjudications": "Adjudications"}
    records = {"items": part["records"], "judgements": part["records"]}
    rows: list[Row] = [("Schema validation of records", records)]
    named = {label: part[name] for name, label in TIERS.items()}
    named |= {f"Subset {name}": row for name, row in part["subsets"].items()}
    for label, row in named.items():
        counts = {name: row[name] for name in ("judgements", "adjudications")}
        rows.append((label, {"items": row["stories"], **counts}))
    if LABELS in agreement:
        row = agreement[LABELS]
        rows.append(("Moral-target agreement", {"items": row["items"], "judgements": row["judgements"]}))
    return ShownTable("workload", "Work of the review (Table 21)", "Unit", columns, rows)


def _agreement(part: Mapping[str, Mapping[str, Json]], confidence: Mapping[str, Json]) -> ShownTable:
    columns = {
        "metric": "Metric", "value": "Value", "low": "Low", "high": "High", "items": "N items",
        "stories": "Stories", "judgements": "Judgements",
    }  # fmt: skip
    rows: list[Row] = []
    for key, label in MEASURES.items():
        if key in part:
            row = part[key]
            counts = {name: row[name] for name in ("low", "high", "items", "stories", "judgements")}
            rows.append((label, {"metric": "Fleiss' kappa", "value": row["kappa"], **counts}))
    if confidence.get("judgements"):
        mean = {"metric": "mean", "value": confidence["mean"], "judgements": confidence["judgements"]}
        rows.append(("Confidence (1-5)", mean))
    return ShownTable("agreement", "Agreement before adjudication (Table 22)", "Label", columns, rows)
