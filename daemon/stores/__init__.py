"""The stores of positions, one a file, and how a pipeline's are put one behind the other."""
