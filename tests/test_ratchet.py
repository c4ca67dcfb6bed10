"""The house's measures: they may get smaller, never larger.

A measure that got smaller fails here, too, until the number below is lowered, so that it stays so.
"""

from __future__ import annotations

import ast
import functools
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = (
    "settings", "offsets", "changes", "actors", "databases", "sources", "sparkwriter",
    "collector", "daemon", "demo",
)  # fmt: skip
BESIDE = ("tests", "bench")
MANY_LINES, LONG_FUNCTION, MANY_FILES = 300, 40, 25


class Measures(NamedTuple):
    """Of a part of the project: lines are those of the file, blank ones and docstrings as well."""

    longest_file: int
    files_over_300_lines: int
    functions_over_40_lines: int
    folders_over_25_files: int


MOST = {
    "sources": Measures(526, 15, 13, 1),
    "tests and benchmarks": Measures(525, 30, 6, 3),
}
IN_CIRCLES = 0
"""Modules that import one another, by way of whatever others."""

FOLDERS_IN_CIRCLES = 0
"""Folders whose modules import one another's, by way of whatever others."""

UNIMPORTED = {"tzdata": "read by zoneinfo where the machine has no time zones"}
"""Declared packages that are needed and that nobody imports, with the reason."""

IMPORTED_AS = {
    "confluent-kafka[schemaregistry]": "confluent_kafka",
    "prometheus-client": "prometheus_client",
    "psycopg[binary]": "psycopg",
    "protobuf": "google",
}


@functools.cache
def trees(folders: tuple[str, ...]) -> dict[Path, ast.Module]:
    files = sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in files}


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def measures(folders: tuple[str, ...]) -> Measures:
    lengths = [len(file.read_text(encoding="utf-8").splitlines()) for file in trees(folders)]
    in_folder = Counter(file.parent for file in trees(folders))
    return Measures(
        longest_file=max(lengths),
        files_over_300_lines=sum(length > MANY_LINES for length in lengths),
        functions_over_40_lines=sum(
            lines_of(function) > LONG_FUNCTION
            for tree in trees(folders).values()
            for function in functions(tree)
        ),
        folders_over_25_files=sum(files > MANY_FILES for files in in_folder.values()),
    )


def imported(tree: ast.Module) -> Iterator[str]:
    """Every module, or name in a package, that a file imports, those for types alone as well."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def imports() -> dict[str, set[str]]:
    """What each module of ours imports: modules, and names in them."""
    return {
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"):
        set(imported(tree)) for file, tree in trees(SOURCES).items()
    }  # fmt: skip


def graph() -> dict[str, set[str]]:
    """Which module of ours imports which."""
    found = imports()
    return {name: found.keys() & others - {name} for name, others in found.items()}


def circles(edges: dict[str, set[str]]) -> list[set[str]]:
    """The sets of modules that import one another, by way of whatever others (Tarjan)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in sorted(edges[node]):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            circle = set(stack[stack.index(node) :])
            del stack[stack.index(node) :]
            if len(circle) > 1:
                found.append(circle)

    for node in sorted(edges):
        if node not in order:
            visit(node)
    return found


@pytest.mark.parametrize(
    ("part", "folders"), [("sources", SOURCES), ("tests and benchmarks", BESIDE)]
)
def test_no_measure_grows(part: str, folders: tuple[str, ...]) -> None:
    now = measures(folders)
    assert now == MOST[part], "larger: split what grew; smaller: lower the number in this file"


def test_no_circle_of_imports_comes_back() -> None:
    found = circles(graph())
    assert sum(map(len, found)) == IN_CIRCLES, found


def folder_of(name: str) -> str:
    """The folder of a module, or the package that a name is."""
    return name if (ROOT / name.replace(".", "/")).is_dir() else name.rpartition(".")[0]


def test_no_circle_of_folders_comes_back() -> None:
    """A folder is what stands in it, not what stands below. Imports inside functions count."""
    edges: dict[str, set[str]] = {}
    product = ((n, o) for n, o in graph().items() if n.split(".")[0] != "demo")
    for name, others in product:
        folder = folder_of(name)
        edges.setdefault(folder, set()).update(folder_of(other) for other in others)
    found = circles({folder: others - {folder} for folder, others in edges.items()})
    assert sum(map(len, found)) == FOLDERS_IN_CIRCLES, found


