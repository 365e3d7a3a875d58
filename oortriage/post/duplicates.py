"""Looks for issues that may tell of the same failure already: by fingerprint, then by its words and figures."""

from __future__ import annotations

import re

import msgspec

from oortriage.post._interface import Client, Issue
from oortriage.report.words import RESOURCE_WORDS
from oortriage.triage.diagnosis import Diagnosis

#: Characters that a search takes in all.
_QUERY = 256
#: What may go into a search: no quotes, colons or signs that mean something there.
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_OPERATORS = frozenset({"AND", "OR", "NOT"})
#: Figures that name a failure, with those that people quote first.
_FIGURES = ("required_bytes", "required_threads", "required_columns", "max_model_len", "limit_bytes")
_KERNELS = ("kernel", "kernel_name", "function")
_LONGEST = 60


class Searched(msgspec.Struct, frozen=True):
    """What was searched for, and what may be the same; ``same`` are those with the fingerprint in them."""

    queries: list[str]
    same: list[Issue]
    alike: list[Issue]

    @property
    def found(self) -> list[Issue]:
        """All of them, the surest first."""
        return [*self.same, *self.alike]


def find_duplicates(client: Client, repository: str, diagnosis: Diagnosis) -> Searched:
    """Search a repository's issues, open and closed.

    Args:
        client: where to ask.
        repository: owner/name.
        diagnosis: redacted, for its words leave the machine.

    Raises:
        PostError: the search did not work.
    """
    scope = f"repo:{repository} is:issue"
    queries = [_query(scope, [diagnosis.fingerprint])]
    queries += [one for words in _words(diagnosis) if (one := _query(scope, words)) not in queries]
    same: dict[str, Issue] = {}
    alike: dict[str, Issue] = {}
    for query in queries:
        for issue in client.search(query):
            kind = same if diagnosis.fingerprint in issue.body else alike
            kind.setdefault(issue.url, issue)
    return Searched(queries, list(same.values()), list(alike.values()))


def _words(diagnosis: Diagnosis) -> list[list[str]]:
    """Return the searches by words: kernel and figure; else the title of the rule with the figure."""
    kernel = next((_clean(str(diagnosis.facts[name].value)) for name in _KERNELS if name in diagnosis.facts), "")
    figures = [str(int(diagnosis.numbers[name])) for name in _FIGURES if name in diagnosis.numbers][:1]
    title = _clean(diagnosis.title or RESOURCE_WORDS.get(diagnosis.resource, ""))
    words = []
    if kernel and figures:
        words.append([kernel, *figures])
    if title and (figures or kernel):
        words.append([title, *(figures or [kernel])])
    return words


def _clean(text: str) -> str:
    return " ".join(_WORD.findall(text))[:_LONGEST].strip()


def _query(scope: str, terms: list[str]) -> str:
    """Quote each term that is one name; let the words of a longer one stand by themselves."""
    said = []
    for term in terms:
        words = [word for word in term.split() if word not in _OPERATORS]
        said += [f'"{word}"' for word in words] if len(words) == 1 else [word for word in words if len(word) > 2]
    query = scope
    for word in said:
        if len(query) + len(word) + 1 > _QUERY:
            break
        query += f" {word}"
    return query
