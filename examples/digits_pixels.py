"""Which pixels of a digit matter? IP-CAE selects ten of 64, and an SVM is trained on them.

    python examples/digits_pixels.py

Trains on the handwritten digits of scikit-learn with five seeds at once. Prints the accuracy with
the ten pixels, with ten random ones and with all 64, and writes ``digits_pixels.png``: the pixels
on the mean image, and how often each was selected. On two CPU cores this takes about a minute.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from fsjax import report
from fsjax.estimators import IPCAE


def main(
    num_pixels: int = 10, n_seeds: int = 5, num_epochs: int = 200, out: Path | None = None
) -> dict[str, float]:
    """Selects, measures and draws.

    Returns:
      Accuracies in [0, 1] of an SVM on the test rows, by the pixels it uses: ``selected``,
      ``random`` (the mean of ten draws) and ``all``.
    """
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)

    # The selector is a step of a pipeline, so that the SVM is trained on ten columns.
    selector = IPCAE(num_pixels, n_seeds=n_seeds, num_epochs=num_epochs)
    pipeline = make_pipeline(selector, SVC())
    accuracy = {"selected": pipeline.fit(X_train, y_train).score(X_test, y_test)}

    rng = np.random.default_rng(0)
    draws = [rng.choice(64, num_pixels, replace=False) for _ in range(10)]
    random = [SVC().fit(X_train[:, c], y_train).score(X_test[:, c], y_test) for c in draws]
    accuracy["random"] = float(np.mean(random))
    accuracy["all"] = SVC().fit(X_train, y_train).score(X_test, y_test)

    for name, value in accuracy.items():
        print(f"{name:9s} accuracy {value:.3f}")
    print("selected pixels (row, column):")
    for pixel in np.flatnonzero(selector.get_support()):
        share = selector.selection_frequency_[pixel]
        print(f"  ({pixel // 8}, {pixel % 8}), selected by {share:.0%} of the seeds")

    figure = report.plot_selection(selector.result_, (8, 8), background=X_train.mean(axis=0))
    path = Path("digits_pixels.png") if out is None else out
    report.save_figure(figure, path)
    print(f"picture: {path}")
    return accuracy


if __name__ == "__main__":
    main()
