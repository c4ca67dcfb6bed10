"""Which page of the runbook is about a condition. Pure."""

from __future__ import annotations

DOCS = "docs"
"""Where the pages are where nobody says: beside the code, or in the package's documentation."""

PAGES = {
    "away": "target-failing",
    "behind": "lag-growing",
    "broker_unreachable": "broker-unreachable",
    "collector_away": "collector-failed",
    "collector_blind": "collector-failed",
    "collector_failed": "collector-failed",
    "collector_lost": "collector-lost",
    "collector_purge": "collector-purge",
    "counts_not_folded": "cuts-not-made",
    "credential_ends": "credential",
    "cut_incomplete": "cuts-not-made",
    "cuts_not_made": "cuts-not-made",
    "dead_letter_store_failing": "dead-letter-store",
    "dead_letters": "dead-letters",
    "full": "lag-growing",
    "gate_looks_long": "gates",
    "gate_not_looked": "gates",
    "gate_not_told": "gates",
    "valid_through_not_set": "gates",
    "held": "budget",
    "job_failed": "job-failed",
    "jvm_down": "jvm-down",
    "load_refused": "job-failed",
    "log_ends_unknown": "lag-unknown",
    "not_running": "not-ready",
    "offset_store_failing": "offset-store",
    "open_transaction": "frontier-held",
    "paused": "paused",
    "pipeline_failed": "pipeline-failed",
    "program_down": "program-down",
    "quarantine": "quarantine",
    "registry_away": "registry-away",
    "retention": "retention",
    "rows_may_differ": "rows-may-differ",
    "schema_awaited": "registry-away",
    "spill_full": "quarantine",
    "starting": "not-ready",
    "state_full": "state-full",
    "stopped": "target-failing",
    "stuck": "stuck",
    "target_behind": "lag-growing",
    "targets_failing": "target-failing",
    "targets_paused": "paused",
    "unassigned": "not-ready",
}
"""By kind of condition; a kind without a page is explained by its line."""


def runbook(kind: str, docs: str = DOCS) -> str:
    """The link to the page about a kind of condition, empty where there is none."""
    page = PAGES.get(kind)
    return "" if page is None else f"{docs.rstrip('/')}/runbook/{page}.md"
