"""Which evidence is needed (Table 59): values and filter with fewer conditions.

Question: what does each condition of evidence add?
Formula: without text-only evidence there is no gap, and the value is image-only recoverability; without
    image-only evidence the value is that from text; without text+image evidence nothing is filtered. Each
    value's reliability is split-half over storyboards (:mod:`...measures.reliability`), detection is of
    planted defects (:mod:`...measures.detection`), correlation is with people's
    image-only recoverability.
Source: KathaTrace, J.2 and Table 59, which names the three columns without formulas; Table 73 has the rates.
Departures: the definitions are ours. Without the filter detection is 0, since nothing is removed.
"""

from dataclasses import dataclass

from .setting import How, Setting, unfiltered


@dataclass(frozen=True)
class Evidence:
    """A row of Table 59.

    Attributes:
        setting: what of the protocol is left.
        value: what it says of a storyboard: ``text``, ``image`` or ``gap``.
        conditions: whether text-only, image-only and text+image evidence is used.
    """

    setting: Setting
    value: str
    conditions: tuple[bool, bool, bool]


def _row(name: str, title: str, value: str, conditions: tuple[bool, bool, bool]) -> Evidence:
    left_out = [
        kind
        for kind, used in zip(("text-only", "image-only", "text+image"), conditions, strict=True)
        if not used
    ]
    removes = f"{' and '.join(left_out).capitalize()} evidence." if left_out else "Nothing."
    cut = None if conditions[2] else unfiltered
    how: How = "nothing" if not left_out else "filter"
    return Evidence(Setting(name=name, title=title, removes=removes, how=how, cut=cut), value, conditions)


EVIDENCE = (
    _row("image", "Image-only only", "image", (False, True, False)),
    _row("text-image", "Text + image-only", "gap", (True, True, False)),
    _row("image-both", "Image + text+image only", "image", (False, True, True)),
    _row("text-both", "Text-only + text+image only", "text", (True, False, True)),
    _row("full", "Full evidence protocol", "gap", (True, True, True)),
)
"""The rows of Table 59."""
