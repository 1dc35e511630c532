"""How often a test of kills, faults, load or hostile input repeats: in full, or a tenth of it.

``make endurance`` sets ``FABULA_ENDURANCE`` and runs the tests marked ``endurance`` at full count; elsewhere
a tenth has to do.
"""

import math
import os

VARIABLE = "FABULA_ENDURANCE"
SHARE = 10


def rounds(full: int) -> int:
    """``full`` where endurance is asked for, else a tenth of it, and at least one."""
    return full if os.environ.get(VARIABLE) else max(1, math.ceil(full / SHARE))
