"""Which dead letters a command means: the options that ``replay`` and ``discard`` share."""

from __future__ import annotations

from typing import Annotated

from daemon.operations.engine.here import Here
from daemon.operations.engine.operation import Option, Params
from daemon.state.dead_letters.index import LetterFilter, filter_of
from daemon.state.edits import EditRefused, chosen_pipeline
from daemon.state.layout import check_layout


class LetterParams(Params):
    """Which letters."""

    letters: Annotated[
        list[str] | None,
        Option("TOPIC:PARTITION:OFFSET, as list names them.", argument=True, metavar="LETTER..."),
    ] = None
    pipeline: Annotated[str | None, Option("Which pipeline; not needed where there is one.")] = None
    topic: Annotated[str | None, Option("Records of this topic.")] = None
    table: Annotated[
        str | None, Option("A pattern (*, ?) of the source's table, or of the target.")
    ] = None
    reason: Annotated[
        str | None, Option("unreadable, no-key, unfit, or a part of the error's text.")
    ] = None
    since: Annotated[
        str | None, Option("Stored since: 2026-01-31T00:00:00Z, or an age such as 2h.")
    ] = None
    every: Annotated[bool, Option("All that are open.", flag="--all")] = False


def chosen_letters(params: LetterParams, here: Here) -> tuple[str, LetterFilter]:
    """The pipeline and the filter that the options describe. Raises EditRefused."""
    name = chosen_pipeline(here.config.pipeline, params.pipeline)
    try:
        check_layout(here.config.daemon.state_dir)
        of = (params.topic, params.table, params.reason, params.since)
        letters = filter_of(params.letters or (), *of)
    except (OSError, ValueError) as error:
        raise EditRefused(str(error)) from error
    if letters.everything and not params.every:
        raise EditRefused(
            "which? Name letters as `dead-letters list` does, filter them, or say --all"
        )
    return name, letters
