"""Readers of table files, one per format: CSV, Excel, Parquet, LIBSVM, NumPy, MATLAB."""
