"""prodsc recipes: what can be given to --recipe."""

import click

from prodsc.cli.output import echo
from prodsc.runs.recipes import load_recipe, names


@click.command()
@click.argument("name", required=False)
def recipes(name: str | None) -> None:
    """List the recipes, or show one of them."""
    if name is None:
        width = max(map(len, names()))
        for each in names():
            echo(f"{each:<{width}}  {load_recipe(each).title}")
        return
    recipe = load_recipe(name)
    echo(f"{recipe.title}\n  needs   {recipe.data}\n  source  {recipe.source}")
    for key, value in recipe.parameters.items():
        echo(f"  {key} = {value}{'   # ours, not published' if key in recipe.ours else ''}")
