"""Expressions over the columns of a row: a part of SQL, computed by Arrow's kernels."""
