"""Stopping before the first call where no output of any method can be judged."""

from collections import Counter
from collections.abc import Sequence

from ..errors import InputError, UserError
from ..validators.report import ValidationReport
from .words import counted

NOTHING_FOUND = "nothing-found"
"""Code of the finding that says what lies in a folder in which no output was found."""


def nothing_to_judge(noun: str, reports: Sequence[ValidationReport]) -> InputError:
    """Return the error for outputs of which none can be judged: what was seen in each folder, and the cure.

    Args:
        noun: what is judged, such as ``storyboard``.
        reports: the checks of all methods; none of them has a valid output.
    """
    return InputError([_problem(noun, report) for report in reports])


def _problem(noun: str, report: ValidationReport) -> UserError:
    for issue in report.issues:
        if issue.code == NOTHING_FOUND:
            return UserError(report.path, what=f"no judge was asked: {issue.message}", fix=issue.cure)
    errors = [issue for issue in report.issues if issue.level == "error"] or list(report.issues)
    codes = Counter(issue.code for issue in errors)
    told = ", ".join(f"{count} {code}" for code, count in sorted(codes.items()))
    first = f"; first: {errors[0].where}: {errors[0].message}" if errors else ""
    return UserError(
        report.path,
        what=f"no judge was asked: no {noun} can be judged ({told or 'none is there'}{first})",
        fix=f"{errors[0].cure if errors else 'generate them'}; fabula outputs check lists every finding",
    )


def listed_names(names: Sequence[str], shown: int = 5) -> str:
    """Return the first of some names, and how many more there are."""
    more = f" and {counted(len(names) - shown, 'other')}" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
