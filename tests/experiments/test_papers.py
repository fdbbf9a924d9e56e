"""The papers' tables: each cell has a run, and results are judged correctly."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from configs import papers
from experiments.launch.experiment import build_method
from experiments.papers import reference, reproduce, results, runs, verdicts
from experiments.papers.cells import PAPERS, Cell, cells_of, chosen, number_of, run_of, value_of
from experiments.papers.curves import compared_values
from fsjax.errors import ConfigError
from fsjax.methods import METHODS

ROOT = Path(__file__).parents[2]


def cell(paper: str, table: str, method: str, dataset: str, metric: str, **row) -> Cell:
    matches = [
        candidate
        for candidate in cells_of(paper)
        if (candidate.table, candidate.row.method, candidate.row.dataset, candidate.row.metric)
        == (table, method, dataset, metric)
        and all(
            getattr(candidate.row, name, candidate.row.options.get(name)) == value
            for name, value in row.items()
        )
    ]
    assert len(matches) == 1
    return matches[0]


@pytest.mark.slow
def test_every_cell_has_a_run_that_its_protocol_can_configure() -> None:
    seen = set()
    for chosen_cell in chosen([]):
        run = run_of(chosen_cell)
        if run in seen:
            continue
        seen.add(run)
        assert run.method in METHODS
        config = runs.config_of(run, 2)
        assert config.data.name == run.dataset
        assert config.task == run.task
        assert len(config.seeds) == 2
        for name, value in run.options:
            assert config.method[name] == value
        # The configuration does not override a method's own choice of the epoch.
        assert config.train.best_by is None or not callable(build_method(config).keep)
    assert len({run.label for run in seen}) == len(seen)


def test_one_training_gives_every_k_and_a_method_that_fixes_k_needs_one_each() -> None:
    ks = [c for c in cells_of("wast") if (c.table, c.row.dataset) == ("6", "isolet")]
    assert len({run_of(c) for c in ks if c.row.method == "wast"}) == 1
    assert len({run_of(c) for c in ks if c.row.method == "lassonet"}) == 1
    assert len({run_of(c) for c in ks if c.row.method == "cae"}) == 6
    config = runs.config_of(run_of(ks[0]), 3)
    assert {config.num_features, *config.evaluation.num_features} == {25, 50, 75, 100, 150, 200}


def test_a_short_run_judges_the_number_of_its_cell_alone() -> None:
    short = run_of(cell("wast", "7", "aefs", "usps", "svm_accuracy", num_epochs=10))
    whole = short._replace(num_epochs=None)
    judged = [runs.config_of(run, 2).evaluation.num_features for run in (short, whole)]
    assert not judged[0] and judged[1]
    assert runs.estimate(short, 2) < runs.estimate(whole, 2)


def test_a_run_has_the_first_seeds_of_its_protocol_and_its_own_epochs() -> None:
    run = run_of(cell("wast", "2", "wast", "madelon", "svm_accuracy"))
    config = runs.config_of(run._replace(num_epochs=7), 2)
    protocol = papers.get_config(run.variant)
    assert config.seeds == protocol.seeds[:2] != protocol.seeds[-2:]
    assert config.train.num_epochs == 7 != protocol.train.num_epochs


@pytest.mark.slow
def test_ctre_starts_blind_and_its_second_implementation_is_left_out() -> None:
    cells = [c for c in cells_of("ctre") if c.row.dataset == "madelon"]
    for chosen_cell in cells:
        config = runs.config_of(run_of(chosen_cell), 2)
        blind = chosen_cell.row.method in ("ctre_seq", "ctre_sim")
        assert bool(config.method.get("blind_start")) == blind
        assert "impl" not in chosen_cell.row.options


def test_values_of_cells() -> None:
    result = {
        "num_features": 50,
        "metrics": {"svm_accuracy": [80.0, 82.0], "svm_accuracy_k25": [70.0, 71.0]},
        "cost": {"params": 3000, "train_flops": 1e9},
    }
    at_50 = cell("wast", "6", "wast", "isolet", "svm_accuracy", num_features=50)
    at_25 = cell("wast", "6", "wast", "isolet", "svm_accuracy", num_features=25)
    assert value_of(at_50, result) == [80.0, 82.0]
    assert value_of(at_25, result) == [70.0, 71.0]
    assert value_of(cell("wast", "3", "wast", "isolet", "params"), result) == [3000]
    density = cell("ctre", "2", "set", "madelon", "density_pct", hidden=(100,) * 3, epsilon=1)
    # 500-100-100-100-2.
    assert value_of(density, result) == [pytest.approx(100 * 3000 / 70200)]
    error = cell("ip_cae", "6", "cae", "isolet", "reconstruction_error", num_epochs=1000)
    value = value_of(error, {"metrics": {"reconstruction_frobenius": [0.005]}, "cost": {}})
    assert value == [pytest.approx(0.005 * 617 / 50)]


def row(mean: float, seeds: int = 3, **changes) -> dict:
    svm_cell = cell("wast", "2", "wast", "madelon", "svm_accuracy")
    run = {"seeds": range(seeds), "epochs": 10, "cpu_seconds": 6.0, "commit": "abcdef0123"}
    return results.row_of(svm_cell, [mean] * seeds, run | changes)


def judged(rows: list[dict], reasons: list[dict]) -> pd.DataFrame:
    table = results.merged(pd.DataFrame(columns=results.COLUMNS), rows)
    none = pd.DataFrame(columns=reference.COLUMNS)
    return verdicts.with_verdicts(
        table, verdicts.verdicts_of(cells_of("wast"), table, none, reasons)
    )


def test_agreement_and_reasons(tmp_path: Path) -> None:
    reasons = [
        {"method": "wast", "dataset": ["usps", "coil20"], "text": "other data", "kind": "unknown"},
        {"paper": "wast", "setting": "K=20", "text": "because", "kind": "not told by the paper"},
    ]
    good, bad = judged([row(83.0)], reasons), judged([row(80.0)], reasons)
    assert (good.agrees[0], good.verdict[0], good.reason[0]) == (1, "agrees", "")
    assert (bad.agrees[0], bad.verdict[0], bad.reason[0]) == (0, "differs", "because")
    assert bad.reason_kind[0] == "not told by the paper"
    # A difference that nobody has looked at has an unknown cause.
    unseen = judged([row(80.0)], reasons[:1])
    assert (unseen.reason[0], unseen.reason_kind[0]) == ("", "unknown")
    # A row with more seeds replaces one with fewer, never the other way round.
    assert results.merged(good, [row(80.0, seeds=2)])["mean"][0] == 83.0
    assert results.merged(good, [row(81.0, seeds=5)])["mean"][0] == 81.0
    path = tmp_path / "deep" / "results.csv"
    results.write_results(good, path)
    again = results.read_results(path, cells_of("wast"))
    assert list(again.columns) == list(results.COLUMNS)
    pd.testing.assert_frame_equal(again, good, check_dtype=False)


def test_cells_that_repeat_a_run_get_the_values_of_the_newest() -> None:
    groups: dict[object, list[Cell]] = {}
    for each in cells_of("ctre"):
        groups.setdefault(number_of(each), []).append(each)
    first, other = next(group for group in groups.values() if len(group) > 1)[:2]
    run = {"seeds": range(3), "epochs": 10, "cpu_seconds": 6.0, "commit": "abcdef0123"}
    old = [results.row_of(each, [80.0] * 3, run) for each in (first, other)]
    table = results.merged(pd.DataFrame(columns=results.COLUMNS), old)
    for seeds, mean in ((2, 80.0), (3, 90.0)):
        new = results.row_of(first, [90.0] * seeds, run | {"seeds": range(seeds)})
        kept = results.by_key(results.merged(table, [new], cells_of("ctre")))
        assert {kept[each.key]["mean"] for each in (first, other)} == {mean}
        assert kept[other.key]["published_mean"] == other.row.mean


def test_cells_with_fewer_seeds_are_those_that_have_some() -> None:
    table = judged([row(83.0, seeds=2)], [])
    (few,) = reproduce.with_fewer_seeds(cells_of("wast"), table, 3)
    assert few.key == next(iter(results.by_key(table)))
    assert reproduce.with_fewer_seeds(cells_of("wast"), table, 2) == []


def test_results_of_other_tables_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    table = results.merged(pd.DataFrame(columns=results.COLUMNS), [row(82.0)])
    results.write_results(table.assign(published_mean=70.0), path)
    with pytest.raises(ConfigError, match=r"was 70\.0 and is 83\.27"):
        results.read_results(path, cells_of("wast"))
    path.write_text("paper,table\nwast,2\n")
    with pytest.raises(ConfigError, match="another version"):
        results.read_results(path)


def test_reasons_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "reasons.toml"
    assert results.read_reasons(path) == []
    path.write_text('[[reason]]\nmethods = "wast"\ntext = "x"\n')
    with pytest.raises(ConfigError, match="methods"):
        results.read_reasons(path)
    path.write_text('[[reason]]\nmethod = "wast"\n')
    with pytest.raises(ConfigError, match="no text"):
        results.read_reasons(path)
    path.write_text('[[reason]]\ntext = "x"\nkind = "a guess"\n')
    with pytest.raises(ConfigError, match="no kind"):
        results.read_reasons(path)
    path.write_text(
        '[[reason]]\ntext = "x"\nkind = "cause shown"\n'
        'shown_by = {file = "reference.csv", method = "wast"}\n'
    )
    path.with_name("reference.csv").write_text("paper,method\nwast,cae\n")
    with pytest.raises(ConfigError, match=r"no row of reference\.csv shows the cause"):
        results.read_reasons(path)


def test_a_method_of_ones_own_stands_beside_the_others() -> None:
    own_cells = [c for c in chosen(["wast"], ["2"], ["madelon"], ["wast", "random_selection"])]
    assert [c.row.method for c in own_cells] == ["wast", "random_selection"]
    assert math.isnan(own_cells[1].row.mean)
    run = {"seeds": [0], "epochs": 1, "cpu_seconds": 1.0, "commit": None}
    table = results.merged(
        pd.DataFrame(columns=results.COLUMNS), [results.row_of(own_cells[1], [50.0], run)]
    )
    none = pd.DataFrame(columns=reference.COLUMNS)
    table = verdicts.with_verdicts(table, verdicts.verdicts_of(own_cells, table, none, []))
    assert (table.agrees[0], table.verdict[0]) == ("", "")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"papers": ["wats"]}, "did you mean 'wast'"),
        ({"papers": ["wast"], "tables": ["11"]}, "unknown table"),
        ({"papers": ["wast"], "datasets": ["madelo"]}, "did you mean 'madelon'"),
        ({"papers": ["wast"], "methods": ["wats"]}, "did you mean 'wast'"),
    ],
)
def test_mistakes(wanted: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        chosen(**wanted)


def test_delays_need_all_methods(tmp_path: Path) -> None:
    delay_cell = cell("ctre", "6", "ctre_sim", "madelon", "training_delay_pct", hidden=(100,) * 3)
    needed = runs.runs_of([delay_cell])
    assert len(needed) == 5
    finished = {}
    for number, run in enumerate(needed):
        folder = tmp_path / str(number)
        folder.mkdir()
        lines = [f"0,{epoch},test,accuracy,{10 * epoch}" for epoch in range(1, 11)]
        header = "seed,epoch,split,metric,value"
        (folder / "metrics.csv").write_text("\n".join([header, *lines]) + "\n")
        assert compared_values(delay_cell, finished) is None
        finished[run] = {"folder": folder}
    # 90 % of 100 is reached after 9 of 10 epochs.
    assert compared_values(delay_cell, finished) == [90.0]


def test_a_speed_up_is_how_much_earlier_cae_is_surpassed(tmp_path: Path) -> None:
    for task, metric, values in (
        ("classification", "accuracy", ([10, 40, 60, 50], [40, 51, 70, 70], [0, 0, 50, 50])),
        ("reconstruction", "loss", ([9, 6, 4, 5], [6, 4.9, 3, 3], [9, 9, 5, 5])),
    ):
        speedup_cell = cell("ip_cae", "3", "ip_cae", "isolet", "speedup", options={"task": task})
        finished = {}
        for run, curves in zip(runs.runs_of([speedup_cell]), (values[1:], values[:1]), strict=True):
            folder = tmp_path / run.label
            folder.mkdir()
            lines = ["seed,epoch,split,metric,value", "0,1,train,loss,0", "0,1,test,accuracy,99"]
            for seed, curve in enumerate(curves):
                lines += [f"{seed},{e},valid,{metric},{v}" for e, v in enumerate(curve, start=1)]
            (folder / "metrics.csv").write_text("\n".join(lines) + "\n")
            assert compared_values(speedup_cell, finished) is None
            facts = {"seeds": [0, 1], "epochs": 4, "cpu_seconds": 1.0, "commit": None}
            finished[run] = {"folder": folder, **facts}
        # CAE ends at 50 (5), which one seed surpasses after 2 of 4 epochs, the other never.
        assert compared_values(speedup_cell, finished) == [2.0]
        (row,) = results.collect([speedup_cell], finished)
        assert row["seeds"] == 1


def test_kept_verdicts_are_those_of_the_rule() -> None:
    kept = ROOT / "reproduction"
    cells = [one for paper in PAPERS for one in cells_of(paper)]
    table = results.read_results(kept / "results.csv", cells)
    judged_now = verdicts.verdicts_of(
        cells,
        table,
        reference.read_reference(kept / "reference.csv"),
        results.read_reasons(kept / "reasons.toml"),
    )
    assert set(results.by_key(table)) == set(judged_now)
    pd.testing.assert_frame_equal(
        verdicts.with_verdicts(table, judged_now), table, check_dtype=False
    )
