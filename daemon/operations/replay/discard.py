"""``binlogd dead-letters discard``: marks letters as given up. Their bytes stay in the store."""

from __future__ import annotations

from daemon.config.pipeline_config import PipelineConfig
from daemon.operations.engine.here import Here
from daemon.operations.engine.operation import Done, Operation, say_plan
from daemon.operations.engine.port import Plan
from daemon.operations.replay.chosen import LetterParams, chosen_letters
from daemon.operations.replay.replay import mark_record
from daemon.state.control import ControlError
from daemon.state.dead_letters.files import add_mark
from daemon.state.dead_letters.index import FILES, Stored, Unreadable, read_index
from settings.counted import counted
from sources.base.letter import Mark
from sources.base.topics import NotSent


class DiscardLettersOperation(Operation[LetterParams]):
    """Give letters up: they count as done with, and their rows stay missing in the targets.

    The store keeps them, and replay takes one that is named all the same.
    """

    words, params, loses = "dead-letters discard", LetterParams, True
    example = "shop:0:4711"
    own_process = True

    def plan(self, params: LetterParams, here: Here) -> Plan:
        """Which would be given up."""
        found = self._found(params, here)
        lines = (f"{_name(each)} is given up: {each.letter.error}" for each in found)
        return Plan(lines=tuple(lines), nothing=not found)

    def step(self, params: LetterParams, here: Here) -> Done:
        """Mark them durably, those in files first."""
        say_plan(self.plan(params, here), here)
        found, files = self._found(params, here), 0
        in_topic = [each for each in found if each.store != FILES]
        topics = PipelineConfig(here.config, chosen_letters(params, here)[0]).topics()
        try:
            for each in found:
                if each.store == FILES:
                    add_mark(here.config.daemon.state_dir, Mark.now(each.letter.id, None))
                    files += 1
            if in_topic:
                topics.sender().send([mark_record(each, None) for each in in_topic])
        except OSError as error:
            raise ControlError(f"{error.filename}: {error.strerror}, {files} are marked") from error
        except NotSent as error:
            raise ControlError(f"the marks are not all sent, repeat it: {error}") from error
        here.say(f"{counted(len(found), 'letter')} discarded")
        return Done({"discarded": [each.letter.id.place for each in found]})

    def _found(self, params: LetterParams, here: Here) -> list[Stored]:
        name, wanted = chosen_letters(params, here)
        try:
            index = read_index(PipelineConfig(here.config, name))
        except Unreadable as error:
            raise ControlError(str(error)) from error
        here.note(*index.damage)
        return [each for each in index.pick(wanted) if each.state == "open"]


def _name(stored: Stored) -> str:
    target = stored.letter.id.target
    return f"{stored.letter.id.place}{'' if target is None else f' of {target}'}"
