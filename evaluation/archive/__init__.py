"""Archives of evaluations: what was judged, as keyed replies; united, scored and compared."""

from .archive import export_archive, read_archive

__all__ = ["export_archive", "read_archive"]
