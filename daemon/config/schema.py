"""The configuration's JSON schema, for editors: keys, kinds, defaults, what each section is for.

It says what a file may hold as it is written, not what must fit together: ``check-config`` does.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from daemon.config.config import Config
from settings.section import Section

REFERENCE = {"type": "string", "pattern": r"\$\{.+\}"}
"""What stands in a text's place until the file is read: ``${NAME}``, ``${file:PATH}`` …"""


class _Untitled(GenerateJsonSchema):
    """A key's name is title enough."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def config_schema() -> dict[str, Any]:
    """The schema of the whole file, in JSON Schema's draft 2020-12."""
    schema = Config.model_json_schema(schema_generator=_Untitled)
    described = {section.__name__: section for section in _sections()}
    for name, definition in (("Config", schema), *schema["$defs"].items()):
        _describe(definition, described[name])
    _add_short_forms(schema)
    found: dict[str, Any] = _as_written(schema)
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **found, "title": "binlogd's configuration"}


def _sections(of: type[Section] = Section) -> Iterator[type[Section]]:
    yield of
    for inner in of.__subclasses__():
        yield from _sections(inner)


def _describe(definition: dict[str, Any], section: type[Section]) -> None:
    """Docstrings are reStructuredText: editors show them as Markdown."""
    texts = {key: text for each in reversed(section.__mro__) for key, text in _texts(each)}
    for key, value in definition["properties"].items():
        if key in texts:
            value["description"] = _markdown(texts[key])
    definition.pop("title", None)
    if "description" in definition:
        definition["description"] = _markdown(definition["description"])


def _texts(section: type) -> Iterator[tuple[str, str]]:
    """The keys of a section that have a docstring of their own, below them in the code."""
    if not issubclass(section, Section):
        return
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(section))).body
    assert isinstance(tree, ast.ClassDef)
    for key, text in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(key, ast.AnnAssign)
            and isinstance(key.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        ):
            yield key.target.id, str(text.value.value)


def _markdown(text: str) -> str:
    return re.sub(r"``([^`]+)``", r"`\1`", " ".join(text.split()))


def _add_short_forms(schema: dict[str, Any]) -> None:
    """What sections take and turn into keys before they are checked."""
    pipeline, spark = schema["$defs"]["PipelineSection"], schema["$defs"]["SparkSection"]
    says = 'true: the short form of ddl.drop_column = "follow"'
    pipeline["properties"]["drop_columns"] = {"type": "boolean", "description": says}
    needed = pipeline.pop("required")  # a collector brings topics and format
    pipeline["anyOf"] = [{"required": needed}, {"required": ["collector"]}]
    writers = {"type": "integer", "deprecated": True, "description": "daemon.writers, before 0.1.0"}
    spark["properties"]["writers"] = writers


def _as_written(schema: Any) -> Any:
    """TOML has no null, and a reference may stand where a word of a list is expected."""
    if isinstance(schema, list):
        return [_as_written(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _as_written(inner) for key, inner in schema.items()}
    if "ge" in found:  # pydantic's word for a bound of what is a number or a text
        found["minimum"] = found.pop("ge")
    if "anyOf" in found:
        found["anyOf"] = [each for each in found["anyOf"] if each != {"type": "null"}]
    if "default" in found and found["default"] is None:
        del found["default"]
    if found.get("type") == "string" and ("enum" in found or "pattern" in found):
        outside = {key: found.pop(key) for key in ("default", "description") if key in found}
        return {"anyOf": [found, REFERENCE], **outside}
    return found
