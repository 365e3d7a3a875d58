"""Build hook: the rules go into the wheel as one file as well, so that start-up parses no TOML."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileRules(BuildHookInterface[Any]):
    """Compile ``rules/`` to ``oortriage/_data/rules.json`` in a wheel; editable installs read TOML."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Validate and compile the rules; a rule that is not valid stops the build."""
        if version == "editable":
            return
        root = Path(self.root)
        sys.path.insert(0, self.root)
        try:
            from oortriage.evidence.loader import compile_rules
        finally:
            sys.path.pop(0)
        target = Path(tempfile.mkdtemp(prefix="oortriage-rules-")) / "rules.json"
        target.write_bytes(compile_rules(root / "rules"))
        build_data["force_include"][str(target)] = "oortriage/_data/rules.json"
