"""Texts: section A.4 and Table 9 of the EntityBench paper, and how actions name what is scheduled."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from .counting import PLURALS, Episodes, Tier, mean, median, ratio, share
from .measures import TAGS, VERB_GROUPS, VERBS
from .tables import Count

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
