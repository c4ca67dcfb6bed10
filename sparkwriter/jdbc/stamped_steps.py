"""Carries a stamped step to its end, whoever began it. See ``sparkwriter.jdbc.stamped``."""

from __future__ import annotations

from changes.model import TargetName
from sparkwriter.jdbc.dialect import target_name
from sparkwriter.jdbc.ledger import Ledger
from sparkwriter.jdbc.mysql.words import stamp_of
from sparkwriter.jdbc.session import Cause, DbError, Session, transaction
from sparkwriter.jdbc.stamped import Step, may_run


class StampedSteps:
    """The steps of one connection."""

    def __init__(self, session: Session, ledger: Ledger) -> None:
        self._session, self._ledger = session, ledger

    def finish(self, text: str) -> None:
        """Do what is left of the step. Nothing where another has done it meanwhile.

        Raises DbError. Where nothing but stamps was made before a statement failed, on a server
        that answers, the step is given up: nothing was changed, and the caller may ask again.
        """
        step = Step.parse(text)
        with self._session.exclusive(f"binlogd {step.token}"):
            if not self._is_open(step, text):
                return
            self._run(step, text)
            with transaction(self._session):
                for target in step.targets:
                    self._ledger.look(target, lock=True)
                for target in step.emptied:
                    self._session.run(f"DELETE FROM {target_name(self._session.dialect, target)}")
                for entry in step.entries:
                    self._ledger.note(entry)
                for target in step.others:
                    self._ledger.clear_step(target, text)

    def _is_open(self, step: Step, text: str) -> bool:
        rows = (self._ledger.look(target) for target in step.targets)
        return any(row is not None and row.step == text for row in rows)

    def _run(self, step: Step, text: str) -> None:
        begin = step.begin_at(self._stamp)
        for at, one in enumerate(step.statements[begin:], begin):
            if not may_run(one.needs, self._stamp(one.table)):
                continue
            try:
                self._session.run(one.sql)
            except DbError as error:
                # Stamps alone change nothing that anybody sees: they may stay.
                stamped = all(earlier.only_stamps for earlier in step.statements[:at])
                if stamped and error.cause is not Cause.AWAY:
                    self._give_up(step, text)
                raise

    def _give_up(self, step: Step, text: str) -> None:
        with transaction(self._session):
            for target in step.targets:
                self._ledger.clear_step(target, text)

    def _stamp(self, target: TargetName) -> str | None:
        table = self._session.describe(target)
        return None if table is None else stamp_of(table.comment)
