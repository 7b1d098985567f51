"""What goes wrong, and what happens to all conversations at once."""

from collections.abc import Iterator
from typing import NamedTuple

from .commits import EXCUSED, put_delivery, put_memory, put_turn
from .states import FREE, ORPHAN, WORKERS, Chat, Delivery, Fault, Memory, Rules, Turn, World


class Event(NamedTuple):
    """Something that happens to all conversations.

    Attributes:
        actor: Who has to do it some time if it stays possible; "" where nobody has to.
        effect: What it does to each conversation, by `after`.
    """

    says: str
    actor: str
    effect: tuple[str, int]
    world: World


def events_in(world: World, rules: Rules) -> Iterator[Event]:
    """Yield what may happen next to the processes, their sessions and the clock."""
    for worker in range(WORKERS):
        yield from _of_process(world, rules, worker)
    if world.has(Fault.FAILOVER):
        session = tuple("cut" if each != "none" else each for each in world.session)
        left = world.without(Fault.FAILOVER)._replace(session=session)
        yield Event("the database fails over: every session ends", "", ("cut all", 0), left)
    if world.has(Fault.CLOCK) and not world.is_ahead:
        yield Event("the clock jumps ahead", "", ("", 0), world.without(Fault.CLOCK)._replace(is_ahead=True))
    for fault in (Fault.LOST, Fault.MODEL):
        if world.has(fault):
            yield Event(f"another conversation meets a fault: {fault}", "", ("", 0), world.without(fault))
    if world.is_ahead:
        yield Event("the clock is put right", "", ("", 0), world._replace(is_ahead=False))


def _of_process(world: World, rules: Rules, worker: int) -> Iterator[Event]:
    me, state, session = f"worker {worker + 1}", world.process[worker], world.session[worker]
    if state != "dead" and world.has(Fault.KILL):
        killed = _put(world.without(Fault.KILL), worker, "dead", "none")
        yield Event(f"{me} is killed", "", ("kill", worker), killed)
    if state == "dead":
        yield Event(f"{me} is started again", "", ("", worker), _put(world, worker, "up", "ok"))
    if state == "hung":
        yield Event(f"{me} wakes up", "", ("", worker), _put(world, worker, "up", session))
        if session == "ok":
            ended = _put(world, worker, "hung", "cut")
            yield Event(f"the database ends the silent session of {me}", "server", ("cut", worker), ended)
    if state != "up":
        return
    if world.has(Fault.HANG):
        hung = _put(world.without(Fault.HANG), worker, "hung", session)
        yield Event(f"{me} hangs", "", ("hang", worker), hung)
    if session == "ok" and world.has(Fault.CUT):
        cut = _put(world.without(Fault.CUT), worker, "up", "cut")
        yield Event(f"{me} loses its connection, and does not know yet", "", ("cut", worker), cut)
    if session == "ok" and world.has(Fault.POOLER) and rules.fences_sessions:
        refused = _put(world.without(Fault.POOLER), worker, "dead", "none")
        says = f"a transaction of {me} gets another's session: it is refused, and {me} ends"
        yield Event(says, "", ("refuse", worker), refused)
    if session == "cut":
        says = f"{me} finds its connection lost, drops its claims and connects again"
        yield Event(says, me, ("notice", worker), _put(world, worker, "up", "ok"))


def _put(world: World, worker: int, process: str, session: str) -> World:
    def put(values: tuple[str, ...], value: str) -> tuple[str, ...]:
        return (*values[:worker], value, *values[worker + 1 :])

    return world._replace(process=put(world.process, process), session=put(world.session, session))


def after(chat: Chat, effect: tuple[str, int], rules: Rules, world: World) -> Chat:
    """Return a conversation after something that happened to all of them."""
    what, worker = effect
    match what:
        case "kill":
            is_pooled = world.has(Fault.POOLER) and not rules.fences_sessions  # the pooler keeps the session
            freed = chat if is_pooled or not rules.claims_by_lock else _free(chat, worker)
            chat = _lose(put_memory(_excuse(freed, worker, ("sent",)), worker, None), worker)
        case "refuse":
            kept = chat._replace(lock=ORPHAN) if chat.lock == worker + 1 else chat
            chat = put_memory(_excuse(kept, worker, ("sent",)), worker, None)
        case "hang":
            chat = _excuse(chat, worker, ("go", "sent"))
        case "cut":
            chat = _cut(chat, worker, rules)
        case "cut all":
            for each in range(WORKERS):
                chat = _cut(chat, each, rules)
        case "notice":
            chat = _notice(chat, worker, rules)
    return chat


def _cut(chat: Chat, worker: int, rules: Rules) -> Chat:
    excused = _excuse(chat, worker, ("go", "sent"))
    return _free(excused, worker) if rules.claims_by_lock else excused


def _free(chat: Chat, worker: int) -> Chat:
    return chat._replace(lock=FREE) if chat.lock == worker + 1 else chat


def _excuse(chat: Chat, worker: int, places: tuple[str, ...]) -> Chat:
    """Return a conversation in which what a worker was sending may be sent again."""
    memory = chat.memory[worker]
    if memory is None or memory.at not in places:
        return chat
    if memory.at == "go":
        return put_memory(chat, worker, memory._replace(knows=EXCUSED))
    turn = chat.turns[memory.turn]
    delivery: Delivery = getattr(turn, memory.part)
    if turn.row != memory.row or delivery.status != "attempting":
        return chat
    return put_turn(chat, memory.turn, put_delivery(turn, memory.part, delivery._replace(is_excused=True)))


def _lose(chat: Chat, worker: int) -> Chat:
    """Return a conversation without the messages that a worker had in memory alone."""
    lost = [each._replace(status="lost") if each.status == f"heard {worker}" else each for each in chat.turns]
    return chat._replace(turns=tuple(lost)) if lost != list(chat.turns) else chat


def _notice(chat: Chat, worker: int, rules: Rules) -> Chat:
    memory = chat.memory[worker]
    if memory is None or memory.at == "late" or not rules.fences_writes or not rules.claims_by_lock:
        return chat
    left: Memory | None = memory._replace(at="late") if memory.at == "sent" else None
    return put_memory(chat, worker, left)


def swapped(chat: Chat) -> Chat:
    """Return a conversation in which the two workers have changed places."""
    lock = {1: 2, 2: 1}.get(chat.lock, chat.lock)
    turns = tuple(_swap_heard(each) for each in chat.turns)
    return chat._replace(lock=lock, memory=chat.memory[::-1], turns=turns)


def _swap_heard(turn: Turn) -> Turn:
    names = {"heard 0": "heard 1", "heard 1": "heard 0"}
    return turn._replace(status=names[turn.status]) if turn.status in names else turn


def swapped_world(world: World) -> World:
    """Return a world in which the two workers have changed places."""
    return world._replace(process=world.process[::-1], session=world.session[::-1])
