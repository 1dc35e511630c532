"""Metrics of shot images on vectors of the size of ViStoryBench, beside the public code's way of pairs.

    python benchmarks/images.py [--stories 80] [--dimensions 768]

Drawn unit vectors stand for those of encoders: 80 stories, 1,317 shots, 344 characters and 509 references
at full size. The public code encodes every crop of a shot again for every expected character; how many
encodings that is beside ours is counted, not timed.
"""

import argparse
import time

import numpy as np

from fabula.evaluation.metrics.cids import Character, Cids, ShotCrops, cids
from fabula.evaluation.metrics.copy_paste import copy_paste
from fabula.evaluation.metrics.occm import occm
from fabula.evaluation.metrics.style import style_cross, style_self
from fabula.evaluation.metrics.vectors import Vectors, unit

SHOTS, CHARACTERS, REFERENCES = 1317, 344, 509


class Story:
    """One drawn story."""

    def __init__(self, draw: np.random.Generator, shots: int, references: list[int], size: int) -> None:
        self.characters = [
            Character(f"c{number}", ("clip",), self.vectors(draw, count, size))
            for number, count in enumerate(references)
        ]
        names = [one.key for one in self.characters]
        self.shots = []
        for number in range(1, shots + 1):
            cast = draw.choice(names, size=min(len(names), int(draw.integers(0, 4))), replace=False)
            crops = self.vectors(draw, len(cast) + int(draw.integers(0, 2)), size)
            self.shots.append(ShotCrops(number, tuple(map(str, cast)), crops))
        self.styles = unit(draw.normal(size=(shots, size)))
        self.reference_styles = {
            one.key: unit(draw.normal(size=(len(one.references), size))) for one in self.characters
        }

    @staticmethod
    def vectors(draw: np.random.Generator, count: int, size: int) -> Vectors:
        """Return drawn unit vectors."""
        return Vectors({"clip": unit(draw.normal(size=(count, size)))})

    def encodings(self) -> tuple[int, int]:
        """Return how many crops are encoded as the public code does it, and once each."""
        references = sum(len(one.references) for one in self.characters)
        pairs = sum(len(shot.expected) * len(shot.crops or ()) for shot in self.shots)
        matched = sum(min(len(shot.expected), len(shot.crops or ())) for shot in self.shots)
        crops = sum(len(shot.crops or ()) for shot in self.shots if shot.expected)
        theirs = references + 2 * len(self.characters) + pairs + matched
        return theirs, references + len(self.characters) + crops

    def styles_encoded(self) -> tuple[int, int]:
        """Return how many images the public code encodes for style, whose cache holds 20, and once each."""
        kept: list[str] = []
        theirs = 0
        pairs = [(f"s{one}", f"s{two}") for one in range(len(self.shots)) for two in range(one)]
        firsts = [(f"s{number}", key) for number, shot in enumerate(self.shots) for key in shot.expected]
        for pair in (*pairs, *firsts):
            for name in pair:
                if name not in kept:
                    theirs += 1
                    kept = [*kept, name][-20:]
        return theirs, len(self.shots) + len({key for _, key in firsts})

    def score(self) -> Cids:
        """Return all values of the story."""
        found = cids(self.characters, self.shots)
        copy_paste(self.characters, found.crops)
        occm((len(shot.expected), len(shot.crops or ())) for shot in self.shots)
        style_self(self.styles)
        style_cross(
            [(self.styles[place], shot.expected) for place, shot in enumerate(self.shots)],
            self.reference_styles,
        )
        return found


def draw_stories(stories: int, size: int) -> list[Story]:
    """Return stories that together have the published numbers of shots, characters and references."""
    draw = np.random.default_rng(42)
    share = stories / 80
    shots = _split(round(SHOTS * share), stories)
    counts = _split(round(CHARACTERS * share), stories)
    spare = round((REFERENCES - CHARACTERS) * share)
    made = []
    for number in range(stories):
        references = [1] * counts[number]
        more = spare // (stories - number)
        for place in range(more):
            references[place % len(references)] += 1
        spare -= more
        made.append(Story(draw, shots[number], references, size))
    return made


def _split(total: int, parts: int) -> list[int]:
    return [total // parts + (place < total % parts) for place in range(parts)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--stories", type=int, default=80)
    parser.add_argument("--dimensions", type=int, default=768)
    args = parser.parse_args()
    stories = draw_stories(args.stories, args.dimensions)
    shots = sum(len(story.shots) for story in stories)
    people = sum(len(story.characters) for story in stories)
    references = sum(len(one.references) for story in stories for one in story.characters)
    began = time.perf_counter()
    matched = sum(story.score().cross.counts["matched"] for story in stories)
    seconds = time.perf_counter() - began
    crops = [sum(pair) for pair in zip(*(story.encodings() for story in stories), strict=True)]
    styles = [sum(pair) for pair in zip(*(story.styles_encoded() for story in stories), strict=True)]
    print(f"{len(stories)} stories, {shots} shots, {people} characters, {references} references")
    print(f"all metrics from vectors: {seconds:.2f} s, {matched} characters matched")
    print(f"{'':<12}{'public code':>13}{'once each':>11}")
    print(f"{'crops':<12}{crops[0]:>13}{crops[1]:>11}")
    print(f"{'styles':<12}{styles[0]:>13}{styles[1]:>11}")
    long = Story(np.random.default_rng(7), 30, [1, 1], 8).styles_encoded()
    print(f"{'of 30 shots':<12}{long[0]:>13}{long[1]:>11}")


if __name__ == "__main__":
    main()
