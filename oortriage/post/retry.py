"""Trying again: after a fault of the server's, and after the wait that a rate limit asks for."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

from oortriage.post._interface import Request, Response, Transport
from oortriage.post.errors import PostError, UncertainError

#: How often a request is sent in all, and the longest that all its waits together may take, in seconds.
ATTEMPTS = 5
PATIENCE = 120.0
_FAULTS = (500, 502, 503, 504)
#: What GitHub asks for where a secondary limit names no time, in seconds.
_UNTOLD = 60.0


class UnreachableError(PostError):
    """The request did not get there."""


class RateLimitError(PostError):
    """GitHub wants a longer wait than anybody should sit through."""


class Retrying:
    """Sends requests until there is an answer to go by.

    A request that changes something is sent again only where it cannot have been carried out: after a rate limit,
    or when it did not get there. Else it ends with an UncertainError, and the caller has to look.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        sleep: Callable[[float], object] = time.sleep,
        now: Callable[[], float] = time.time,
        tell: Callable[[str], object] = lambda _: None,
    ) -> None:
        """Keep what sends, what waits (seconds), what the time is (seconds since 1970), and what hears of waits."""
        self._transport = transport
        self._sleep, self._now, self._tell = sleep, now, tell

    def send(self, request: Request) -> Response:
        """Return the first answer that is neither a fault nor a rate limit.

        Raises:
            UnreachableError: it did not get there, time and again.
            RateLimitError: the wait would be too long.
            UncertainError: a request that changes something, and no clear answer.
        """
        waited = 0.0
        for attempt in range(1, ATTEMPTS + 1):
            wait, why = 2.0 ** (attempt - 1), ""
            try:
                response = self._transport.send(request)
            except UnreachableError as problem:
                failure: PostError = problem
                why = str(problem)
            except UncertainError as problem:
                if request.changes:
                    raise
                failure, why = problem, str(problem)
            else:
                asked = self._asked(response)
                if asked is not None:
                    wait, why = asked, "a rate limit"
                    failure = RateLimitError(
                        f"GitHub's rate limit: it asks to wait {asked:,.0f} s more; try again then"
                    )
                elif response.status in _FAULTS:
                    why = f"GitHub answered {response.status}"
                    failure = UncertainError(f"{why} to {request.method} {request.url}")
                    if request.changes:
                        raise failure
                else:
                    return response
            if attempt == ATTEMPTS or waited + wait > PATIENCE:
                raise failure
            self._tell(f"{why}; trying again in {wait:.0f} s")
            self._sleep(wait)
            waited += wait
        raise AssertionError  # the last attempt returns or raises

    def _asked(self, response: Response) -> float | None:
        """Return the seconds that a rate limit asks for; None where the answer is no rate limit."""
        if response.status not in (403, 429):
            return None
        headers = response.headers
        if (told := headers.get("retry-after")) is not None and (seconds := self._seconds(told)) is not None:
            return seconds
        if headers.get("x-ratelimit-remaining") == "0":
            with contextlib.suppress(ValueError, OverflowError):
                return max(1.0, int(headers.get("x-ratelimit-reset", "")) - self._now() + 1.0)
            return _UNTOLD
        if response.status == 429 or "rate limit" in response.message.lower():
            return _UNTOLD
        return None

    def _seconds(self, told: str) -> float | None:
        """Read Retry-After: seconds, or a date."""
        if told.strip().isascii() and told.strip().isdigit():
            return max(1.0, float(told.strip()[:9]))
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            return max(1.0, parsedate_to_datetime(told).timestamp() - self._now())
        return None
