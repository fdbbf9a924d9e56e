"""What a type checker says of a user's file: misspelt arguments are errors, right calls are not.

Covers ``fsjax.typing``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fsjax.methods import METHODS

ROOT = Path(__file__).parents[1]

#: Lines with an error name its code in a comment; the others have none.
USER_FILE = """\
from pathlib import Path

import numpy as np

import fsjax
from fsjax import estimators
from fsjax.estimators import WAST

x, y = np.zeros((60, 9), np.float32), np.zeros(60, np.int64)
method = fsjax.methods.wast(density=0.2, hidden=(32,))

result = fsjax.fit(method, (x, y), seeds=(0, 1), num_features=5, num_epochs=3)
result = fsjax.fit(method, fsjax.data.load("digits"), groups=np.arange(64), start=result)
columns: np.ndarray = result.selected
both: dict[int, fsjax.FitResult] = fsjax.fit_sizes(method, (x, y), (3, 5), num_epochs=3)
planned: fsjax.Plan = fsjax.plan(method, (x, None), num_epochs=3)
fsjax.report.plot_selection(result, image_shape=(3, 3)).savefig("selection.png")

fsjax.fit(method, (x, y), num_epoch=3)  # call-arg
fsjax.fit(method, (x, y), num_epochs="3")  # arg-type
fsjax.fit(method)  # call-arg
fsjax.plan(method, (x, y), num_epoch=3)  # call-arg
fsjax.fitt(method, (x, y))  # attr-defined
fsjax.methods.wats()  # attr-defined
fsjax.select(x, y, budgett="60s")  # call-arg
fsjax.register(estimator="Own", batchsize=64)  # call-arg
fsjax.report.plot_selection(result, image_order="A")  # arg-type
names: list[str] = fsjax.fit(method, (x, y))  # assignment

selector = fsjax.estimators.WAST(5, num_epochs=3, random_state=0)
kept: np.ndarray = selector.fit(x, y).support_
predicted: np.ndarray = selector.fit(x.tolist(), y.tolist()).predict(x)
selector.save(Path("wast.fsjax"))
WAST(0.5, hidden=(32, 16), learning_rate=lambda step: 0.1)
estimators.ESTIMATORS["wast"](5, num_epochs=3).fit(x)
estimators.AutoSelector(budget="60s").fit(x, y)

fsjax.estimators.WAST(5, num_epoch=3)  # call-arg
WAST(5, num_epochs="3")  # arg-type
estimators.WATS(5)  # attr-defined
estimators.AutoSelector(budgett="60s")  # call-arg
selector.fit(x, y, sample_weights=y)  # call-arg
selector.predict(x, y)  # call-arg
"""


@pytest.mark.slow
def test_a_users_file(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    text = USER_FILE + "\n".join(_calls_of_every_method())
    expected = [
        (number, match.group(1))
        for number, line in enumerate(text.splitlines(), start=1)
        if (match := re.search(r"  # (\S+)$", line))
    ]
    path = tmp_path / "user.py"
    path.write_text(text)
    # In a process of its own, as mypy changes garbage collection and the recursion limit.
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", str(path)),
            "--config-file=",  # a user does not have ours
            "--follow-imports=silent",
            f"--cache-dir={request.config.cache.mkdir('mypy')}",
        ],
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert not done.stderr
    errors = re.findall(r"user\.py:(\d+): error: .*\[(\S+)\]$", done.stdout, re.MULTILINE)
    found = [(int(number), code) for number, code in errors]
    lines = text.splitlines()
    wrong = [lines[number - 1] for number, _ in sorted({*found} ^ {*expected})]
    assert found == expected, "\n".join(wrong)


def _calls_of_every_method() -> list[str]:
    """Right and misspelt calls of the library's methods and of their estimators."""
    calls = []
    for name, builder in METHODS.items():
        registration = builder.registration
        if registration.build.__module__.startswith("fsjax.methods."):
            estimator = f"fsjax.estimators.{registration.estimator}"
            calls += [
                f"fsjax.methods.{name}()",
                f"fsjax.methods.{name}(unknown=3)  # call-arg",
                f"{estimator}(5, num_epochs=3, n_seeds=2, verbose=True)",
                f"{estimator}(5, num_epoch=3)  # call-arg",
            ]
    return calls
