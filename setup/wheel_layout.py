"""Where the wheel has what: all packages below ``binlogd/code``, ``binlogd`` itself beside them.

Loaded by setuptools (``cmdclass`` in pyproject.toml). An editable installation keeps the checkout's
own layout.
"""

from __future__ import annotations

from pathlib import Path

from setuptools.command.build_py import build_py


class PrivateFolder(build_py):
    """Copies the packages into one folder that only binlogd's own processes have on their path."""

    build_lib: str
    packages: list[str]

    def run(self) -> None:
        """Called by ``build``."""
        if self.editable_mode:
            return super().run()
        launcher = [name for name in self.packages if name == "binlogd"]
        code = [name for name in self.packages if name != "binlogd"]
        site = self.build_lib
        for packages, folder in ((launcher, Path(site)), (code, Path(site, "binlogd", "code"))):
            self.packages, self.build_lib = packages, str(folder)
            self.data_files = self._get_data_files()
            super().run()
