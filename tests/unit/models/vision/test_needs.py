"""What models lack, told once for all that want it."""

from fabula.models.vision.needs import Lack, listed


def test_listed_when_things_and_reasons_recur_tells_each_once() -> None:
    lacks = (
        Lack("faces.onnx", "finder", "no network"),
        Lack("torch", "encoder"),
        Lack("faces.onnx", "encoder", "no network"),
        Lack("faces.onnx", "finder", "no network"),
        Lack("body.pt", "finder", "no network"),
    )
    assert (
        listed(lacks)
        == "faces.onnx, for finder, encoder; body.pt, for finder (no network); torch, for encoder"
    )
    assert listed(()) == ""
