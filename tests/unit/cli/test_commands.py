"""Every option is written once, and says what it means."""

import inspect
from typing import get_args

import pytest

from fabula.cli.command import COMMANDS, Command
from fabula.cli.main import VERBS


@pytest.mark.parametrize("command", COMMANDS, ids=[command.name for command in COMMANDS])
def test_options_when_made_each_say_what_they_mean_and_are_named_once(command: Command) -> None:
    parameters = inspect.signature(command.with_options()).parameters.values()
    infos = [get_args(parameter.annotation)[1] for parameter in parameters]
    for info in infos:
        assert info.help[0].isupper() or not info.help[0].isalpha(), info.help
        assert info.help.endswith("."), info.help
        assert ":mod:" not in info.help and ":class:" not in info.help, "what only Sphinx reads"
    assert not [info for info in infos if "list[" in str(getattr(info, "metavar", ""))]
    flags = [flag for info in infos for flag in getattr(info, "param_decls", None) or ()]
    assert len(flags) == len(set(flags))
    assert "--json" in flags


def test_verbs_when_listed_are_those_of_the_commands() -> None:
    assert {command.name.split()[0] for command in COMMANDS} == set(VERBS)
    assert all(bool(VERBS[command.name.split()[0]]) == (" " in command.name) for command in COMMANDS)
