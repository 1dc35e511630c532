"""Who may do what: personal signed links, sessions that expire, proof that a request comes from our page."""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_urlsafe
from typing import TYPE_CHECKING

from ....errors import MissingRequirement, needing

if TYPE_CHECKING:
    from itsdangerous import URLSafeSerializer, URLSafeTimedSerializer
    from starlette.requests import Request

COOKIE = "fabula_review"
TOKEN_HEADER = "x-review-token"
LONGEST_TOKEN = 500
"""Characters of a link's end, or of a cookie, that are looked at."""
SIGNED = {"digest_method": sha256}
OWN_SITE = ("same-origin", "none", None)
"""What a browser says of a request that our own page, or the person, made; older ones say nothing."""


@dataclass(frozen=True, slots=True)
class Session:
    """An open session: who, under which number, since when (seconds)."""

    reviewer: str
    number: str
    since: int


def no_extra() -> MissingRequirement:
    """Return the error that says that the extra `review` is not installed."""
    return MissingRequirement(
        "fabula review", what="links and pages need libraries that are not installed",
        fix='install them: pip install "fabula[review]"',
    )  # fmt: skip


def enter_token(secret: bytes, reviewer: str) -> str:
    """Return what a reviewer's personal link ends with."""
    return str(_link_signer(secret).dumps([reviewer]))


def reviewer_of(secret: bytes, token: str) -> str | None:
    """Return whose link it is; None where it was altered. It opens the study until it is revoked."""
    from itsdangerous import BadData

    try:
        content = _link_signer(secret).loads(token) if 0 < len(token) <= LONGEST_TOKEN else None
    except BadData:
        return None
    return str(content[0]) if isinstance(content, list) and len(content) == 1 else None


def session_cookie(secret: bytes, reviewer: str) -> str:
    """Return the content of the cookie of a new session."""
    return str(_session_signer(secret).dumps([reviewer, token_urlsafe(12)]))


def session_of(secret: bytes, cookie: str | None, hours: float) -> Session | None:
    """Return the session that a cookie opens; None where it was altered or has expired."""
    from itsdangerous import BadData

    if not cookie or len(cookie) > LONGEST_TOKEN:
        return None
    try:
        content, when = _session_signer(secret).loads(
            cookie, max_age=round(hours * 3600), return_timestamp=True
        )
        reviewer, number = content
    except (BadData, ValueError, TypeError):
        return None
    return Session(str(reviewer), str(number), int(when.timestamp()))


def page_token(secret: bytes, session: Session) -> str:
    """Return what our page sends with each request, so that no other page can send one."""
    return hmac.new(secret, f"page\n{session.reviewer}\n{session.number}".encode(), sha256).hexdigest()


def is_ours(request: "Request", secret: bytes, session: Session) -> bool:
    """Return whether a request that changes something comes from our own page in this session."""
    given = request.headers.get(TOKEN_HEADER, "")
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    return (
        request.headers.get("sec-fetch-site") in OWN_SITE
        and kind == "application/json"
        and hmac.compare_digest(given.encode(), page_token(secret, session).encode())
    )


def policy() -> Sequence[tuple[str, str]]:
    """Return the headers of every answer: nothing from elsewhere, nothing kept, no frame, no address told."""
    rules = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return (
        ("content-security-policy", rules), ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"), ("cache-control", "no-store"), ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"), ("cross-origin-resource-policy", "same-origin"),
        ("permissions-policy", "camera=(), microphone=(), geolocation=()"), ("x-robots-tag", "noindex"),
    )  # fmt: skip


def _session_signer(secret: bytes) -> "URLSafeTimedSerializer":
    from itsdangerous import URLSafeTimedSerializer

    return URLSafeTimedSerializer(secret, salt="fabula.review.session", signer_kwargs=SIGNED)


def _link_signer(secret: bytes) -> "URLSafeSerializer":
    with needing(no_extra()):
        from itsdangerous import URLSafeSerializer
    return URLSafeSerializer(secret, salt="fabula.review.enter", signer_kwargs=SIGNED)
