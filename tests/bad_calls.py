"""One form for tables of bad calls: each is refused with one line that holds some words.

The words are the name of the argument or of the file, the value, or the remedy; whole sentences are
not pinned, so that they can be improved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fsjax.errors import ConfigError, DataError

#: What a user is told about: a setting, or data.
REFUSED = (ConfigError, DataError)


def refuses(call: Callable[..., Any], *words: str, error: Any = REFUSED) -> None:
    """Fails unless a call without arguments is refused with one line that has all the words."""
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    missing = [word for word in words if word not in message]
    assert not missing and "\n" not in message, f"{missing or 'more than one line'} in: {message}"


def bad_calls(*cases: tuple[Any, ...]) -> pytest.MarkDecorator:
    """Parameters ``bad`` of a test: a call, or what differs between calls, and words."""
    ids = [f"{number} {case[-1]}"[:40] for number, case in enumerate(cases)]
    return pytest.mark.parametrize("bad", cases, ids=ids)
