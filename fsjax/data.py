"""Data for neural feature selection: load, check, split and scale a table. No JAX."""

from fsjax.datasets.catalog import paper_scaling
from fsjax.datasets.extraneous import add_columns
from fsjax.datasets.generated import ehr_like, madelon_like
from fsjax.datasets.loading import available, load
from fsjax.datasets.nonlinear import ring_xor_sum
from fsjax.errors import check_num_features
from fsjax.readers.conversion import convert
from fsjax.readers.table_files import load_table
from fsjax.tables.checks import check_features, constant_columns
from fsjax.tables.dataset import Dataset
from fsjax.tables.imputation import impute
from fsjax.tables.scaling import KINDS, Scaler, apply, fit_scaler
from fsjax.tables.splits import Split
from fsjax.tables.torch_random import torch_random_split, torch_randperm
from fsjax.tasks.from_arrays import as_dataset, check_task
from fsjax.tasks.split_protocols import PROTOCOLS, make_split

__all__ = [
    "KINDS",
    "PROTOCOLS",
    "Dataset",
    "Scaler",
    "Split",
    "add_columns",
    "apply",
    "as_dataset",
    "available",
    "check_features",
    "check_num_features",
    "check_task",
    "constant_columns",
    "convert",
    "ehr_like",
    "fit_scaler",
    "impute",
    "load",
    "load_table",
    "madelon_like",
    "make_split",
    "paper_scaling",
    "ring_xor_sum",
    "torch_random_split",
    "torch_randperm",
]
