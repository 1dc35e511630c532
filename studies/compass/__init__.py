"""Semantic Compass: selection among candidates and repair by one bridge (KathaTrace 3.9, B.5 to B.8)."""
