"""``oortriage explain CODE``: what a rule knows, for a person."""

from __future__ import annotations

from typing import Annotated

import typer

from oortriage.cli.output import say
from oortriage.errors import UsageError


def explain(
    code: Annotated[
        str, typer.Argument(metavar="CODE", help="A rule's code, such as SM101, or one of doctor's: DR201.")
    ],
) -> None:
    """Explain a rule: what its message means, why it happens, what helps and what does not."""
    from oortriage.api import find_rule
    from oortriage.evidence.reference import describe

    rule = find_rule(code)
    if rule is None:
        from oortriage.doctor.reference import page_of

        if page := page_of(code):
            say(page)
            return
        raise UsageError(f"no rule {code!r}; `oortriage rules list` shows them")
    say(describe(rule))
