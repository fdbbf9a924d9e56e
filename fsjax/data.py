"""Data for neural feature selection: load, check, split and scale a table. No JAX.

Examples:
  >>> import pandas as pd
  >>> import scipy.sparse
  >>> X = fsjax.data.as_array([[0.0, 1.0], [0.0, 2.0]], "X")
  >>> fsjax.data.check_row_order(X, y=[0, 1])  # only pandas objects have labels that could differ
  >>> rows = fsjax.data.as_csr(scipy.sparse.coo_array(X))
  >>> print(fsjax.data.is_constant(X.min(axis=0), X.max(axis=0), X.dtype))
  [ True False]
  >>> texts = fsjax.data.one_spelling(pd.Series(["yes", " yes", "no"])).texts
  >>> numbers, names = fsjax.data.encode_target(texts.to_numpy(), "the target")
  >>> print(numbers, names, fsjax.tasks.kind_of_target(numbers).classes)
  [1 1 0] ('no', 'yes') True
  >>> train, valid = fsjax.data.validation_split(len(data.y), 0.2, 0, data.y)
  >>> split = fsjax.data.Split(train, valid, valid[:0])
"""

from fsjax.errors import check_num_features
from fsjax.tables.checks import check_features, constant_columns, is_constant
from fsjax.tables.dataset import Dataset
from fsjax.tables.datasets.catalog import paper_scaling
from fsjax.tables.datasets.extraneous import add_columns
from fsjax.tables.datasets.generated import ehr_like, madelon_like
from fsjax.tables.datasets.loading import available, load
from fsjax.tables.datasets.nonlinear import ring_xor_sum
from fsjax.tables.imputation import impute
from fsjax.tables.readers.conversion import convert
from fsjax.tables.readers.spelling import one_spelling
from fsjax.tables.readers.table_files import load_table
from fsjax.tables.readers.target_columns import encode_target
from fsjax.tables.scaling import KINDS, Scaler, apply, fit_scaler
from fsjax.tables.sparse import as_csr
from fsjax.tables.splits import Split, validation_split
from fsjax.tables.torch_random import torch_random_split, torch_randperm
from fsjax.tables.user_arrays import as_array, check_row_order
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
    "as_array",
    "as_csr",
    "as_dataset",
    "available",
    "check_features",
    "check_num_features",
    "check_row_order",
    "check_task",
    "constant_columns",
    "convert",
    "ehr_like",
    "encode_target",
    "fit_scaler",
    "impute",
    "is_constant",
    "load",
    "load_table",
    "madelon_like",
    "make_split",
    "one_spelling",
    "paper_scaling",
    "ring_xor_sum",
    "torch_random_split",
    "torch_randperm",
    "validation_split",
]
