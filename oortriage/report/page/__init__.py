"""A report as one HTML file: ``frame`` puts it together, one file a part; ``css`` is its style."""

from oortriage.report.page.frame import html_page

__all__ = ["html_page"]