def test_each_declared_package_is_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {entry.split(">")[0].split("~")[0] for entry in project["dependencies"]}
    tops = {name.split(".")[0] for tree in trees(SOURCES).values() for name in imported(tree)}
    unused = {name for name in declared if IMPORTED_AS.get(name, name) not in tops}
    assert unused == UNIMPORTED.keys()


def at_import(tree: ast.Module) -> Iterator[str]:
    """What importing a file imports: not what its functions import, or its annotations alone."""
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imported(ast.Module([node], []))


def test_the_quick_tests_import_no_spark() -> None:
    """They are run while one works: starting must cost nothing."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    quick = next(line for line in makefile.splitlines() if line.startswith("QUICK := "))
    known = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): tree
        for file, tree in trees((*SOURCES, *BESIDE)).items()
    }
    folders = [folder.replace("/", ".") for folder in quick.split()[2:]]
    assert folders
    wanted = ["tests.conftest"]
    wanted += [name for name in known for folder in folders if name.startswith(f"{folder}.")]
    reached = dict.fromkeys(wanted, "")
    while wanted:
        name = wanted.pop()
        for other in at_import(known[name]):
            assert other.split(".")[0] not in {"pyspark", "py4j"}, (name, reached[name])
            if other in known and other not in reached:
                reached[other] = name
                wanted.append(other)


def defaults(tree: ast.Module) -> Iterator[tuple[str, float | str, str]]:
    """The numbers and texts that fields of classes have by default: name, value, class. 0, 1 and
    an empty text say nothing, and a ``name`` is what its class is called."""
    for kind in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for field in kind.body:
            match field:
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    match value:
                        case ast.Call(func=ast.Name(id="Field"), args=[first, *_]):
                            value = first
                    found = literal(value)
                    if name != "name" and found not in (None, 0, 1, -1, ""):
                        yield name, found, kind.name


def literal(value: ast.expr) -> float | str | None:
    """The number or text of a literal, or of literals in an expression, as ``1 << 30``."""
    if not all(isinstance(n, (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop))
               for n in ast.walk(value)):  # fmt: skip
        return None
    found = eval(compile(ast.Expression(value), "", "eval"))
    return found if isinstance(found, (int, float, str)) and not isinstance(found, bool) else None


def test_a_default_stands_once() -> None:
    """One of two that is changed makes tests and daemon differ without a word."""
    homes: dict[tuple[str, float | str], set[str]] = {}
    for file, tree in trees(SOURCES).items():
        for name, found, kind in defaults(tree):
            homes.setdefault((name, found), set()).add(f"{file.relative_to(ROOT)}: {kind}")
    assert {place: kinds for place, kinds in homes.items() if len(kinds) > 1} == {}


WHOLE_CONFIGURATION = {
    "daemon.config": "defines it",
    "daemon.app": "puts the daemon together",
    "daemon.cli": "a command's process reads the file",
    "daemon.operations.engine": "the port lends it to operations, which are about any part of it",
    "daemon.operations.checks": "check-config checks all of it",
    "daemon.operations.move": "a move is between the Kafkas of two of them",
    "daemon.operations.reload": "a reload compares two of them",
}
"""The folders that may name the class of the whole configuration, each with the reason."""


def test_the_whole_configuration_is_handed_to_nobody_else() -> None:
    """Everything else takes a section, a path, or one pipeline's part (``PipelineConfig``)."""
    found = {
        name for name, others in imports().items()
        if name.split(".")[0] != "demo" and "daemon.config.config.Config" in others
        and not any(f"{name}.".startswith(f"{folder}.") for folder in WHOLE_CONFIGURATION)
    }  # fmt: skip
    assert found == set()


NAMES_OF_TWO_THINGS = 0
"""Public classes of one name whom other files import from more than one place."""


def test_a_name_stands_for_one_thing() -> None:
    """What a file keeps to itself, or is used with its module's name, may be named as it likes."""
    homes: dict[str, set[str]] = {}
    product = trees(tuple(folder for folder in SOURCES if folder != "demo"))
    named = {(node.module, name.name) for tree in product.values() for node in ast.walk(tree)
             if isinstance(node, ast.ImportFrom) for name in node.names}  # fmt: skip
    for file, tree in product.items():
        home = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and (home, node.name) in named:
                homes.setdefault(node.name, set()).add(home)
    found = {name: places for name, places in homes.items() if len(places) > 1}
    assert len(found) == NAMES_OF_TWO_THINGS, found
