"""What a seed came to: what no seed comes to is not proved by them."""

from __future__ import annotations

from collections import Counter

from actors.contract import effects as fx
from actors.contract import messages as msg


def note(seen: Counter[str], event: object) -> None:
    """Count what tells that a seed came to something."""
    match event:
        case msg.WriteBatch(batch) if batch.step is not None and not batch.is_barrier:
            seen.update(amid=batch.amid, begun=batch.begun > 0)
        case msg.WriteBatch(batch) if batch.is_barrier:
            seen.update(marks_alone=not (batch.ddl or batch.changes_name), amid=batch.amid)
            seen.update(renamed_amid=batch.changes_name and batch.amid)
            steps = [step for statement in batch.ddl for step in statement]
            seen.update(type(step).__name__ for step in steps)
            seen.update(moves_to=bool(batch.moves_to), takes_from=bool(batch.takes_from))
        case msg.Failed(_, kind):
            seen[kind.name] += 1
        case msg.Dispatched():
            seen.update(runs=bool(event.runs), fragments=bool(event.fragments))
        case fx.Spill():
            seen.update(Spill=1, LogRange=bool(event.rereads), away=event.away)
            seen.update(pieces=bool(event.rereads) and not event.records)
        case fx.Log(_, "away" | "back" | "away_spill_full" as what):
            seen[what] += 1
        case fx.ReadSpill() | fx.EndSpill() | fx.KeepDeadLetter():
            seen[type(event).__name__] += 1
        case msg.SchemasKept() | msg.RegistryState() | msg.SchemaRefused():
            seen[type(event).__name__] += 1
        case fx.WantSchemas():
            seen["WantSchemas"] += 1
        case msg.Reread() | msg.InQuarantine():
            seen[type(event).__name__] += 1
