"""The cost limit of a run: reserved before a call at its upper bound, settled after it at what it cost."""

import asyncio
from fractions import Fraction


class Budget:
    """Money that a run may spend, added exactly. Used in one event loop only.

    Args:
        limit: USD in all, over the whole life of the run; None for no limit.
        spent: USD spent before.
    """

    def __init__(self, limit: float | None, spent: float) -> None:
        self.limit = limit
        self._spent = Fraction(spent)
        self._reserved = Fraction(0)
        self._flying = 0
        self._settled = asyncio.Event()

    @property
    def spent(self) -> float:
        """USD spent so far."""
        return float(self._spent)

    def spend(self, amount: float) -> None:
        """Count what a call cost, or may have cost."""
        self._spent += Fraction(amount)

    async def reserve(self, bound: float) -> bool:
        """Set money aside for one call, waiting for calls in flight to be settled where that may help.

        Args:
            bound: USD that the call costs at most.

        Returns:
            False when the call does not fit and nothing is in flight that could make room.
        """
        while not self.fits(bound):
            if not self._flying:
                return False
            self._settled.clear()
            await self._settled.wait()
        self._reserved += Fraction(bound)
        self._flying += 1
        return True

    def fits(self, bound: float) -> bool:
        """Whether a call that costs at most so much may be made now."""
        return self.limit is None or self._spent + self._reserved + Fraction(bound) <= self.limit

    def release(self, bound: float) -> None:
        """Give back what was set aside for a call; what it cost is added to ``spent`` by then."""
        self._reserved -= Fraction(bound)
        self._flying -= 1
        self._settled.set()
