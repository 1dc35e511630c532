"""Archives of evaluations: what was judged, as keyed replies; united, scored and compared."""

from .archive import read_archive

__all__ = ["read_archive"]
