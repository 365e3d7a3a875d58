"""Files of variables: NAME=VALUE, one a line, as Docker, Compose and python-dotenv read them."""

from __future__ import annotations

import re

from oortriage.lint.inputs.expand import expand
from oortriage.lint.unit import Document, Setting, Unit

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][\w.]*)\s*[=:]\s*(.*)$")


def read_dotenv(text: str) -> Document:
    """Read a file of variables."""
    settings: list[Setting] = []
    known: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        found = None if line.lstrip().startswith("#") else _LINE.match(line)
        if not found:
            continue
        value = found[2].strip()
        if value[:1] in ("'", '"') and value.rstrip().endswith(value[:1]) and len(value) > 1:
            value = value[1:-1]
        else:
            value = re.sub(r"\s+#.*$", "", value)
        text_, is_open = expand(value, known)
        known[found[1]] = text_
        settings.append(Setting(found[1], text_, number, is_open))
    return Document("dotenv", (Unit(settings=tuple(settings)),) if settings else ())
