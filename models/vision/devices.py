"""Where a model runs and in what numbers: chosen explicitly, and written down as chosen."""

from dataclasses import dataclass
from typing import Any

from ...errors import ConfigError, MissingRequirement
from ..faults import one_line
from .types import Device, Dtype

DEVICES: tuple[Device, ...] = ("cpu", "cuda", "mps")
DTYPES: tuple[Dtype, ...] = ("float32", "float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model runs.

    Attributes:
        device: the class of device; part of what its results depend on.
        dtype: of weights and arithmetic.
    """

    device: Device = "cpu"
    dtype: Dtype = "float32"

    def checked(self) -> "Place":
        """Return the place, if it is there.

        Raises:
            ConfigError: there is no such device here, or its numbers are none of ours.
            MissingRequirement: torch is not installed.
        """
        if self.dtype not in DTYPES or self.device not in DEVICES:
            raise ConfigError(
                "device", expected=f"one of {', '.join(DEVICES)}, in one of {', '.join(DTYPES)}",
                found=f"{self.device} in {self.dtype}", fix="correct the setting",
            )  # fmt: skip
        there = available()
        if self.device not in there:
            raise ConfigError(
                "device", what=f"this machine has no {self.device}; it has: {', '.join(there)}",
                fix=f"set the device to {there[0]}, or use a machine that has one",
            )  # fmt: skip
        if self.device == "cpu" and self.dtype == "float16":
            raise ConfigError(
                "dtype", expected="float32 or bfloat16 on a CPU", found="float16", fix="set dtype to float32"
            )
        return self


def available() -> tuple[Device, ...]:
    """Return the classes of devices that this machine has, the fastest first.

    Raises:
        MissingRequirement: torch is not installed.
    """
    torch = library()
    devices: list[Device] = []
    if torch.cuda.is_available():
        devices.append("cuda")
    if torch.backends.mps.is_available():
        devices.append("mps")
    return (*devices, "cpu")


def choose(device: str = "auto", dtype: Dtype = "float32") -> Place:
    """Return where to run: ``auto`` is the fastest device of this machine, named from then on.

    Raises:
        ConfigError: there is no such device here. MissingRequirement: torch is not installed.
    """
    if device == "auto":
        return Place(available()[0], dtype).checked()
    return Place(device, dtype).checked()  # type: ignore[arg-type]


def library() -> Any:  # noqa: ANN401 - a module
    """Return torch.

    Raises:
        MissingRequirement: it is not installed, or cannot be loaded here.
    """
    try:
        import torch
    except ModuleNotFoundError as error:
        raise missing("torch") from error
    except Exception as error:  # its binary parts fail in many ways on a machine that they do not fit
        raise MissingRequirement(
            "the library torch", what=f"torch is installed and cannot be loaded ({one_line(str(error))})",
            fix='install it again: pip install --force-reinstall "fabula[metrics]"',
        ) from error  # fmt: skip
    return torch


def missing(name: str) -> MissingRequirement:
    """Return the error for a library of the extra ``metrics`` that is not installed."""
    return MissingRequirement(
        f"the library {name}", what="it is not installed",
        fix='pip install "fabula[metrics]"',
    )  # fmt: skip


def number_type(dtype: Dtype) -> Any:  # noqa: ANN401 - torch's own type
    """Return torch's name of a number type."""
    return getattr(library(), dtype)
