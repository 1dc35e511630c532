"""Asking again: how long, how often, and what is looked at first."""

import pytest

from fabula.releases.hub.faults import HubFault, Retries


def failing(*faults: HubFault | None) -> object:
    left = list(faults)

    def ask() -> str:
        fault = left.pop(0) if left else None
        if fault is not None:
            raise fault
        return "asked"

    return ask


def retries(pauses: list[float], **more: float) -> Retries:
    return Retries(sleep=pauses.append, draw=lambda: 1.0, **more)  # type: ignore[arg-type]


def test_pauses_when_hub_does_not_say_double_up_to_the_longest() -> None:
    pauses: list[float] = []
    down = HubFault("down", "no answer")
    with pytest.raises(HubFault, match="step: no answer"):
        retries(pauses, longest=5.0).run("step", failing(*[down] * 9))  # type: ignore[arg-type]
    # Six attempts, five pauses; with the largest draw 1, 2, 4 s, then the longest.
    assert pauses == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_pauses_when_hub_says_are_at_least_as_long_and_not_for_ever() -> None:
    pauses: list[float] = []
    busy = HubFault("busy", "slow down", retry_after=30.0)
    assert retries(pauses).run("step", failing(busy)) == "asked"  # type: ignore[arg-type]
    assert pauses == [31.0]
    with pytest.raises(HubFault):
        retries(pauses, patience=10.0).run("step", failing(busy))  # type: ignore[arg-type]
    assert pauses == [31.0]


def test_asking_again_when_fault_does_not_pass_is_left_out() -> None:
    pauses: list[float] = []
    with pytest.raises(HubFault):
        retries(pauses).run("step", failing(HubFault("refused", "no")))  # type: ignore[arg-type]
    assert pauses == []


def test_asking_again_when_it_may_be_done_looks_first() -> None:
    pauses: list[float] = []
    lost = HubFault("down", "reset", maybe_done=True)
    found = retries(pauses).run("step", failing(lost, lost), lambda: "done before")  # type: ignore[arg-type]
    assert found == "done before"
    assert len(pauses) == 1
    never = HubFault("down", "refused")
    assert retries(pauses).run("step", failing(never), lambda: "done before") == "asked"  # type: ignore[arg-type]
