"""What came of a study: agreement, shares that pass, ratings, confidence, time, changes, workload.

Everything is counted twice: over all votes, and without what the rules and the least time of the protocol
leave out. Where the protocol was amended, once for each version, too. Check items and training are in none of
it; repetitions tell of consistency. Shares, means and agreement are those of the votes at hand, as in
KathaTrace, Tables 17 to 20; they have no intervals.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...evaluation.stats.tables import krippendorff_alpha, observed_agreement
from ...schemas.canonical import Json, canonical_text
from ...validators.resampling import Floats, fleiss_kappa
from .flow import CONFIDENCE, Counted, KeptVotes, counted_votes, kept_votes
from .folder import Study
from .items import edits_after, said_value
from .points import points, upright
from .protocol import versions
from .standing import Standing
from .task import UNCLEAR, Question, place_of

CHOOSING = ("choice", "scale", "labels")
POOLED = "votes under all versions of the protocol together, each counted once"


@dataclass(frozen=True)
class _Votes:
    """Votes to count, with who gave them on what; ``kept`` leaves out answers that do not count."""

    study: Study
    votes: Sequence[Counted]
    kept: KeptVotes | None = None

    def answers(self, question: Question) -> Iterator[tuple[int, str, Json]]:
        """Yield number of the vote, part and answer of each answer to a question; of labels the likeliest."""
        for number, counted in enumerate(self.votes):
            if self.kept is not None and not self.kept.counts_for(counted, question):
                continue
            answers = counted.vote.answers
            for part in self._parts(question, counted):
                place = place_of(question.name, part)
                if place in answers:
                    answer = upright(question, counted, answers[place])
                    yield number, part, answer[0] if isinstance(answer, list) else answer

    def said(self, question: Question) -> Iterator[tuple[int, str, Json]]:
        """Yield the same with the value that an answer says is right, where it is about one value."""
        if edits_after(self.study.task, question) is None:
            return
        for number, part, _ in self.answers(question):
            counted = self.votes[number]
            is_about_one, value = said_value(
                self.study.task, self.study.items[counted.item], question, part, counted.vote.answers
            )
            if not is_about_one:  # nor is it in other items: these have parts of the same kinds
                return
            yield number, part, canonical_text(value)

    def _parts(self, question: Question, counted: Counted) -> tuple[str, ...]:
        if question.each is None:
            return ("",)
        return tuple(part.id for part in self.study.items[counted.item].parts.get(question.each, ()))

    def mean(self, said: Sequence[tuple[int, float]]) -> dict[str, Json]:
        """Return the mean of what was said in votes, by number, and how many said it about how much."""
        votes = [self.votes[number] for number, _ in said]
        return {
            "value": float(np.mean([value for _, value in said])) if said else None,
            "votes": len(said),
            "reviewers": len({each.person.id for each in votes}),
            "items": len({each.item for each in votes}),
        }


def results(study: Study, standing: Standing) -> dict[str, Any]:
    """Return what came of a study, as plain JSON."""
    every = [each for each in counted_votes(study, standing, hasty=True) if not each.check]
    kept = kept_votes(study, standing)
    first = [each for each in every if not each.repeat]
    left = [each for each in first if not each.hasty and kept.counts(each)]
    stated = versions(study.folder)
    by_version = {
        version.sha256: [each for each in left if each.vote.event.protocol == version.sha256]
        for version in stated
    }
    return {
        "study": study.protocol.name,
        "task": study.protocol.task,
        "protocol": study.protocol.sha256,
        "simulated": study.protocol.simulated,
        "pooling": POOLED,
        "versions": {
            version.sha256: {"version": version.version, "votes": len(by_version[version.sha256])}
            for version in stated
        },
        "exclusions": {**kept.as_json(), "under_floor": sum(each.hasty for each in first)},
        "all": counted(study, first),
        "kept": counted(study, left, kept),
        "by_version": {
            name: counted(study, votes, kept)
            for name, votes in by_version.items()
            if votes and len(stated) > 1
        },
        "consistency": consistency(study, every),
        "changed": changed(first),
        "time": times(study, first),
        "workload": workload(study, standing),
    }


def counted(study: Study, votes: Sequence[Counted], kept: KeptVotes | None = None) -> dict[str, Any]:
    """Return what some votes say: counts, each question, each section, and how sure reviewers were."""
    table = _Votes(study, votes, kept)
    asked = [question for question in study.task.card.questions if question.type in CHOOSING]
    return {
        "votes": len(votes),
        "items": len({each.item for each in votes}),
        "reviewers": len({each.person.id for each in votes}),
        "questions": {question.name: _question(study, table, question) for question in asked},
        "sections": _sections(study, table),
        "confidence": _confidence(table, asked),
    }


# -- questions


def passing(study: Study, question: Question) -> frozenset[str | int]:
    """Return the answers that accept what is shown: those that ask for nothing and leave no doubt."""
    after = edits_after(study.task, question)
    wanting = {*question.ambiguous, *question.unusable}
    wanting |= set(after.when[question.name]) if after is not None else set()
    values = [option.value for option in question.choices]
    return frozenset(value for value in values if value not in wanting) if wanting else frozenset()


def _question(study: Study, table: _Votes, question: Question) -> dict[str, Any]:
    rows = list(table.answers(question))
    document: dict[str, Any] = {"answers": _counts(question, [answer for _, _, answer in rows])}
    accepting = passing(study, question)
    if accepting:
        document["pass"] = table.mean([(number, float(answer in accepting)) for number, _, answer in rows])
    decided = [row for row in rows if question.type != "scale" or row[2] != UNCLEAR]
    if question.type == "scale":
        document["mean"] = table.mean([(number, float(answer)) for number, _, answer in decided])
    document["agreement"] = _agreement(table, decided, ordinal=question.type == "scale")
    said = list(table.said(question))
    if said:
        document["agreement_on_value"] = _agreement(table, said, ordinal=False)
    return document


def _counts(question: Question, answers: Sequence[Json]) -> dict[str, int]:
    counts = Counter(map(str, answers))
    known = [str(option.value) for option in question.choices]
    return {name: counts[name] for name in (*known, *sorted(counts.keys() - set(known)))}


def _agreement(table: _Votes, rows: Sequence[tuple[int, str, Json]], *, ordinal: bool) -> dict[str, Json]:
    """Return the share of agreeing pairs, kappa (none of a scale), alpha, and of how many units they are."""
    units = _numbered([(table.votes[number].item, part) for number, part, _ in rows])
    answers = _numbered([answer if ordinal else str(answer) for _, _, answer in rows])
    counts = np.zeros((len(units), max(1, len(answers))))
    for number, part, answer in rows:
        counts[units[table.votes[number].item, part], answers[answer if ordinal else str(answer)]] += 1
    measured = {
        "pairs": observed_agreement(counts),
        "kappa": np.nan if ordinal else fleiss_kappa(counts),
        "alpha": krippendorff_alpha(counts, "ordinal" if ordinal else "nominal"),
    }
    known = {name: None if np.isnan(value) else float(value) for name, value in measured.items()}
    return {**known, "units": int((counts.sum(axis=1) >= 2).sum())}


def _numbered(names: Sequence[Any]) -> dict[Any, int]:
    """Return name -> its number in the order of the names."""
    return {name: number for number, name in enumerate(sorted(set(names)))}


def _sections(study: Study, table: _Votes) -> dict[str, Any]:
    """Return section -> the share of votes that accept all of it (Table 17); only sections that can fail."""
    shares: dict[str, Any] = {}
    for section in study.task.card.sections:
        hits: dict[int, float] = {}
        for question in study.task.card.questions:
            accepting = passing(study, question) if question.type in CHOOSING else frozenset()
            if question.section == section and accepting:
                for number, _, answer in table.answers(question):
                    hits[number] = min(hits.get(number, 1.0), float(answer in accepting))
        if hits:
            shares[section] = table.mean(list(hits.items()))
    return shares


def _confidence(table: _Votes, asked: Sequence[Question]) -> dict[str, Any]:
    """Return how sure each reviewer was, where that is asked on a scale."""
    question = next((each for each in asked if each.name == CONFIDENCE and each.type == "scale"), None)
    if question is None:
        return {}
    by_reviewer: dict[str, list[float]] = {}
    for number, _, answer in table.answers(question):
        if answer != UNCLEAR:
            by_reviewer.setdefault(table.votes[number].person.id, []).append(float(answer))
    return {
        name: {"mean": float(np.mean(values)), "votes": len(values)}
        for name, values in sorted(by_reviewer.items())
    }


# -- people and time


def consistency(study: Study, votes: Sequence[Counted]) -> dict[str, Any]:
    """Return reviewer -> how many answers to repeated items were as before, of how many."""
    first = {(each.person.id, each.item): each for each in votes if not each.repeat}
    same: dict[str, list[bool]] = {}
    for again in votes:
        before = first.get((again.person.id, again.item))
        if not again.repeat or before is None:
            continue
        answers, earlier = _Votes(study, [again]), _Votes(study, [before])
        for question in study.task.card.questions:
            if question.type in CHOOSING:
                known = {part: answer for _, part, answer in earlier.answers(question)}
                same.setdefault(again.person.id, []).extend(
                    known[part] == answer for _, part, answer in answers.answers(question) if part in known
                )
    return {name: {"same": sum(alike), "answers": len(alike)} for name, alike in sorted(same.items())}


def changed(votes: Sequence[Counted]) -> dict[str, int]:
    """Return how many votes were changed before their block was closed, and how often together."""
    return {
        "votes": sum(each.changes > 0 for each in votes),
        "changes": sum(each.changes for each in votes),
        "of": len(votes),
    }


def times(study: Study, votes: Sequence[Counted]) -> dict[str, Any]:
    """Return the active seconds of an item: over all, by reviewer, by place in a reviewer's own sequence."""
    by_reviewer: dict[str, list[Counted]] = {}
    for each in votes:
        by_reviewer.setdefault(each.person.id, []).append(each)
    block, curve = study.protocol.dealt.block, dict[int, list[float]]()
    for own in by_reviewer.values():
        order = {key: number for number, key in enumerate(own[0].person.votes)}  # as they first came
        for number, each in enumerate(sorted(own, key=lambda each: order[each.item])):
            if each.seconds is not None:
                curve.setdefault(number // block, []).append(each.seconds)
    return {
        "all": _quartiles([each.seconds for each in votes]),
        "by_reviewer": {
            name: _quartiles([each.seconds for each in own]) for name, own in sorted(by_reviewer.items())
        },
        "by_position": [
            {"from": number * block + 1, "to": (number + 1) * block, **_quartiles(seconds)}
            for number, seconds in sorted(curve.items())
        ],
    }


def _quartiles(seconds: Sequence[float | None]) -> dict[str, Json]:
    known: Floats = np.array([each for each in seconds if each is not None], dtype=np.float64)
    if not len(known):
        return {"votes": 0, "median": None, "q1": None, "q3": None}
    q1, median, q3 = (float(value) for value in np.quantile(known, (0.25, 0.5, 0.75)))
    return {"votes": len(known), "median": median, "q1": q1, "q3": q3}


def workload(study: Study, standing: Standing) -> dict[str, Any]:
    """Return the units of work (Table 21): items, votes on them, and decisions, by how items were settled.

    An item is unanimous where nobody had to decide anything of it, adjudicated where somebody decided, and
    open while something is to be decided or votes are missing. Only tasks with questions that are adjudicated
    have these.
    """
    settled: dict[str, str] = {}
    votes, decisions = dict[str, int](), Counter[str]()
    for point in points(study, standing):
        state = "open" if point.is_open else "adjudicated" if point.decision is not None else "unanimous"
        settled[point.item] = max(settled.get(point.item, "unanimous"), state, key=_ORDER.index)
        votes[point.item] = max(votes.get(point.item, 0), len(point.said))
        decisions[point.item] += point.decision is not None
    return {
        state: {
            "items": len(items),
            "judgements": sum(votes[item] for item in items),
            "decisions": sum(decisions[item] for item in items),
        }
        for state in _ORDER
        if (items := [item for item, own in settled.items() if own == state]) or settled
    }


_ORDER = ("unanimous", "adjudicated", "open")


# -- for people


def lines(document: Mapping[str, Any]) -> Iterator[str]:
    kept = document["kept"]
    counts = f"{kept['votes']:,} votes of {kept['reviewers']:,} reviewers on {kept['items']:,} items"
    yield f"results of {document['study']}: {counts}"
    if document["simulated"]:
        yield "reviewers are simulated: these numbers say nothing of people"
    if len(document["versions"]) > 1:
        yield f"pooled: {document['pooling']}; --json has each version"
    left_out = document["all"]["votes"] - kept["votes"]
    if left_out:
        yield f"left out by the rules of the protocol: {left_out:,} votes; --json has the numbers with them"
    for name, question in kept["questions"].items():
        yield f"{name}: " + ", ".join(
            f"{answer} {count:,}" for answer, count in question["answers"].items() if count
        )
        yield from (f"  {line}" for line in _question_lines(question))
    for name, share in kept["sections"].items():
        yield f"section {name}: {100 * share['value']:.1f} % of votes accept all of it"
    if kept["confidence"]:
        means = [each["mean"] for each in kept["confidence"].values()]
        yield f"mean confidence of a reviewer: {min(means):.2f} to {max(means):.2f}"
    yield from _time_lines(document["time"])
    changes = document["changed"]
    if changes["votes"]:
        yield f"votes that were changed: {changes['votes']:,} of {changes['of']:,}"
    for state, work in document["workload"].items():
        counts = f"{work['judgements']:,} judgements, {work['decisions']:,} decisions"
        yield f"{state}: {work['items']:,} items, {counts}"


def _question_lines(question: Mapping[str, Any]) -> Iterator[str]:
    if "pass" in question and question["pass"]["votes"]:
        yield f"accepted: {100 * question['pass']['value']:.1f} %"
    if "mean" in question and question["mean"]["votes"]:
        yield f"mean: {question['mean']['value']:.3f}"
    for name, title in (("agreement", "agreement"), ("agreement_on_value", "agreement on the value")):
        agreement = question.get(name)
        if agreement and agreement["units"]:
            shown = [f"{100 * agreement['pairs']:.1f} % of pairs"]
            shown += [f"{measure} {agreement[measure]:.3f}" for measure in ("kappa", "alpha")
                      if agreement[measure] is not None]  # fmt: skip
            yield f"{title}: {', '.join(shown)}, {agreement['units']:,} units"


def _time_lines(time: Mapping[str, Any]) -> Iterator[str]:
    spent = time["all"]
    if spent["median"] is not None:
        middle = f"half of them {spent['q1']:.0f} to {spent['q3']:.0f} s"
        yield f"active time of an item: median {spent['median']:.0f} s, {middle}"
        listed = [each for each in time["by_position"] if each["median"] is not None]
        if len(listed) > 1:
            first, last = listed[0], listed[-1]
            yield (
                f"  items {first['from']} to {first['to']}: {first['median']:.0f} s;"
                f" from {last['from']} on: {last['median']:.0f} s"
            )
