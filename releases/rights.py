"""On what ground a picture may be given away with a release."""

from ..errors import ConfigError
from .options import licence

PUBLIC_DOMAIN = ("public domain", "public-domain", "public_domain")


def may_be_released(rights: str | None) -> bool:
    """Whether the rights of a picture are a licence's SPDX id, or the public domain."""
    stated = (rights or "").strip()
    if stated.casefold() in PUBLIC_DOMAIN:
        return True
    try:
        licence(stated)
    except ConfigError:
        return False
    return True
