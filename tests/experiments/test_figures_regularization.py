"""The table and the figure of regularizers, on synthetic trials."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from experiments.artifacts.figures.regularization import better_pvalue, regularization_table
from experiments.artifacts.statistics.trials import mean_interval

STRENGTHS = {
    "BinMask": (1e-5, 2e-5, 3e-5, 4e-5, 5e-5),
    "L1": (1e-5, 5e-5, 1e-4, 2e-4, 3e-4),
    "L2": (0.01, 0.1, 1.0, 10.0, 50.0),
    "Dropout": (0.1, 0.3, 0.5, 0.7, 0.9),
}


def regularization_rows(trials=8, strengths=STRENGTHS):
    """AUCs that are best in the middle of each method's strengths, and logistic regression."""
    rng = np.random.default_rng(0)
    of_split = 0.006 * rng.normal(size=trials)
    rows = []
    for number, (method, values) in enumerate({**strengths, "LR": (np.nan,)}.items()):
        for place, strength in enumerate(values):
            for trial in range(trials):
                test = 0.835 - 0.004 * number - 0.003 * (place - 2) ** 2 + of_split[trial]
                aucs = test + np.array([0.04, 0.01, 0.0]) + 0.002 * rng.normal(size=3)
                norms = np.array([0.5, 0.05, 0.08]) / (1 + place)
                norms = norms * np.nan if method == "LR" else norms
                rows.append((method, strength, trial, *aucs, *norms))
    names = ["method", "strength", "trial", "train_auc", "valid_auc", "test_auc", "l0", "l1", "l2"]
    return pd.DataFrame(rows, columns=names)


def parts_of(table):
    """The cells of each line below the rule, and the notes."""
    lines = table.split("\n")
    body = [line for line in lines[2:] if not line.startswith(("+-", "*"))]
    return [line.replace(" +- ", "+-").split() for line in body], lines[2 + len(body) :]


def test_regularization_table():
    rows = regularization_rows()
    cells, notes = parts_of(regularization_table(rows.to_dict("records")))
    assert [line[0] for line in cells] == [m for m in STRENGTHS for _ in range(5)] + ["LR"]
    for method in STRENGTHS:
        aucs = [float(line[4].split("+-")[0]) for line in cells if line[0] == method]
        assert aucs == sorted(aucs, reverse=True)
    assert cells[0][:2] == ["BinMask", "3e-5"] and cells[0][5] == "*"
    assert cells[-1][1] == "-" and cells[-1][-3:] == ["-"] * 3
    setting_rows = rows[(rows["method"] == "BinMask") & (rows["strength"] == 3e-5)]
    mean, half = mean_interval(setting_rows["test_auc"])
    assert cells[0][4] == f"{mean:.3f}+-{half:.3f}"
    assert cells[0][6] == f"{setting_rows['l0'].mean():.3f}"
    assert notes == ["+- 95 % confidence interval of the mean over trials; * best test AUC"]


def test_marks_of_what_is_not_worse():
    rows = regularization_rows(strengths={"L1": (1.0, 2.0), "L2": (1.0,)})
    noise = np.random.default_rng(1).normal(0, 0.01, 8)
    best = rows["method"].eq("L1") & rows["strength"].eq(1.0)
    rows.loc[best, "test_auc"] = 0.9 + noise
    rows.loc[rows["method"].eq("L2"), "test_auc"] = 0.8995 + noise[::-1]
    text = regularization_table(rows)
    cells, notes = parts_of(text)
    assert {tuple(line[:2]): line[5] for line in cells if line[5] in "*~"} == {
        ("L1", "1"): "*",
        ("L2", "1"): "~",
    }
    assert notes[0].endswith("~ not significantly worse (one-sided t test, p > 0.3)")
    assert all(line == line.rstrip() for line in text.split("\n"))


def trials(values, first=0):
    return pd.DataFrame({"trial": range(first, first + len(values)), "test_auc": values})


def test_pvalue_is_paired_where_trials_are_shared():
    a, b = np.random.default_rng(0).normal(0.8, 0.01, (2, 8))
    p_value = better_pvalue(trials(a), trials(b))
    assert p_value == pytest.approx(stats.ttest_rel(a, b, alternative="greater").pvalue)
    shuffled = trials(b).sample(frac=1, random_state=0)
    assert better_pvalue(trials(a), shuffled) == pytest.approx(p_value)
    welch = stats.ttest_ind(a, b, equal_var=False, alternative="greater").pvalue
    assert better_pvalue(trials(a), trials(b, first=8)) == pytest.approx(welch)
    with_nan = trials(np.append(b, np.nan), first=8)
    assert better_pvalue(trials(a), with_nan) == pytest.approx(welch)
