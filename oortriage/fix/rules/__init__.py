"""The rules: one file a rule, each plain data; ``decide`` is all that is done with them."""

from __future__ import annotations

from oortriage.errors import UsageError
from oortriage.fix.rules._interface import Condition, Decision, Facts, Rule, broken, decide, smallest_tile
from oortriage.fix.rules.fittile import FITTILE
from oortriage.fix.rules.tile16 import TILE16
from oortriage.fix.rules.tile16_full import TILE16_FULL
from oortriage.fix.rules.warps2 import WARPS2

__all__ = ["RULES", "Condition", "Decision", "Facts", "Rule", "broken", "decide", "find_rule", "smallest_tile"]

#: The first is the default.
RULES: tuple[Rule, ...] = (TILE16, TILE16_FULL, WARPS2, FITTILE)


def find_rule(name: str) -> Rule:
    """Find a rule by its name, in any case.

    Raises:
        UsageError: there is none.
    """
    for rule in RULES:
        if rule.name == name.strip().lower():
            return rule
    raise UsageError(f"no rule {name!r}; there are {', '.join(rule.name for rule in RULES)}")
