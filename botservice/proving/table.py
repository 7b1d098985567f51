"""The report of the proof: a table, and its verdict in a sentence."""

from botservice.proving.checker import Findings
from botservice.proving.proof import Proof


def write_table(proof: Proof) -> str:
    """Return what was found, and how to see the same again."""
    plan, found = proof.plan, proof.findings
    people = len({person for chat in proof.chats for person in chat.people})
    where = "one process on SQLite" if plan.database is None else f"{plan.processes} processes on Postgres"
    command = f"botservice prove --seed {plan.seed} --seconds {plan.seconds:g} --kills {plan.kills}"
    command += "" if plan.database is None else " --database URL"
    lines = [f"{people} people in {len(proof.chats)} chats, {where}, seed {plan.seed}"]
    lines += [f"  {name:<24} {value:>7}  {why}".rstrip() for name, value, why in _rows(found)]
    return "\n".join([*lines, _verdict(found), f"Once more: {command}", "What this cannot show: docs/proof.md"])


def _rows(found: Findings) -> list[tuple[str, int | str, str]]:
    return [
        ("messages said", found.messages, ""),
        ("answered once", found.once, ""),
        ("answered again", found.again, "being sent when the process was killed: nobody can ask Telegram for it"),
        ("answered twice", found.twice, "without such a kill; must be 0"),
        ("lost", found.lost, "must be 0"),
        ("out of order", found.out_of_order, "must be 0"),
        ("answers to nothing", found.strange, "must be 0"),
        ("payments asked for", found.to_pay, ""),
        ("paid", found.paid, ""),
        ("paid twice", found.paid_twice, "must be 0"),
        ("in doubt, and said so", found.in_doubt, "cut off by a kill, and never tried again by itself"),
        ("told wrongly", found.told_wrongly, "must be 0"),
        ("processes killed", found.kills, "with SIGKILL"),
        ("ended by themselves", found.ended_alone, "must be 0"),
        ("longest wait", f"{found.longest_wait:.1f} s", ""),
    ]


def _verdict(found: Findings) -> str:
    if found.messages == 0:
        return "Nobody said anything in so short a time: this shows nothing."
    if found.faults:
        return f"{found.faults} things are not as they are promised. Please report them with these lines."
    return "Nothing was lost, paid twice or told wrongly, and every chat was answered in its order."
