"""A sink that is a function of the user: ``kind = "python"``."""
