"""Every number of the tables of the EntityBench paper, recomputed over a set of episodes; pure functions.

Tables 3, 6, 7, 8, 9, 10 and sections A.1 to A.5, by tier. Where what the paper defines and what it
counts differ, both conventions have a row: gaps as difference of numbers and as shots between, memory-only by
headers and by the schedule, first appearances by schedule and by registry, carry-over by type.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ...schemas.canonical import Json
from ...schemas.entities import ALL, TIERS, TYPES, EntityType
from .measures import (
    PLURALS,
    TAGS,
    VERB_GROUPS,
    VERBS,
    Episodes,
    Load,
    Measures,
    Tier,
    again,
    mean,
    median,
    ratio,
    share,
    so_many,
    spread,
)
from .tables import SHORT, Count, Groups, Table, table_of

# -- Scale and tiers: Tables 3, 6 and 10 of the EntityBench paper, and sections A.1 and A.5

MANY_OBJECTS = 25
_INDEX = "difference of the shots' numbers, 1 for neighbouring shots"
_BETWEEN = "shots between, 0 for neighbouring shots, as the paper defines it"
_POOLED = "over all pairs of consecutive appearances of the tier"
_WIDEST = "mean over the episodes of their widest"
_OWN = "over the recurring entities of the tier"
_HEADER = "by whether the prompt has a header"
_SD = "population standard deviation"
_LABELS = "different names under labels of the type; labels Gen_ are of none"
_SIZES: tuple[tuple[str, Callable[[list[int]], float | None]], ...] = (
    ("fewest", min), ("most", max), ("median", median), ("mean", mean),
)  # fmt: skip


def scale_rows(tier: Tier) -> Iterator[Count]:
    """Yield Table 3: what recurs, and after how long, by tier."""
    yield Count("episodes", "episodes", len(tier.episodes))
    yield Count("shots", "shots", tier.shots)
    for kind, name in PLURALS.items():
        recurring = spread([sum(track.recurs for track in episode.of(kind)) for episode in tier.episodes])
        convention = f"names scheduled in 2 shots or more; {_SD}"
        yield Count(f"cross_shot_{name}", f"cross-shot {name} per episode", recurring, convention)
    widest = [
        max((step for track in episode.tracks for step in track.steps), default=0)
        for episode in tier.episodes
    ]
    for key, words, less, how in (("index", "index", 0, _INDEX), ("between", "shots between", 1, _BETWEEN)):
        gaps = spread([step - less for step in tier.steps])
        yield Count(f"mean_gap_{key}", f"mean gap, {words}", gaps, f"{how}; {_POOLED}; {_SD}")
        most = spread([max(0, step - less) for step in widest])
        yield Count(f"max_gap_{key}", f"max gap per episode, {words}", most, f"{how}; {_WIDEST}; {_SD}")


def registry_rows(tier: Tier) -> Iterator[Count]:
    """Yield Table 6 and section A.1: scenes, shots, registry, appearances."""
    episodes = tier.episodes
    for key in ("scenes", "shots"):
        sizes = _sizes(tier, key)
        yield Count(key, key, sum(sizes))
        yield Count(f"{key}_per_episode", f"{key} per episode", spread(sizes), _SD)
        for name, count in _SIZES[:3]:
            yield Count(f"{name}_{key}", f"{name} {key} of an episode", count(sizes) if sizes else None)
    per_scene = median(episode.shots / episode.scenes for episode in episodes if episode.scenes)
    yield Count("median_shots_per_scene", "median shots per scene", per_scene, "median over the episodes")
    for kind, name in PLURALS.items():
        declared = [episode.declared[kind] for episode in episodes]
        yield Count(f"registry_{name}", f"{name} in registries", sum(declared), _LABELS)
        yield Count(f"registry_{name}_per_episode", f"{name} per registry", mean(declared), _LABELS)
        yield Count(f"most_{name}", f"most {name} of a registry", max(declared, default=None), _LABELS)
    yield Count("registry", "entities in registries", tier.declared, _LABELS)
    per_registry = ratio(tier.declared, len(episodes))
    yield Count("registry_per_episode", "entities per registry", per_registry, _LABELS)
    rows = sum(episode.rows for episode in episodes)
    yield Count("registry_rows", "rows of registries", rows, "whatever the label")
    objects = [episode.declared["object"] for episode in episodes]
    many = so_many(count > MANY_OBJECTS for count in objects)
    yield Count("many_objects", f"registries with more than {MANY_OBJECTS} objects", many, _LABELS)
    p90 = _percentile(objects, 0.9)
    yield Count("objects_p90", "objects of a registry, 90th percentile", p90, "linear interpolation")
    for kind, name in PLURALS.items():
        yield from _appearance_rows(tier, kind, name)
    per_character, per_object = _shots_per(tier, "character"), _shots_per(tier, "object")
    by_object = None if per_character is None else ratio(per_character, per_object or 0)
    yield Count("character_by_object", "shots per character, by shots per object", by_object)
    yield Count("appearances", "appearances in all", tier.slots)
    yield Count("appearances_per_episode", "appearances per episode", ratio(tier.slots, len(episodes)))


def short_rows(tier: Tier) -> Iterator[Count]:
    """Yield what section A.1 says of easy and medium episodes together."""
    for key in ("shots", "scenes"):
        for name, count in _SIZES:
            yield Count(f"{name}_{key}", f"{name} {key} of an episode", count(_sizes(tier, key)))


def tier_rows(tier: Tier) -> Iterator[Count]:
    """Yield Table 10: what else differs between the tiers."""
    yield Count("episodes", "episodes", len(tier.episodes))
    yield Count("shots", "shots", tier.shots)
    scheduled = len(tier.tracks)
    yield Count("scheduled", "scheduled entities", scheduled, "a name in one kind of list, once per episode")
    recurring = so_many(track.recurs for track in tier.tracks)
    yield Count("recurring", "recurring-entity rate", recurring, "in 2 shots or more")
    own = f"{_INDEX}; {_OWN}"
    yield Count("mean_max_gap", "mean per-entity max gap", mean(tier.widest), own)
    yield Count("median_max_gap", "median per-entity max gap", median(tier.widest), own)
    yield Count("global_max_gap", "global max gap", max(tier.widest, default=None), _INDEX)
    casts = [load[TYPES.index("character")] for load in tier.loads]
    yield Count("mean_characters", "mean characters per shot", mean(casts))
    yield Count("most_characters", "most characters of a shot", max(casts, default=None))
    three = tier.of_shots(load[0] >= 3 for load in tier.loads)
    yield Count("three_characters", "shots with 3 characters or more", three)
    both = tier.of_shots(load[0] >= 2 and load[2] >= 1 for load in tier.loads)
    yield Count("two_and_object", "shots with 2 characters or more and an object", both)
    later = again(scheduled, tier.slots)
    yield Count("reappearing", "re-appearance rate of slots", later, "slots less scheduled entities")
    cuts = tier.of_shots(cut for episode in tier.episodes for cut in episode.cuts)
    yield Count("cut_rate", "cut rate", cuts, "the first shot of an episode counts as a cut")
    within = share(
        sum(sum(episode.cuts[1:]) for episode in tier.episodes),
        sum(max(0, episode.shots - 1) for episode in tier.episodes),
    )
    yield Count("cut_rate_within", "cut rate within episodes", within, "first shots left out")
    headers = [header for episode in tier.episodes for header in episode.headers]
    yield Count("registry_shots", "registry-shot rate", tier.of_shots(headers), _HEADER)
    yield Count("memory_only", "memory-only rate", tier.of_shots(not header for header in headers), _HEADER)
    known = "by whether all that is scheduled, at least one, was scheduled before, as the paper defines it"
    only = tier.of_shots(only for episode in tier.episodes for only in episode.only_known)
    yield Count("memory_only_schedule", "memory-only rate, by the schedule", only, known)


def _appearance_rows(tier: Tier, kind: EntityType, name: str) -> Iterator[Count]:
    slots = tier.slots_of(kind)
    yield Count(f"appearances_{name}", f"appearances of {name}", slots, "slots")
    per_episode = ratio(slots, len(tier.episodes))
    yield Count(f"appearances_{name}_per_episode", f"appearances of {name} per episode", per_episode)
    registered = sum(episode.registered[kind] for episode in tier.episodes)
    convention = "slots whose name is in the registry"
    yield Count(f"registered_{name}", f"appearances of {name}, in the registry", registered, convention)
    convention = "appearances by entities of the registry, never scheduled ones included"
    yield Count(f"shots_per_{kind}", f"shots per {kind}", _shots_per(tier, kind), convention)


def _shots_per(tier: Tier, kind: EntityType) -> float | None:
    return ratio(tier.slots_of(kind), tier.declared_of(kind))


def _sizes(tier: Tier, key: str) -> list[int]:
    return [int(getattr(episode, key)) for episode in tier.episodes]


def _percentile(values: list[int], part: float) -> float | None:
    ordered = sorted(values)
    if not ordered:
        return None
    rank = part * (len(ordered) - 1)
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (rank - below) * (ordered[above] - ordered[below])


# -- Every number of the tables of the EntityBench paper, recomputed over a set of episodes

# -- Structure: Tables 7 and 8 of the EntityBench paper, section A.3, and what headers describe

FIRST_SHOTS = 10
_ONCE = "a name in one kind of list, once per episode"
_BY_LABEL = "names under labels of the type that are scheduled: what the paper's typed columns count"
_SIDES = "last shot before the cut against first shot after it"
_LINE = "the prompt has a line <name>: <description>"

_LOADS: tuple[tuple[str, str, Callable[[Load], bool]], ...] = (
    ("characters_0", "shots with no character", lambda load: load[0] == 0),
    ("characters_1", "shots with 1 character", lambda load: load[0] == 1),
    ("characters_2", "shots with 2 characters", lambda load: load[0] == 2),
    ("characters_3", "shots with 3 characters or more", lambda load: load[0] >= 3),
    (
        "two_and_object",
        "shots with 2 characters or more and an object",
        lambda load: load[0] >= 2 and load[2] >= 1,
    ),
    ("all_types", "shots with all three types", lambda load: min(load) >= 1),
    ("no_location", "shots with no location", lambda load: load[1] == 0),
    ("several_locations", "shots with 2 locations or more", lambda load: load[1] >= 2),
    ("no_object", "shots with no object", lambda load: load[2] == 0),
    ("nothing", "shots that schedule nothing", lambda load: not any(load)),
)


def composition_rows(tier: Tier) -> Iterator[Count]:
    """Yield Table 7: what shots schedule."""
    for index, kind in enumerate(TYPES):
        name = PLURALS[kind]
        yield Count(f"{name}_per_shot", f"{name} per shot", mean([load[index] for load in tier.loads]))
    yield Count("entities_per_shot", "entities per shot", mean(list(map(sum, tier.loads))))
    for key, label, holds in _LOADS:
        yield Count(key, label, tier.of_shots(map(holds, tier.loads)))


def memory_rows(tier: Tier) -> Iterator[Count]:
    """Yield Table 8: first appearances and re-appearances of each type, and what headers describe."""
    for kind, name in PLURALS.items():
        slots, first = tier.slots_of(kind), len(tier.tracks_of(kind))
        yield Count(f"slots_{name}", f"slots of {name}", slots)
        yield Count(f"first_{name}", f"first appearances of {name}", first, _ONCE)
        yield Count(f"again_{name}", f"re-appearances of {name}", again(first, slots), _ONCE)
        first = sum(episode.in_registry[kind] for episode in tier.episodes)
        yield Count(f"first_registered_{name}", f"first appearances of {name}, by label", first, _BY_LABEL)
        later = again(first, slots)
        yield Count(f"again_registered_{name}", f"re-appearances of {name}, by label", later, _BY_LABEL)
    yield Count("slots", "slots in all", tier.slots)
    yield Count("first", "first appearances in all", len(tier.tracks), _ONCE)
    yield Count("again", "re-appearances in all", again(len(tier.tracks), tier.slots), _ONCE)
    yield Count("first_registered", "first appearances in all, by label", tier.in_registry, _BY_LABEL)
    later = again(tier.in_registry, tier.slots)
    yield Count("again_registered", "re-appearances in all, by label", later, _BY_LABEL)
    for kind, name in PLURALS.items():
        described = so_many(track.described for track in tier.tracks_of(kind))
        yield Count(f"described_{name}", f"first appearances of {name} described", described, _LINE)
    described = so_many(track.described for track in tier.tracks)
    yield Count("described", "first appearances described", described, _LINE)
    decorated, convention = "likewise, decorated names included", "<name> (Object 7): too"
    either = so_many(track.described or track.decorated for track in tier.tracks)
    yield Count("described_decorated", decorated, either, convention)
    unregistered = so_many(not track.registered for track in tier.tracks)
    yield Count("unregistered", "scheduled entities not in the registry", unregistered, _ONCE)


def structure_rows(tier: Tier) -> Iterator[Count]:
    """Yield section A.3: recurrence, gaps, cuts and chains, persistence, introductions."""
    yield Count("scheduled", "scheduled entities", len(tier.tracks), _ONCE)
    yield Count("two_shots", "in 2 shots or more", so_many(track.recurs for track in tier.tracks))
    yield Count("two_scenes", "in 2 scenes or more", so_many(track.scenes > 1 for track in tier.tracks))
    for less, key, words in ((0, "index", "index"), (1, "between", "shots between")):
        for least in (5, 10, 20):
            wide = so_many(step >= least + less for step in tier.widest)
            label, convention = f"max gap of {least} or more, {words}", "of the recurring entities"
            yield Count(f"gap_{least}_{key}", label, wide, convention)
        most = max((step - less for step in tier.widest), default=None)
        yield Count(f"max_gap_{key}", f"widest gap, {words}", most)
    yield from _chain_rows(tier)
    yield from _persistence_rows(tier)


def _chain_rows(tier: Tier) -> Iterator[Count]:
    cuts = tier.of_shots(cut for episode in tier.episodes for cut in episode.cuts)
    yield Count("cuts", "cuts, first shots included", cuts)
    sides = [kinds for episode in tier.episodes for kinds in episode.carried]
    yield Count("cuts_within", "cuts within episodes", len(sides))
    runs = "runs of shots without a cut between"
    yield Count("chains", "continuation chains", len(tier.chains), runs)
    yield Count("mean_chain", "mean length of a chain", mean(tier.chains))
    yield Count("longest_chain", "longest chain", max(tier.chains, default=None))
    yield Count("single_chains", "chains of 1 shot", so_many(length == 1 for length in tier.chains))
    yield Count("long_chains", "chains of 5 shots or more", so_many(length >= 5 for length in tier.chains))
    yield Count("several_chains", "chains of 2 shots or more", so_many(length > 1 for length in tier.chains))
    yield Count("carry_over_any", "cuts that carry over something", so_many(map(bool, sides)), _SIDES)
    nothing = so_many(not kinds for kinds in sides)
    yield Count("carry_over_none", "cuts that carry over nothing", nothing, _SIDES)
    either = so_many(not kinds.isdisjoint(("character", "object")) for kinds in sides)
    yield Count("carry_over_either", "cuts that carry over a character or object", either, _SIDES)
    for kind in TYPES:
        carried = so_many(kind in kinds for kinds in sides)
        yield Count(f"carry_over_{kind}", f"cuts that carry over {_a(kind)}", carried, _SIDES)


def _persistence_rows(tier: Tier) -> Iterator[Count]:
    appearances = [len(track.shots) for track in tier.tracks]
    runs = [track.longest_run for track in tier.tracks]
    yield Count("median_appearances", "median shots of an entity", median(appearances))
    yield Count("most_appearances", "most shots of an entity", max(appearances, default=None))
    yield Count("median_run", "median longest run of an entity", median(runs))
    yield Count("single_runs", "entities whose longest run is 1 shot", so_many(run == 1 for run in runs))
    yield Count("longest_run", "longest run", max(runs, default=None))
    for kind in TYPES:
        longest = max((track.longest_run for track in tier.tracks_of(kind)), default=None)
        yield Count(f"longest_run_{kind}", f"longest run of {_a(kind)}", longest)
    first = mean([episode.introduced[0] for episode in tier.episodes if episode.shots])
    yield Count("introduced_first", "new entities in the first shot", first, "mean over the episodes")
    early = [(sum(episode.introduced[:FIRST_SHOTS]), len(episode.tracks)) for episode in tier.episodes]
    label = f"introduced in the first {FIRST_SHOTS} shots"
    shares = mean([count / of for count, of in early if of])
    yield Count("introduced_early_mean", label, shares, "mean over the episodes")
    pooled = share(sum(count for count, _ in early), len(tier.tracks))
    yield Count("introduced_early", label, pooled, "over all entities of the tier")
    late = mean([new for episode in tier.episodes for new in episode.introduced[FIRST_SHOTS:]])
    label, convention = (
        f"new entities of a shot after the first {FIRST_SHOTS}",
        "over all such shots of the tier",
    )
    yield Count("introduced_late", label, late, convention)


def _a(kind: EntityType) -> str:
    return f"an {kind}" if kind == "object" else f"a {kind}"


# -- Every number of the tables of the EntityBench paper, recomputed over a set of episodes

# -- Texts: section A.4 and Table 9 of the EntityBench paper, and how actions name what is scheduled

FREQUENT = 43
"""Least count of a form that Table 9 of the paper seems to sum up: with it all its 18 counts come out."""
_TOKENS = "runs of letters, digits, ' - _ in lower case"
_WORDS = "words as white space parts them"
_NAMED = {
    "exact": "named letter for letter",
    "case": "named in another case only",
    "part": "named by a content word only",
    "none": "not named",
}
_LEXICON = "by a lexicon of ours; that of the paper is not published"


def language_rows(tier: Tier) -> Iterator[Count]:
    """Yield section A.4: words of actions and prompts, tags of scene design."""
    texts = [episode.texts for episode in tier.episodes]
    for key, name, least in (("tokens", "tokens", 1), ("long_tokens", "longer tokens", 2)):
        how = _TOKENS if least == 1 else f"{_TOKENS}; those of one character left out"
        counts = [text.action_tokens if least == 1 else text.action_long_tokens for text in texts]
        lengths = [length for actions in counts for length in actions]
        types = len({token for text in texts for token in text.tokens if len(token) >= least})
        yield Count(key, f"{name} of actions", sum(lengths), how)
        yield Count(f"{key}_types", f"different {name}", types, how)
        yield Count(f"{key}_ratio", f"different {name} by {name}", ratio(types, sum(lengths)), how)
        yield Count(f"{key}_mean", f"mean {name} of an action", mean(lengths), how)
        yield Count(f"{key}_median", f"median {name} of an action", median(lengths), how)
    for name, words in (
        ("action", [words for text in texts for words in text.action_words]),
        ("prompt", [words for text in texts for words in text.prompt_words]),
    ):
        yield Count(f"{name}_words", f"words of {name}s", sum(words) if words else None, _WORDS)
        for key, count in (("mean", mean), ("median", median), ("fewest", min), ("most", max)):
            label = f"{key} words of {'an' if name == 'action' else 'a'} {name}"
            yield Count(f"{name}_words_{key}", label, count(words) if words else None, _WORDS)
    tags = {tag: sum(text.tags[tag] for text in texts) for tag in TAGS}
    for tag in TAGS:
        label = f"actions that name: {tag.replace('_', ' ')}"
        yield Count(f"tag_{tag}", label, share(tags[tag], tier.shots), _LEXICON)
    close = share(tags["close_up"], tags["shot_type"])
    yield Count("close_up_share", "close-ups among actions with shot types", close, _LEXICON)
    night = ratio(tags["night"], tags["day"])
    yield Count("night_by_day", "actions that name night, by those that name day", night, _LEXICON)


def often_in(episodes: Episodes) -> dict[str, list[str]]:
    """Return the forms of each verb of Table 9 that occur :data:`FREQUENT` times or more in a set."""
    whole = _tokens(episodes)
    return {verb: [form for form in forms if whole[form] >= FREQUENT] for verb, forms in VERBS.items()}


def verb_rows(often: Mapping[str, Sequence[str]], tier: Tier) -> Iterator[Count]:
    """Yield Table 9: how often actions have each of its verbs."""
    tokens = _tokens(tier.episodes)
    counts = {verb: sum(tokens[form] for form in forms) for verb, forms in often.items()}
    how = f"forms that occur {FREQUENT} times or more"
    for verb, forms in VERBS.items():
        yield Count(verb, verb, counts[verb], f"{how} in the set")
        yield Count(
            f"{verb}_all", f"{verb}, all forms", sum(tokens[form] for form in forms), ", ".join(forms)
        )
    for group, verbs in VERB_GROUPS.items():
        own = share(sum(counts[verb] for verb in verbs), sum(counts.values()))
        convention = f"{', '.join(verbs)}: {how}, of those of all the verbs above"
        yield Count(f"share_{group}", f"verbs of {group}", own, convention)


def mention_rows(tier: Tier) -> Iterator[Count]:
    """Yield how actions and overviews name what is scheduled and declared."""
    texts = [episode.texts for episode in tier.episodes]
    for kind, name in PLURALS.items():
        for how, words in _NAMED.items():
            mentioned = share(sum(text.mentions[kind][how] for text in texts), tier.slots_of(kind))
            yield Count(f"{name}_{how}", f"slots of {name} {words}", mentioned, "in the action of the shot")
    overview = mean([text.overview_words for text in texts])
    yield Count("overview_words", "mean words of an overview", overview, _WORDS)
    for kind, name in PLURALS.items():
        names = [text.overview_names[kind] for text in texts]
        named = share(sum(named for named, _ in names), sum(of for _, of in names))
        convention = "different names of the registry, up to case"
        yield Count(f"overview_{name}", f"{name} named in the overview", named, convention)
    yield Count("odd_names", "names beyond ASCII", sum(text.odd_names for text in texts))
    yield Count("odd_actions", "actions beyond ASCII", sum(text.odd_actions for text in texts))


def _tokens(episodes: Episodes) -> Counter[str]:
    tokens = Counter[str]()
    for episode in episodes:
        tokens.update(episode.texts.tokens)
    return tokens


# -- Every number of the tables of the EntityBench paper, recomputed over a set of episodes


@dataclass(frozen=True, slots=True)
class EntityStatistics:
    """What is counted over a set of episodes."""

    groups: Groups  # tier -> the measures of its episodes; ``all`` last
    tables: tuple[Table, ...]  # the tables, in the order of the paper

    def as_json(self) -> dict[str, Json]:
        """Return the content of ``statistics.json``: tables, distributions, a line per episode."""
        tier_of = {
            episode.episode_id: tier for tier, some in self.groups.items() if tier != ALL for episode in some
        }
        everything = self.groups[ALL]
        return {
            "kind": "entities",
            "totals": totals(everything),
            "tables": {table.key: table.as_json() for table in self.tables},
            "distributions": {tier: distributions(some) for tier, some in self.groups.items()},
            "episodes": {
                episode.episode_id: _line(episode, tier_of.get(episode.episode_id)) for episode in everything
            },
        }


def entity_statistics(
    measured: Iterable[Measures], tiers: Mapping[str, Sequence[str]] | None = None
) -> EntityStatistics:
    """Return the statistics of a set.

    ``tiers``: tier -> ids of its episodes; ``all`` is made of the episodes that are there.
    """
    by_id = {episode.episode_id: episode for episode in measured}
    given = {tier: ids for tier, ids in (tiers or {}).items() if tier != ALL}
    groups = {tier: [by_id[name] for name in ids if name in by_id] for tier, ids in given.items()}
    groups[ALL] = list(by_id.values())
    return EntityStatistics(groups, tuple(_tables(groups)))


def _tables(groups: Groups) -> Iterator[Table]:
    yield table_of("table_3", "Table 3: statistics across tiers", groups, scale_rows)
    yield table_of("table_6", "Table 6 and A.1: scale and taxonomy", groups, registry_rows)
    short = [episode for tier in TIERS[:2] for episode in groups.get(tier, ())]
    if short:
        yield table_of("section_a1", "A.1: easy and medium episodes", {SHORT: short}, short_rows)
    yield table_of("table_7", "Table 7: composition of shots", groups, composition_rows)
    yield table_of("table_8", "Table 8: memory test signal", groups, memory_rows)
    yield table_of("section_a3", "A.3: long-range structure", groups, structure_rows)
    yield table_of("section_a4", "A.4: linguistic profile", groups, language_rows)
    yield table_of("table_9", "Table 9: action verbs", groups, partial(verb_rows, often_in(groups[ALL])))
    yield table_of("table_10", "Table 10: tier-stratified statistics", groups, tier_rows)
    yield table_of("mentions", "Mentions: how texts name the entities", groups, mention_rows)


def totals(some: Sequence[Measures]) -> dict[str, int]:
    """Return how many episodes, scenes, shots, entities and slots there are."""
    return {
        "episodes": len(some),
        "scenes": sum(episode.scenes for episode in some),
        "shots": sum(episode.shots for episode in some),
        "entities": sum(episode.rows for episode in some),
        "slots": sum(sum(load) for episode in some for load in episode.loads),
    }


def distributions(some: Sequence[Measures]) -> dict[str, Json]:
    """Return value -> count of what the figures of the paper show (Figures 3 to 8), in order of values."""
    tracks = [track for episode in some for track in episode.tracks]
    result: dict[str, Json] = {
        "max_gap_index": _counted(max(track.steps) for track in tracks if track.recurs),
        "chain_length": _counted(length for episode in some for length in episode.chains),
        "appearances": _counted(len(track.shots) for track in tracks),
        "longest_run": _counted(track.longest_run for track in tracks),
    }
    for index, kind in enumerate(TYPES):
        result[f"declared_{kind}"] = _counted(episode.declared[kind] for episode in some)
        result[f"load_{kind}"] = _counted(load[index] for episode in some for load in episode.loads)
    result["introduced"] = introduced(some)
    return result


def introduced(some: Sequence[Measures]) -> list[dict[str, Json]]:
    """Return per number of a shot how many episodes have it, and how many new entities it has on average."""
    longest = max((episode.shots for episode in some), default=0)
    rows = []
    for number in range(1, longest + 1):
        there = [episode.introduced[number - 1] for episode in some if episode.shots >= number]
        rows.append({"shot": number, "episodes": len(there), "mean": round(sum(there) / len(there), 6)})
    return rows


def _counted(values: Iterable[int]) -> dict[str, int]:
    counts = Counter(values)
    return {str(value): counts[value] for value in sorted(counts)}


def _line(measure: Measures, tier: str | None) -> dict[str, Json]:
    return {
        "tier": tier,
        "scenes": measure.scenes,
        "shots": measure.shots,
        **{f"declared_{kind}": measure.declared[kind] for kind in TYPES},
        **{f"slots_{kind}": measure.slots(kind) for kind in TYPES},
        "recurring": sum(track.recurs for track in measure.tracks),
        "max_gap_index": max((step for track in measure.tracks for step in track.steps), default=0),
    }
