"""Command-line options made from the parameter table, so that the two cannot disagree."""

from collections.abc import Callable
from typing import Any

import click

from prodsc.estimators.parameters import RENAMED, Parameter, current_names, defaults_of, parameters_of
from prodsc.pro_dsc.estimator import PRODSC

SHORT_OPTIONS = {"n_clusters": "-k"}
REQUIRED = ("n_clusters",)  # the estimator has a default because scikit-learn wants one; a person must choose
HIDDEN = ("verbose",)  # the command line always shows progress; --quiet turns it off


class ParameterValue(click.ParamType):
    """Text to the value of one parameter, checked by the rule of that parameter."""

    def __init__(self, parameter: Parameter):
        self.parameter = parameter
        self.name = "|".join(parameter.choices) or {int: "integer", float: "number", str: "text"}[parameter.kind]
        if parameter.many:
            self.name = "integer,..."
        elif not parameter.choices and "'auto'" in parameter.rule:
            self.name += "|auto"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return self.name  # choices as they are typed, not in capitals

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        read = [self._read_one(part) for part in value.split(",")] if self.parameter.many else self._read_one(value)
        try:
            self.parameter.check(read, f"--{self.parameter.name.replace('_', '-')}")
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return read

    def _read_one(self, text: str) -> Any:
        try:
            return self.parameter.kind(text)
        except ValueError:
            return None if text == "none" and not self.parameter.choices else text


def parameter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command all parameters of PRODSC as options that are None until given."""
    defaults = defaults_of(PRODSC)
    for old in RENAMED:
        command = click.option(f"--{old.replace('_', '-')}", old, hidden=True, default=None)(command)
    for parameter in reversed(parameters_of(PRODSC)):
        if parameter.name in HIDDEN:
            continue
        default = None if parameter.name in REQUIRED else defaults[parameter.name]
        shown = ",".join(map(str, default or ())) if parameter.many else default
        names = [f"--{parameter.name.replace('_', '-')}", *filter(None, [SHORT_OPTIONS.get(parameter.name)])]
        text = f"{parameter.help}." + ("" if default is None else f" [{shown}]")
        command = click.option(*names, parameter.name, type=ParameterValue(parameter), default=None, help=text)(command)
    return command


def given_parameters(options: dict[str, Any]) -> dict[str, Any]:
    """The parameters among the options that were given, old names under their new ones."""
    given = {name: value for name, value in options.items() if value is not None}
    current = current_names(given, "prodsc fit")
    by_name = {parameter.name: parameter for parameter in parameters_of(PRODSC)}
    return {name: ParameterValue(by_name[name]).convert(value, None, None) for name, value in current.items()}
