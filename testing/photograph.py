"""The photograph of people at a table that insightface carries (``t1.jpg``): where they are, by hand."""

from ..builders.entities.drafts import Box4

PEOPLE: tuple[tuple[Box4, Box4], ...] = (
    ((0, 232, 305, 886), (60, 265, 160, 400)),
    ((262, 100, 745, 670), (268, 145, 385, 265)),
    ((338, 218, 678, 640), (465, 265, 590, 405)),
    ((640, 290, 925, 625), (748, 335, 860, 480)),
    ((878, 0, 1280, 660), (905, 50, 1025, 205)),
    ((985, 235, 1280, 695), (1132, 265, 1228, 400)),
)
"""Box and face of six people, from left to right, in pixels of 1280 x 886."""
