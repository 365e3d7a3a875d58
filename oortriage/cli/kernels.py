"""``oortriage kernels``: the kernels that can be compiled again, and what each needs to know."""

from __future__ import annotations

from typing import Annotated

import typer

from oortriage.cli.output import say


def kernels(
    name: Annotated[str, typer.Argument(help="Show this one's parameters.", show_default=False)] = "",
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the kernels there are recipes for, or one kernel's parameters."""
    from oortriage.kernels.registry import all_recipes, find_recipe
    from oortriage.report.replay import recipe_list, recipe_page

    say(
        recipe_page(find_recipe(name), as_json=json)
        if name
        else recipe_list(list(all_recipes().values()), as_json=json)
    )
