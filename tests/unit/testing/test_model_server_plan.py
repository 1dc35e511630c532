"""Fault plans: repeatable, at the rates given."""

import hashlib
from typing import Any

import pytest

from fabula.testing.model_server import Dropped, FaultPlan, Prose, RateLimited, Refused, TooLong

RATES = {RateLimited(): 0.1, Dropped(): 0.05, Refused(): 0.02, Prose(): 0.03}
KEYS = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(20_000)]


def test_plan_when_asked_again_decides_the_same() -> None:
    first = [FaultPlan(7, RATES).decide(key, 1) for key in KEYS[:500]]
    assert [FaultPlan(7, RATES).decide(key, 1) for key in KEYS[:500]] == first
    assert [FaultPlan(8, RATES).decide(key, 1) for key in KEYS[:500]] != first


def test_plan_when_drawn_often_keeps_its_rates() -> None:
    found = [fault for key in KEYS for fault in FaultPlan(1, RATES).decide(key, 1)]
    for fault, rate in RATES.items():
        # Content faults show only where no error struck instead: 0.9 of the time.
        expected = rate * (0.9 if fault.content else 1.0) * len(KEYS)
        assert found.count(fault) == pytest.approx(expected, rel=0.15)


def test_plan_when_a_question_is_asked_again_changes_deliveries_and_keeps_content() -> None:
    plan = FaultPlan(3, RATES, calm_after=None)
    both = 0
    for key in KEYS[:2000]:
        struck = [plan.decide(key, number) for number in range(1, 9)]
        content = [
            {fault for fault in faults if fault.content} for faults in struck if RateLimited() not in faults
        ]
        assert all(faults == content[0] for faults in content), "also where the answer is dropped"
        both += any(len(faults) == 2 for faults in struck)
        assert not all(any(not fault.content for fault in faults) for faults in struck)
    assert both


def test_plan_when_calm_leaves_only_faults_of_content() -> None:
    plan = FaultPlan(3, {RateLimited(): 1.0, Refused(): 0.5}, calm_after=2)
    assert all(plan.decide(key, 2) == (RateLimited(),) for key in KEYS[:100])
    assert {plan.decide(key, 3) for key in KEYS[:100]} == {(), (Refused(),)}


def test_plan_when_a_fault_is_for_always_strikes_what_it_concerns(serve: Any, sdks: Any) -> None:
    server = serve(faults=FaultPlan(always=(TooLong(limit=50),)))
    assert sdks.ask(server, "openai").text == "OK"
    assert sdks.status(server, "openai", text="word " * 100)[0] == 400


@pytest.mark.parametrize("rates", [{Prose(): 0.6, Refused(): 0.6}, {Prose(): -0.1}])
def test_plan_when_rates_cannot_be_is_refused(rates: Any) -> None:
    with pytest.raises(ValueError, match="rate"):
        FaultPlan(0, rates)
