"""What a run that asks models needs, looked at before any work is done."""

from ..errors import ConfigError, MissingRequirement
from ..models.keys import key_status
from ..models.options import ModelOptions
from ..models.prices import Price, check_extra, price_of
from ..models.registry import check_adapter
from ..models.spec import parse_spec
from .config import RunConfig


def check_models(config: RunConfig, max_cost: float | None) -> None:
    """Check that every model that the settings name can be asked, as far as that shows without asking.

    Raises:
        MissingRequirement: a key or a library is missing.
        ConfigError: nobody serves a model, or its price is not known and the cost is limited, or a setting
            makes it cost something else than the listed price.
    """
    for text, options in config.models.items():
        spec = parse_spec(text)
        check_adapter(spec)
        status = key_status(spec, options)
        if not status.found:
            raise MissingRequirement(
                f"model {text}",
                what=f"{' or '.join(status.variables)} is not set, in the environment or in .env",
                fix=f"export {status.variables[0]}=..., or write it into the file .env here",
            )  # fmt: skip
        check_extra(spec, options)
        if max_cost is not None:
            known_price(text, options)


def known_price(text: str, options: ModelOptions) -> Price:
    """Return the price of a model whose cost is limited.

    Raises:
        ConfigError: nobody knows it.
    """
    price = price_of(parse_spec(text), options)
    if price is None:
        raise unknown_price(text)
    return price


def unknown_price(text: str) -> ConfigError:
    """Return the error for a cost limit beside a model whose price nobody knows."""
    return ConfigError(
        f"--max-cost with {text}", what="the price of this model is not known, so its cost cannot be limited",
        fix=f'give it in fabula.toml: [models."{text}"] prices = {{input = 0.4, output = 1.6}},'
        " in USD per million tokens (0 where it costs nothing)",
    )  # fmt: skip
