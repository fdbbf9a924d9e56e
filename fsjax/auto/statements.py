"""What the figures mean, in sentences."""

from __future__ import annotations

from fsjax.auto.chance import Chance
from fsjax.auto.compete import ALL
from fsjax.auto.models import Metric
from fsjax.auto.rule import Choice


def statements(
    choice: Choice,
    metric: Metric,
    units: int,
    better: bool,
    chance: Chance,
    honest: float,
    scores: dict[str, float],
    enough: dict[str, int],
    selected: int,
    fdr: float | None,
) -> list[str]:
    """The verdict, the choice, and what would be as good.

    Args:
      choice: method and number by the rule.
      metric: how it was judged.
      units: columns there were to choose from.
      better: whether anything was found.
      chance: permuted labels.
      honest: score of the whole procedure.
      scores: of ``all`` columns and of ``chance``.
      enough: fewest columns of each method that are not worse than the best.
      selected: how many columns are selected.
      fdr: the asked for false discovery rate, if any.
    """

    show, what = metric.show, metric.short
    if not better:
        return [
            f"Nothing is better than chance: {chance.as_good} of {len(chance.draws)} permutations "
            f"of the target are predicted as well as the target itself (p = {chance.p_value:.2g}). "
            f"The best {what}, {show(choice.best)}, is the best of many and no finding; no column "
            f"is selected. Without any column it is {show(scores['chance'])}."
        ]
    lines = []
    if fdr is not None:
        lines.append(
            f"{selected} of {units} columns are selected; of these at most about {100 * fdr:g} % "
            "are expected to be false."
            if selected
            else f"No column can be selected with a false discovery rate below {fdr:g}."
        )
        lines.append(f"For prediction, {choice.size} columns by {choice.method} are enough.")
    elif choice.method == ALL:
        lines.append(f"No smaller selection is as good as all {units} columns together.")
    else:
        number = "1 column is" if choice.size == 1 else f"{choice.size} columns are"
        lines.append(f"{number} enough of {units}: those of {choice.method}.")
    lines.append(
        f"Cross-validated {what}: {show(choice.mean)} (the whole procedure {show(honest)}), all "
        f"columns {show(scores['all'])}, without any column {show(scores['chance'])}."
    )
    lines += _as_good(choice, enough, units)
    if not chance.better:
        lines.append(
            f"Quick methods alone are no better than chance here (p = {chance.p_value:.2g}); the "
            "folds of the choice are."
            if chance.as_good
            else f"Time was short for permuted targets, none of {len(chance.draws)} as good; that "
            "it is better than chance, the folds of the choice tell."
        )
    return lines


def _as_good(choice: Choice, enough: dict[str, int], units: int) -> list[str]:
    """Simpler ways to the same score."""
    lines = []
    if "random" in enough and enough["random"] < units:
        lines.append(
            f"{enough['random']} columns drawn at random are as good: the columns tell the same, "
            "so which of them are selected matters little."
        )
    simple = [name for name in ("univariate", "l1", "forest") if name in enough]
    other = [name for name in simple if name != choice.method]
    if choice.method not in simple and other:
        best = min(other, key=lambda name: enough[name])
        lines.append(f"Of the simple methods, {best} needs {enough[best]} columns for it.")
    elif choice.method == "univariate":
        lines.append("The univariate filter is as good as anything here.")
    if choice.method not in simple and not other:
        lines.append("No simple method reaches it.")
    if ALL in enough and choice.method != ALL:
        lines.append("All columns together are as good, and not better.")
    elif choice.method != ALL:
        lines.append("All columns together are worse.")
    return lines
