"""Redaction: what must not leave the machine becomes a placeholder, the same one wherever it stands."""

from oortriage.report.redaction.confirm import QUESTION, confirm_unredacted
from oortriage.report.redaction.placeholders import Replacement
from oortriage.report.redaction.redactor import Redactor

__all__ = ["QUESTION", "Redactor", "Replacement", "confirm_unredacted"]
