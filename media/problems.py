"""What can be wrong with a picture or a video, as one error with a stable code."""

from typing import ClassVar

from ..errors import ExitCode, UserError


class MediaProblem(UserError):
    """A picture or a video that cannot be used.

    Args:
        where: the file, or what the bytes are called.
        code: what is wrong, as one of the codes that ``docs/outputs.md`` lists, such as ``truncated``.
        expected: what should have been there.
        found: what was there instead.
        fix: what to do about it.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.FINDINGS

    def __init__(self, where: str, *, code: str, expected: str, found: str, fix: str) -> None:
        super().__init__(where, expected=expected, found=found, fix=fix)
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.where, self.code, self.expected, self.found, self.fix))


def _rebuild(where: str, code: str, expected: str, found: str, fix: str) -> MediaProblem:
    return MediaProblem(where, code=code, expected=expected, found=found, fix=fix)
