"""FaceNet as an ONNX file, made of its published weights by the package that carries the network.

``facenet-pytorch`` asks for versions of torch and numpy that are years old, so it is put into a folder of its
own without them, for this one step; the network itself runs on what is installed. The program below is what
runs there: ``python -m fabula.models.vision.facenet_export WEIGHTS FILE``.
"""

import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

from ...errors import MissingRequirement
from ..programs import ProgramStopped, allowed_environment, run_program

NAME = "facenet-pytorch==2.6.0"
PACKAGE = f"{NAME} --hash=sha256:ecb82b27beb226d106f2219efe8f829b01b87a8595badd01545679bdb9f19cca"
BESIDE = ("requests", "tqdm")
"""What it imports besides torch, torchvision, numpy and Pillow."""
_PATIENCE = 900
_CLOSE = 1e-4
_SIDES = (160, 112)


def export_facenet(weights: Path, file: Path, packages_in: Path | None = None) -> None:
    """Write FaceNet as an ONNX file that takes any number of pictures of any size.

    ``packages_in``: folder with the packages, fetched elsewhere; None for the package index.
    """
    with tempfile.TemporaryDirectory(prefix="fabula-facenet-") as folder:
        wanted = Path(folder) / "wanted.txt"
        wanted.write_text(PACKAGE + "\n")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        if packages_in is not None:
            pip += ["--no-index", "--find-links", str(packages_in.resolve())]
        packages = Path(folder) / "packages"
        into = ["--target", str(packages)]
        _run([*pip, *into, "--no-deps", "--require-hashes", "-r", str(wanted)], "pip cannot install it")
        _run([*pip, *into, *BESIDE], "pip cannot install what it needs")
        made = Path(folder) / "made.onnx"
        program = [sys.executable, "-m", __name__, str(weights), str(made)]
        # Behind everything else, so that nothing here is replaced.
        _run(program, "the export failed", {"FABULA_EXPORT_PACKAGES": str(packages)})
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f"{file.name}.part")
        part.write_bytes(made.read_bytes())
        part.replace(file)


def _run(command: list[str], failed: str, more: dict[str, str] | None = None) -> None:
    named = [name for name in os.environ if name.upper().startswith("PIP_")]
    try:
        ended = run_program(command, allowed_environment(named, more), seconds=_PATIENCE)
        line = ended.last_line or "nothing was said" if ended.status else None
    except (OSError, ProgramStopped) as error:
        line = str(error)
    if line is not None:
        raise MissingRequirement(
            "export of FaceNet", what=f"{failed}: {line[:300]}",
            fix="repeat with network access to a package index, or export it elsewhere as docs/vision.md says"
            ' and name the file: options."facenet-vggface2" = { local = FILE }',
        )  # fmt: skip


def write_onnx(module: Any, file: Path, sides: tuple[int, ...] = _SIDES) -> None:  # noqa: ANN401 - torch's own
    """Write a network as an ONNX file, and check that it gives the same vectors.

    ``module``: from pictures, shape (n, 3, height, width), to vectors. ``sides``: pixels a side of the
    squares that it is checked on.
    """
    import onnxruntime
    import torch

    axes = {"pixels": {0: "n", 2: "height", 3: "width"}, "vectors": {0: "n"}}
    module = module.eval()
    torch.onnx.export(
        module, (torch.zeros(2, 3, sides[0], sides[0]),), str(file), dynamo=False, dynamic_axes=axes,
        input_names=["pixels"], output_names=["vectors"],
    )  # fmt: skip
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    drawn = torch.Generator().manual_seed(0)
    for count, side in enumerate(sides, 1):
        pixels = torch.rand((count, 3, side, side), generator=drawn) * 2 - 1
        with torch.inference_mode():
            wanted = module(pixels).numpy()
        apart = float(abs(session.run(None, {"pixels": pixels.numpy()})[0] - wanted).max())
        if not apart <= _CLOSE:
            raise ValueError(f"the ONNX file gives other vectors: they differ by up to {apart:.1e}")


def _main(weights: str, file: str) -> None:
    import torch

    sys.path.append(os.environ["FABULA_EXPORT_PACKAGES"])
    state = torch.load(weights, map_location="cpu", weights_only=True)
    module = import_module("facenet_pytorch").InceptionResnetV1(pretrained=None, classify=False)
    # The last layer tells the people apart that it was trained on; vectors are what comes before.
    module.load_state_dict({name: row for name, row in state.items() if not name.startswith("logits.")})
    write_onnx(module, Path(file))


if __name__ == "__main__":
    _main(*sys.argv[1:])
