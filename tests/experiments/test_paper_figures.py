"""``experiments.figures``: rows, verdicts and the page of the papers' figures."""

from __future__ import annotations

import runpy
from pathlib import Path

import pandas as pd
import pytest
from launcher import ROOT

from experiments.artifacts.published import read_table
from experiments.papers.figures import launch, wast, wast_runs
from experiments.papers.figures.catalog import FIGURES
from experiments.papers.figures.entries import ENTRIES, Check, Entry, chosen, read_entries
from experiments.papers.figures.outcome import comparisons, outcome_of, overall
from experiments.papers.figures.rows import COST, ROWS, Job, Point, path_of, point, read_rows
from fsjax.errors import ConfigError

CHECK = Check("A above B", "accuracy", "A", "B")


def entries(tmp_path: Path, text: str) -> tuple[Entry, ...]:
    path = tmp_path / "figures.toml"
    path.write_text(f'[[entry]]\npaper = "wast"\nname = "5"\ntitle = "T"\nmessage = "M"\n{text}')
    return read_entries(path)


def two(a: list[float], b: list[float]) -> list[Point]:
    return [point("data", name, 1, "accuracy", v) for name, v in (("A", a), ("B", b))]


def test_every_figure_has_rows_and_a_picture_or_a_reason() -> None:
    listed = read_entries(ROOT / ENTRIES)
    with_rows = {entry.key for entry in listed if entry.runs}
    assert len({entry.key for entry in listed}) == len(listed)
    assert {entry.key for entry in listed if entry.runs and not entry.command} == set(FIGURES)
    for key in with_rows:
        assert path_of(ROOT / ROWS, key).is_file(), f"run --figure={key}"
        picture = ROOT / "docs/pictures/figures" / f"{key.replace('/', '_')}.png"
        assert picture.stat().st_size < 250_000, key
    assert len(list((ROOT / ROWS).glob("*.csv"))) == len(with_rows)


def test_the_page_is_as_its_data_say() -> None:
    page = runpy.run_path(str(ROOT / "docs/make_figures.py"))["page"]
    text = page(read_entries(ROOT / ENTRIES))
    assert (ROOT / "docs/figures.md").read_text() == text, "run python docs/make_figures.py"


@pytest.mark.parametrize(
    ("way", "margin", "a", "b", "holds"),
    [
        ("above", 0.0, [3.0, 3.1, 3.2], [1.0, 1.1, 1.2], "yes"),
        ("above", 0.0, [1.0, 1.1, 1.2], [3.0, 3.1, 3.2], "no"),
        ("above", 0.0, [1.0, 2.0, 3.0], [1.0, 2.0, 2.5], "undecided"),
        ("above", 5.0, [3.0, 3.1, 3.2], [1.0, 1.1, 1.2], "no"),
        ("below", 0.0, [1.0, 1.1, 1.2], [3.0, 3.1, 3.2], "yes"),
        ("below", 0.0, [3.0, 3.1, 3.2], [1.0, 1.1, 1.2], "no"),
        ("equal", 0.5, [1.0, 1.1, 1.2], [1.0, 1.1, 1.2], "yes"),
        ("equal", 0.5, [1.0, 1.1, 1.2], [3.0, 3.1, 3.2], "no"),
        ("equal", 0.01, [1.0, 1.1, 1.2], [1.0, 1.1, 1.2], "undecided"),
        ("above", 0.0, [3.0], [1.0], "undecided"),
    ],
)
def test_an_interval_decides(
    way: str, margin: float, a: list[float], b: list[float], holds: str
) -> None:
    (comparison,) = comparisons(CHECK._replace(way=way, margin=margin), two(a, b))
    assert comparison.holds == holds


def test_a_check_compares_with_a_number_or_another_place() -> None:
    points = [Point("data", "A", x, "accuracy", mean) for x, mean in ((1, 5.0), (10, 8.0))]
    later = CHECK._replace(than="", than_x="1")
    assert [c.difference for c in comparisons(later, points)] == [3.0]
    assert [c.holds for c in comparisons(CHECK._replace(than=6.0), points)] == ["no", "yes"]
    assert [c.where for c in comparisons(later._replace(panels=("other",)), points)] == []


