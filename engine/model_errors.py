"""What a fault that would meet every request to a model means for the user."""

from ..errors import ModelUnavailable
from ..models.chat import CallFault

_WORDS: dict[str, tuple[str, str]] = {
    "no_key": ("an API key", "set the variable that the message names, in the environment or in a .env file"),
    "key_refused": ("a key that the service takes", "check the key and what it is allowed to use"),
    "no_quota": ("an account with quota", "add credit or wait for the quota to be renewed"),
    "no_such_model": ("a model that exists", "check the name after the colon or #"),
    "not_an_api": (
        "an API that answers in JSON",
        "check the address: http://HOST/v1#NAME in full, or base_url in the model's settings;"
        " OpenAI-compatible ones mostly end in /v1",
    ),
    "unsupported": ("a model that takes what is asked of it", "change the setting that the message names"),
}
_DOWN = ("a service that answers", "wait until it is well, or choose another model")


def model_error(spec: str, fault: CallFault) -> ModelUnavailable:
    """Return the error that stops a run because of a fault."""
    expected, fix = _WORDS.get(fault.kind, _DOWN)
    return ModelUnavailable(
        f"model {spec}", expected=expected, found=fault.message,
        fix=f"{fix}; then give the same command again: it continues where it stopped",
    )  # fmt: skip
