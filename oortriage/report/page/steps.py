"""What to do, as steps: what to copy in large, under it what it does, what it costs and how to check it."""

from __future__ import annotations

import re

from oortriage.report.document import Code
from oortriage.report.page.blocks import Namer, scroll
from oortriage.report.page.markup import Html, running, tag

_STEP = re.compile(
    r"(?P<number>\d+)\. (?P<Effect>.+?)(?:; cost: (?P<Cost>.+?))?(?:; verify: (?P<Check>.+?))?\.", re.DOTALL
)


def step_html(block: Code, named: Namer) -> Html | None:
    """Write a change with its effect, cost and check apart; None where its caption tells them in another way."""
    found = _STEP.fullmatch(block.caption)
    if found is None:
        return None
    told = [(key, words) for key in ("Effect", "Cost", "Check") if (words := found[key])]
    rows = [tag("div", tag("dt", key), tag("dd", running(words))) for key, words in told]
    body = tag("pre", tag("code", block.text))
    return tag(
        "div",
        tag("span", found["number"], class_="count"),
        tag("div", scroll(body, named(f"Change {found['number']}")), tag("dl", *rows), class_="what"),
        role="listitem",
        class_="step",
    )
