"""How often a test of kills, faults, load or hostile input repeats: in full, or a tenth of it.

``make endurance`` sets ``FABULA_ENDURANCE`` and runs the tests marked ``endurance`` at full count; elsewhere
a tenth has to do, and a smaller share of what takes minutes.
"""

import math
import os

VARIABLE = "FABULA_ENDURANCE"
SHARE = 10


def rounds(full: int, share: int = SHARE) -> int:
    """``full`` where endurance is asked for, else one of so many of it, and at least one."""
    return full if os.environ.get(VARIABLE) else max(1, math.ceil(full / share))
