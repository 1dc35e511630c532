"""Texts: section A.4 and Table 9 of the EntityBench paper, and how actions name what is scheduled."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from ...schemas.entities import ALL, EntityType
from . import counting
from .counting import PLURALS, Episodes, Share, Value, mean, median, ratio, share
from .measures import TAGS, VERB_GROUPS, VERBS
from .tables import Groups, Table, TableMaker

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


def language_table(groups: Groups) -> Table:
    """Return section A.4: words of actions and prompts, tags of scene design."""
    make = TableMaker("section_a4", "A.4: linguistic profile", groups)
    for key, name, least in (("tokens", "tokens", 1), ("long_tokens", "longer tokens", 2)):
        how = _TOKENS if least == 1 else f"{_TOKENS}; those of one character left out"
        make.row(key, f"{name} of actions", partial(_tokens, least), how)
        make.row(f"{key}_types", f"different {name}", partial(_types, least), how)
        make.row(f"{key}_ratio", f"different {name} by {name}", partial(_type_ratio, least), how)
        make.row(f"{key}_mean", f"mean {name} of an action", partial(_of_lengths, least, mean), how)
        make.row(f"{key}_median", f"median {name} of an action", partial(_of_lengths, least, median), how)
    for name, words in (("action", _action_words), ("prompt", _prompt_words)):
        make.row(f"{name}_words", f"words of {name}s", partial(_of_words, words, sum), _WORDS)
        for key, count in (("mean", mean), ("median", median), ("fewest", min), ("most", max)):
            label = f"{key} words of {'an' if name == 'action' else 'a'} {name}"
            make.row(f"{name}_words_{key}", label, partial(_of_words, words, count), _WORDS)
    for tag in TAGS:
        make.row(f"tag_{tag}", f"actions that name: {tag.replace('_', ' ')}", partial(_tagged, tag), _LEXICON)
    make.row("close_up_share", "close-ups among actions with shot types", _close_ups, _LEXICON)
    make.row("night_by_day", "actions that name night, by those that name day", _night_by_day, _LEXICON)
    return make.table()


def verb_table(groups: Groups) -> Table:
    """Return Table 9: how often actions have each of its verbs."""
    make = TableMaker("table_9", "Table 9: action verbs", groups)
    whole = Counter[str]()
    for episode in groups[ALL]:
        whole.update(episode.texts.tokens)
    often = {verb: [form for form in forms if whole[form] >= FREQUENT] for verb, forms in VERBS.items()}
    for verb, forms in VERBS.items():
        make.row(
            verb, verb, partial(_forms, often[verb]), f"forms that occur {FREQUENT} times or more in the set"
        )
        make.row(f"{verb}_all", f"{verb}, all forms", partial(_forms, forms), ", ".join(forms))
    every = [form for forms in often.values() for form in forms]
    for group, verbs in VERB_GROUPS.items():
        own = [form for verb in verbs for form in often[verb]]
        how = (
            f"{', '.join(verbs)}: forms that occur {FREQUENT} times or more, of those of all the verbs above"
        )
        make.row(f"share_{group}", f"verbs of {group}", partial(_forms_share, own, every), how)
    return make.table()


def mention_table(groups: Groups) -> Table:
    """Return how actions and overviews name what is scheduled and declared."""
    make = TableMaker("mentions", "Mentions: how texts name the entities", groups)
    for kind, name in PLURALS.items():
        for how, words in _NAMED.items():
            label = f"slots of {name} {words}"
            make.row(f"{name}_{how}", label, partial(_mentions, kind, how), "in the action of the shot")
    overview = "different names of the registry, up to case"
    make.row("overview_words", "mean words of an overview", _overview_words, _WORDS)
    for kind, name in PLURALS.items():
        make.row(
            f"overview_{name}", f"{name} named in the overview", partial(_overview_names, kind), overview
        )
    make.row("odd_names", "names beyond ASCII", lambda some: sum(episode.texts.odd_names for episode in some))
    make.row(
        "odd_actions", "actions beyond ASCII", lambda some: sum(episode.texts.odd_actions for episode in some)
    )
    return make.table()


def _tokens(least: int, some: Episodes) -> int:
    return sum(_lengths(least, some))


def _types(least: int, some: Episodes) -> int:
    return len({token for episode in some for token in episode.texts.tokens if len(token) >= least})


def _type_ratio(least: int, some: Episodes) -> float | None:
    return ratio(_types(least, some), _tokens(least, some))


def _lengths(least: int, some: Episodes) -> list[int]:
    lengths_of = [
        episode.texts.action_tokens if least == 1 else episode.texts.action_long_tokens for episode in some
    ]
    return [length for lengths in lengths_of for length in lengths]


def _of_lengths(least: int, count: Callable[[list[int]], float | None], some: Episodes) -> Value:
    return count(_lengths(least, some))


def _action_words(some: Episodes) -> list[int]:
    return [words for episode in some for words in episode.texts.action_words]


def _prompt_words(some: Episodes) -> list[int]:
    return [words for episode in some for words in episode.texts.prompt_words]


def _of_words(
    words: Callable[[Episodes], list[int]], count: Callable[[list[int]], float | None], some: Episodes
) -> Value:
    lengths = words(some)
    return count(lengths) if lengths else None


def _tagged(tag: str, some: Episodes) -> Share | None:
    return share(sum(episode.texts.tags[tag] for episode in some), counting.shots(some))


def _close_ups(some: Episodes) -> Share | None:
    return share(*(sum(episode.texts.tags[tag] for episode in some) for tag in ("close_up", "shot_type")))


def _night_by_day(some: Episodes) -> float | None:
    night, day = (sum(episode.texts.tags[tag] for episode in some) for tag in ("night", "day"))
    return ratio(night, day)


def _forms(forms: Sequence[str], some: Episodes) -> int:
    return sum(episode.texts.tokens[form] for episode in some for form in forms)


def _forms_share(forms: Sequence[str], every: Sequence[str], some: Episodes) -> Share | None:
    return share(_forms(forms, some), _forms(every, some))


def _mentions(kind: EntityType, how: str, some: Episodes) -> Share | None:
    return share(sum(episode.texts.mentions[kind][how] for episode in some), counting.slots_of(kind, some))


def _overview_words(some: Episodes) -> float | None:
    return mean([episode.texts.overview_words for episode in some])


def _overview_names(kind: EntityType, some: Episodes) -> Share | None:
    names = [episode.texts.overview_names[kind] for episode in some]
    return share(sum(named for named, _ in names), sum(of for _, of in names))
