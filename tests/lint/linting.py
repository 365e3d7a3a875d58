"""What the tests of lint share: findings of a command or a file, in one line."""

from __future__ import annotations

from oortriage.lint.checks import Card, Model
from oortriage.lint.finding import Finding, Lint
from oortriage.lint.inputs.detect import read_document
from oortriage.lint.inputs.shell import read_shell
from oortriage.lint.run import Request, lint

T4 = Card("T4", (7, 5))


def result(text: str, vllm: str = "", name: str = "", card: Card | None = None, model: Model | None = None) -> Lint:
    """Lint a command, or the text of a file with a name."""
    document = read_document(text.encode(), name) if name else read_shell(text, "command")
    return lint([(name, document)], Request(vllm, card=card, model=model))


def findings(
    text: str, vllm: str = "", name: str = "", card: Card | None = None, model: Model | None = None
) -> tuple[Finding, ...]:
    return result(text, vllm, name, card, model).findings


def codes(text: str, vllm: str = "", name: str = "", card: Card | None = None, model: Model | None = None) -> list[str]:
    return [one.code for one in findings(text, vllm, name, card, model)]


def lines(text: str, vllm: str = "", name: str = "") -> list[tuple[int, str, str]]:
    return [(one.line, one.code, one.subject) for one in findings(text, vllm, name)]
