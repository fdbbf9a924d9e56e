"""Readers of table files, one a format: CSV, Excel, Parquet, LIBSVM, NumPy, MATLAB."""
