"""Command-line options made of the parameter table, so that the two cannot disagree."""

import inspect
from collections.abc import Callable
from typing import Any

import click

from prodsc.estimators.parameters import Parameter, parameters_of
from prodsc.pro_dsc.estimator import PRODSC

SHORT = {"n_clusters": "-k"}
REQUIRED = ("n_clusters",)  # the estimator has a default because scikit-learn wants one; a person must choose
HIDDEN = ("verbose",)  # the command line always shows progress; --quiet turns it off
DEFAULTS = {name: p.default for name, p in inspect.signature(PRODSC).parameters.items()}


class Value(click.ParamType):
    """Text to the value of one parameter, checked by that parameter's own rule."""

    def __init__(self, parameter: Parameter):
        self.parameter = parameter
        self.name = "|".join(parameter.choices) or {int: "integer", float: "number", str: "text"}[parameter.kind]
        if parameter.many:
            self.name = "integer,..."

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return self.name  # choices as they are typed, not in capitals

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        read = [self._one(part) for part in value.split(",")] if self.parameter.many else self._one(value)
        try:
            self.parameter.check(read, f"--{self.parameter.name.replace('_', '-')}")
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return read

    def _one(self, text: str) -> Any:
        try:
            return self.parameter.kind(text)
        except ValueError:
            return None if text == "none" and not self.parameter.choices else text


def parameter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """All parameters of the estimator as options that are None until given."""
    for parameter in reversed(parameters_of(PRODSC)):
        if parameter.name in HIDDEN:
            continue
        default = None if parameter.name in REQUIRED else DEFAULTS[parameter.name]
        shown = ",".join(map(str, default or ())) if parameter.many else default
        names = [f"--{parameter.name.replace('_', '-')}", *filter(None, [SHORT.get(parameter.name)])]
        text = parameter.help + ("" if default is None else f" [{shown}]")
        command = click.option(*names, parameter.name, type=Value(parameter), default=None, help=text)(command)
    return command