def test_a_figure_holds_by_its_comparisons() -> None:
    words = {
        ("yes", "yes"): "yes",
        ("yes", "no"): "partly",
        ("yes", "undecided"): "partly",
        ("no", "undecided"): "no",
        ("no", "undecided", "undecided"): "undecided",
    }
    assert {case: overall(case) for case in words} == words


def test_an_entry_has_checks_or_a_reason(tmp_path: Path) -> None:
    good = 'check = [{ text = "t", metric = "accuracy", of = "A", than = "B" }]\n'
    (entry,) = entries(tmp_path, good)
    assert chosen([entry], ["wast"]) == [entry]
    for text, message in (
        ("", "either why_not or checks"),
        (f'{good}why_not = "w"\n', "either why_not or checks"),
        (good.replace("than", "then"), "unexpected keyword argument 'then'"),
        (
            good.replace(' metric = "accuracy",', ""),
            "missing 1 required positional argument: 'metric'",
        ),
        (good.replace(' than = "B"', ' way = "over"'), "way 'over'"),
    ):
        with pytest.raises(ConfigError, match=message):
            entries(tmp_path, text)
    with pytest.raises(ConfigError, match="'wast/6' is not a figure"):
        chosen([entry], ["wast/6"])
    with pytest.raises(ConfigError, match="nothing for the check 't'"):
        outcome_of(entry, pd.DataFrame(columns=Point._fields))


def test_finished_jobs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (entry,) = entries(tmp_path, 'check = [{ text = "t", metric = "accuracy", of = "A" }]\n')
    done: list[str] = []

    def job(name: str, fails: bool) -> Job:
        def run() -> list[Point]:
            if fails:
                raise KeyboardInterrupt
            done.append(name)
            return [point("data", name, 1, "accuracy", [1.0, 2.0])]

        return Job(name, run)

    for fails in (True, False):
        jobs = [job("first", False), job("second", fails)]
        monkeypatch.setitem(FIGURES, entry.key, lambda jobs=jobs: jobs)
        if fails:
            with pytest.raises(KeyboardInterrupt):
                launch.compute(entry, tmp_path, tmp_path / "rows")
        else:
            launch.compute(entry, tmp_path, tmp_path / "rows")
    assert done == ["first", "second"]
    table = read_rows(path_of(tmp_path / "rows", entry.key))
    assert list(table["series"]) == ["first", "second", ""]
    assert list(table["metric"]).count(COST) == 1
    assert table["std"][0] == 0.5


def test_costs_of_networks_are_those_of_the_paper() -> None:
    for row in read_table("wast"):
        if row.metric == "params" and row.dataset in wast.SHAPES:
            width = wast.SHAPES[row.dataset][0]
            assert wast.params(row.method, width, 50) == pytest.approx(row.mean, rel=1e-3)
        if row.metric == "train_flops" and row.dataset in wast.SHAPES:
            counted = wast.flops(row.method, row.dataset, 50)
            assert counted == pytest.approx(row.mean, rel=0.05, abs=1e10)


def test_a_score_counts_the_best_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [("a", "K=25", "wast", 90.0), ("a", "K=25", "cae", 80.0), ("a", "K=50", "wast", 70.0)]
    cells += [("a", "K=50", "cae", 70.0)]
    table = pd.DataFrame(cells, columns=["dataset", "setting", "method", "mean"])
    monkeypatch.setattr(wast, "accuracies", lambda side: table.assign(std=0.0, seeds=3))
    first = {method: draws[0] for _, method, draws in wast.scores("here", "dataset")}
    assert (first["wast"], first["cae"]) == (1.5, 0.5)


def test_the_box_of_the_digits_is_in_the_middle() -> None:
    box = wast_runs.informative("mnist").reshape(28, 28)
    assert box[4:24, 4:24].all()
    assert box.sum() == 400
