"""What people, platforms and time do. What is stored for them is stored by any process that can."""

from collections.abc import Iterator

from .commits import FORGOTTEN, Situation, Step, checked_commit, name_of, put_turn
from .moves import Change
from .states import FREE, ORPHAN, WORKERS, Chat, Delivery, Memory, Rules, Turn, World


def people(now: Situation) -> Iterator[Step]:
    """Yield what they do next."""
    yield from _time(now)
    yield from _platform(now)
    if _can_store(now.world):
        yield from _controls(now)
        for index, turn in enumerate(now.chat.turns):
            yield from _decide(now, index, turn)


def _time(now: Situation) -> Iterator[Step]:
    """Yield what happens some time by itself."""
    chat, world, rules, _, _ = now
    for index, turn in enumerate(chat.turns):
        if turn.approval == "waiting" and not turn.is_over:
            over = put_turn(chat, index, turn._replace(is_over=True))
            yield Step(f"the time to decide about {name_of(index)} is over", "time", over, world)
    if chat.lock == ORPHAN:
        yield Step("the database ends the session of a process that is gone", "server", chat._replace(lock=FREE), world)
    if not rules.claims_by_lock and chat.lock in range(1, WORKERS + 1) and _is_late(world, chat.lock - 1):
        yield Step(f"the time of worker {chat.lock}'s claim is over", "time", chat._replace(lock=FREE), world)
    if chat.wait and (chat.wait == "later" or world.is_ahead or rules.doubts_clocks):
        yield Step("what was put off is due", "time", chat._replace(wait=""), world)


def _platform(now: Situation) -> Iterator[Step]:
    """Yield the messages that may be delivered next. One that is stored may come again at any time: nothing changes."""
    chat, world, rules, plan, _ = now
    for index, turn in enumerate(chat.turns):
        is_next = not plan.in_order or all(each.status != "nothing" for each in chat.turns[:index])
        if turn.status == "nothing" and is_next:
            yield from _accept(now, index)
        if turn.status == "done" and not rules.knows_events and turn.answers == 1:
            again = turn._replace(status="queued", answer=Delivery(), call="nothing", ran=0)
            says = f"the platform delivers {name_of(index)} again, and it is stored as a new one"
            yield Step(says, "", put_turn(chat, index, again), world)


def _controls(now: Situation) -> Iterator[Step]:
    """Yield what people may do about what they said."""
    chat, world, rules, plan, is_strict = now
    said, first = sum(each.status != "nothing" for each in chat.turns), chat.turns[0]
    stored = [Change("control", "nothing", "stored")]
    for behind in range(1, said + 1) if plan.stops and chat.stop == "nothing" else ():
        stopped = checked_commit(chat._replace(stop="stored", stop_behind=behind), chat, None, stored, is_strict)
        yield Step(f"a stop is stored, which a person said right behind {name_of(behind - 1)}", "", stopped, world)
    if plan.edits and chat.edit == "nothing" and first.status not in ("nothing", "gone"):
        edited = checked_commit(chat._replace(edit="stored"), chat, None, stored, is_strict)
        yield Step("message 1 is edited; the edit is stored", "", edited, world)
    if plan.forgets and not chat.is_forgotten and first.status != "nothing":
        forgotten, changes = forget(chat, rules)
        checked = checked_commit(forgotten, chat, None, changes, is_strict)
        yield Step("the author of message 1 is forgotten", "", checked, world)


def _is_late(world: World, worker: int) -> bool:
    """Return whether a claim that holds for a time may run out: its worker does not renew it, or the clock jumped."""
    return world.is_ahead or (world.process[worker], world.session[worker]) != ("up", "ok")


def _can_store(world: World) -> bool:
    return any(pair == ("up", "ok") for pair in zip(world.process, world.session, strict=True))


def _accept(now: Situation, index: int) -> Iterator[Step]:
    chat, world, rules, _, is_strict = now
    turn = chat.turns[index]
    if not rules.stores_before_acknowledging:
        for worker in range(WORKERS):
            if world.process[worker] == "up":
                says = (
                    f"worker {worker + 1} tells the platform that {name_of(index)} has arrived, and keeps it in memory"
                )
                yield Step(says, "", put_turn(chat, index, turn._replace(status=f"heard {worker}")), world)
        return
    if _can_store(world):
        new = put_turn(chat, index, turn._replace(status="queued"))
        says = f"{name_of(index)} is stored, and then the platform is told that it has arrived"
        yield Step(says, "", checked_commit(new, chat, None, [Change("turn", "nothing", "queued")], is_strict), world)


def _decide(now: Situation, index: int, turn: Turn) -> Iterator[Step]:
    """Yield what a person may press: the question has to have been shown, and what is decided stays so."""
    chat, world, rules, _, is_strict = now
    waits = ("waiting",) if rules.decides_only_what_waits else ("waiting", "allowed", "denied")
    if turn.approval not in waits or turn.is_over or not turn.asked.is_shown:
        return
    for word in ("allowed", "denied"):
        if word == turn.approval:
            continue
        decided = put_turn(chat, index, turn._replace(approval=word, word=turn.word or word))
        if turn.word and turn.word != word:
            decided = decided._replace(alarm="an approval is decided twice")
        changed = checked_commit(decided, chat, None, [Change("approval", turn.approval, word)], is_strict)
        yield Step(f"a person presses a button: {name_of(index)} is {word}", "", changed, world)


def forget(chat: Chat, rules: Rules) -> tuple[Chat, list[Change]]:
    """Return a conversation after the author of the first message was forgotten, and which rows that changes.

    Where that message still waits, nobody can read yet whose it is: that is noted, and held against it when it begins.
    What others asked and is under way may have seen it: it is asked again, in a new row, or given up if it has run a
    tool.
    """
    chat = chat._replace(is_forgotten=True)
    if chat.turns[0].status == "queued":
        return chat, []
    turns, changes = [Turn("gone", 1)], _erasing(chat.turns[0])
    for turn in chat.turns[1:]:
        if turn.status not in ("running", "waiting"):
            turns.append(turn)
            continue
        row = turn.row + rules.forgets_in_new_rows
        is_untouched = turn.call == "nothing" and turn.status == "running"
        new = Turn("queued", row) if is_untouched else Turn("running", row, call="forgotten", ran=turn.ran)
        turns.append(new)
        changes += [Change("turn", "nothing", new.status), *_erasing(turn)]
    edit = "handled" if chat.edit == "stored" else chat.edit
    if edit != chat.edit:
        changes.append(Change("control", "stored", "handled"))
    memory = tuple(_knowing(each) for each in chat.memory)
    return chat._replace(turns=tuple(turns), edit=edit, memory=memory), changes


def _erasing(turn: Turn) -> list[Change]:
    """Return the changes by which a turn goes with all that belongs to it."""
    ended = "answered" if turn.answers else "stopped"
    rows = [("turn", ended if turn.status == "done" else turn.status), ("call", turn.call), ("approval", turn.approval)]
    rows += [("delivery", turn.asked.status), ("delivery", turn.answer.status)]
    return [Change(thing, state, "gone") for thing, state in rows if state not in ("nothing", "gone", "forgotten")]


def _knowing(memory: Memory | None) -> Memory | None:
    """Return the memory of a worker whose prompt has what was forgotten since."""
    return memory._replace(knows=FORGOTTEN) if memory is not None and memory.at in ("asks", "calls", "ran") else memory
