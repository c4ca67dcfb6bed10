"""All commands with their help's first words, and where each is: nothing is imported for a list.

Most of a command's start is the import of what it calls: Arrow, Spark, clients of databases. So a
command's module is imported when it is called, here and nowhere else.
"""

from __future__ import annotations

from typing import NamedTuple


class Command(NamedTuple):
    """One command: ``place`` is ``MODULE:NAME``, of its function or of its group; empty where it is
    an operation. ``example``: what a function's help ends with."""

    words: str
    help: str
    place: str = ""
    example: str = ""


GROUPS = {
    "offsets": "What is recorded of positions.",
    "tables": "The targets, and those in quarantine.",
    "jobs": "What takes long beside the flow: loads, rebuilds.",
    "dead-letters": "Records that could not be applied.",
    "cuts": "All tables as of one point of the log.",
    "gate": "When tables are complete.",
    "collector": "What reads a source's log into Kafka.",
    "config": "What a configuration may hold.",
    "topics": "Topics of the broker.",
}
"""Each group's name, and what its help begins with."""

COMMANDS = (
    Command(
        "replicate",
        "Make tables equal to a database's and keep them so: collector, log and daemon together.",
        "daemon.cli.replicate.command:replicate",
        "replicate mysql://reader@db.example/shop --into ./lake",
    ),
    Command(
        "run",
        "Run the daemon. SIGTERM and Ctrl-C write what was read, commit, and end with status 0.",
        "daemon.cli.run:run",
        "run --config config.toml",
    ),
    Command(
        "init",
        "Write a first configuration: ask what no flag says, look at the topics, write the file.",
        "daemon.cli.init.command:init",
        "init --broker 127.0.0.1:9092 --topic shop --lake var/warehouse",
    ),
    Command(
        "setup",
        "Bring the jars that binlogd needs, each checked by its hash; what is there is kept.",
        "daemon.cli.setup:setup",
        "setup s3",
    ),
    Command(
        "status",
        "Show how the running daemon does, and what is not well.",
        "daemon.cli.status:status",
        "status --json",
    ),
    Command(
        "top",
        "Show the running daemon until Ctrl-C. Exit status 3 when none runs.",
        "daemon.cli.top:top",
        "top --ill",
    ),
    Command(
        "support-bundle",
        "Write configuration, status, versions, positions and the last logs into one file.",
        "daemon.cli.support.command:support_bundle",
        "support-bundle",
    ),
    Command(
        "check-config",
        "Check a configuration: exit status 0 and what would be done, or 2 and a line per problem.",
        "daemon.cli.check_config:check_config",
        "check-config --connect",
    ),
    Command(
        "decode",
        "Print what messages say, a line of JSON for each change; status 1 where some are bad.",
        "daemon.cli.decode:decode",
        "decode --format canal-json messages.jsonl",
    ),
    Command(
        "produce",
        "Send each line of a file of JSON to a topic: the records of a change stream, for a"
        " first try.",
        "daemon.cli.produce:produce",
        "produce changes.jsonl --topic shop --create",
    ),
    Command(
        "query",
        "Show what a SELECT gives over the tables of a sink.",
        "daemon.cli.query.command:query",
        "query 'select * from lake.shop.orders'",
    ),
    Command(
        "cuts list",
        "Show the cuts, the newest first, and whether the tables of each are still kept.",
        "daemon.cli.cuts:app",
    ),
    Command(
        "cuts show",
        "Show one cut: its positions, and of each table the version to read.",
        "daemon.cli.cuts:app",
    ),
    Command(
        "cuts diff",
        "Show which tables differ between two cuts, and the positions of both.",
        "daemon.cli.cuts:app",
    ),
    Command(
        "gate wait",
        "Wait until tables hold all that their source had committed up to a moment.",
        "daemon.cli.gate.command:app",
    ),
    Command("gate run", "Close configured gates, and tell others.", "daemon.cli.gate.running:app"),
    Command("gate list", "Show the gates, and why each is shut.", "daemon.cli.gate.records:app"),
    Command("gate reopen", "Reopen a closed partition.", "daemon.cli.gate.records:app"),
    Command("gate forget", "Remove what is kept of a gate.", "daemon.cli.gate.records:app"),
    Command(
        "counts",
        "Compare the row changes that the source says it made in each minute with those in the"
        " log.",
        "daemon.cli.counts.command:counts",
        "counts lake.shop.orders --from 2h --to 1h",
    ),
    Command(
        "reload",
        "Have the running daemon take its changed configuration file: all of it, or nothing.",
    ),
    Command(
        "pause",
        "Have a pipeline read nothing, or a target not be written, until binlogd resume.",
    ),
    Command(
        "resume",
        "Have a pipeline that is paused or has stopped, or a paused target, go on where it was.",
    ),
    Command(
        "drain",
        "Have a pipeline write all that it has read, and then stay paused.",
    ),
    Command(
        "log-level",
        "Set the running daemon's log level, until it is restarted.",
    ),
    Command(
        "offsets show",
        "Show what is recorded: frontiers, what the broker confirmed, the targets' marks.",
        "daemon.cli.offsets:app",
    ),
    Command(
        "offsets where",
        "Say of a message, for each of its targets, whether it is in it, and if not, where it is.",
        "daemon.cli.where.command:app",
    ),
    Command(
        "offsets export",
        "Print what is recorded of one pipeline as JSON. Status 1 where nothing or damage is.",
        "daemon.cli.offsets:app",
    ),
    Command(
        "offsets import",
        "Record an exported, perhaps edited file, with the daemon stopped. Status 2: refused.",
    ),
    Command(
        "offsets move",
        "Have all pipelines and collectors of the embedded broker go on in the Kafka of [kafka].",
    ),
    Command(
        "offsets reset",
        "Read again from an earlier position, or skip to a later one: group and targets together.",
    ),
    Command(
        "tables list",
        "Show the targets: of the running daemon, or as they are recorded. Status 1: damage.",
        "daemon.cli.tables:app",
    ),
    Command(
        "tables retry",
        "Release a target from quarantine: what was spilled is written first. Status 2: refused.",
    ),
    Command(
        "tables rebuild",
        "Read a table again from its log's start into a new one, which takes its name.",
    ),
    Command(
        "tables load",
        "Fill tables from the source's own database, beside the stream. Status 2: refused.",
    ),
    Command(
        "tables verify",
        "Compare tables with the source's own by value. Status 0: equal; 1: something differs.",
    ),
    Command(
        "tables discard",
        "Give up what is kept for a target that no route wants any more, or a reset that can't be.",
    ),
    Command(
        "jobs list",
        "Show the jobs: of the running daemon, or as they are recorded. Status 1: damage.",
        "daemon.cli.jobs:app",
    ),
    Command(
        "jobs show",
        "Show one job in full. Status 2: there is none of that name.",
        "daemon.cli.jobs:app",
    ),
    Command(
        "jobs pause",
        "Let a job rest after the step under way, until it is resumed. Status 2: refused.",
    ),
    Command(
        "jobs resume",
        "Have a paused job go on. Status 2: refused.",
    ),
    Command(
        "jobs cancel",
        "Give a job up, and have what it has begun removed. One that has failed is no "
        "failure any more. Status 2: refused.",
    ),
    Command(
        "dead-letters list",
        "Show what is stored, a line for each letter. Status 1 where some can't be read.",
        "daemon.cli.dead_letters:letters_list",
        'dead-letters list --table "shop.*" --since 2h',
    ),
    Command(
        "dead-letters show",
        "Show one in full: key, value, headers, error, and what its format says of it now.",
        "daemon.cli.shown_letter:letters_show",
        "dead-letters show shop:0:4711",
    ),
    Command(
        "dead-letters replay",
        "Append the records of letters to their partitions again, to be applied as they are now.",
    ),
    Command(
        "dead-letters discard",
        "Give letters up: they count as done with, and their rows stay missing in the targets.",
    ),
    Command(
        "dead-letters prune",
        "Remove dead letters from files by their age, replayed or not. The pipeline stands "
        "meanwhile.",
    ),
    Command(
        "collector status",
        "Show what collectors do, and what their sources keep for them. Status 3: no daemon"
        " runs; 1: it does not answer, or one of them does not read; 2: there is none of "
        "that name.",
        "daemon.cli.collector:app",
    ),
    Command(
        "collector pause",
        "End a collector's task: nothing is read, its position and its slot stay at the source.",
    ),
    Command(
        "collector resume",
        "Have a collector read on from its position.",
    ),
    Command(
        "collector restart",
        "Have a collector's task begin again at its position, now. A lost position is looked for.",
    ),
    Command(
        "collector reset",
        "Have a collector begin at the source's present, and load its tables. Nobody reads "
        "what was between its position and the present.",
    ),
    Command(
        "collector remove",
        "Remove a collector's connector, its position and its slot. Its section can go then.",
    ),
    Command(
        "config schema",
        "Print the JSON schema of the configuration: editors complete and check keys by it.",
        "daemon.cli.config:app",
    ),
    Command(
        "config alerts",
        "Print Prometheus' rules, each with the address of its page of the runbook.",
        "daemon.cli.config:app",
    ),
    Command(
        "topics peek",
        "Show records of a topic, and what binlogd makes of each.",
        "daemon.cli.topics.command:app",
    ),
)
