"""What a fault that would meet every request to a model means for the user."""

from ..errors import ModelUnavailable
from ..models.chat import CallFault

_WORDS: dict[str, tuple[str, str]] = {
    "no_key": (
        "there is no API key",
        "set the variable that the message names, in the environment or in a .env file",
    ),
    "key_refused": ("the service refuses the key", "check the key and what it is allowed to use"),
    "no_quota": ("the account has no credit or quota left", "add credit or wait for the quota to be renewed"),
    "no_such_model": ("there is no such model", "check the name after the colon or #"),
    "not_an_api": (
        "what answers is not the API of a model",
        "check the address: http://HOST/v1#NAME in full, or base_url in the model's settings;"
        " OpenAI-compatible ones mostly end in /v1",
    ),
    "unsupported": ("the model refuses a part of the request", "change the setting that the message names"),
}
_DOWN = ("the service does not answer", "wait until it is well, or choose another model")


def model_error(spec: str, fault: CallFault) -> ModelUnavailable:
    """Return the error that stops a run because of a fault."""
    said, fix = _WORDS.get(fault.kind, _DOWN)
    return ModelUnavailable(
        f"model {spec}", what=f"{said}: {fault.message}",
        fix=f"{fix}; then give the same command again: it continues where it stopped",
    )  # fmt: skip
