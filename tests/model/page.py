"""Print the table of moves by the kind of row: `python -m tests.model.page`."""

from collections.abc import Sequence

from .moves import MOVES, By, Thing

_FEW = 2

_TITLES = {
    Thing.TURN: "A turn",
    Thing.CALL: "A call of a tool",
    Thing.APPROVAL: "A call that waits",
    Thing.DELIVERY: "A delivery",
    Thing.CONTROL: "A stop, an edit or a deletion",
}


def draw() -> str:
    """Return the states of each kind of row, as a block of text."""
    return "\n\n".join("\n".join([title, *_lines(thing)]) for thing, title in _TITLES.items())


def _lines(thing: Thing) -> list[str]:
    rows = dict[tuple[str, By, str], list[str]]()
    for move in MOVES:
        if move.change.thing == thing:
            rows.setdefault((move.change.after, move.by, move.why), []).append(move.change.before)
    shown = [(_joined(before), *row) for row, before in rows.items()]
    widths = [max(len(row[place]) for row in shown) for place in (0, 1, 2)]
    return [_line(row, widths) for row in shown]


def _joined(before: Sequence[str]) -> str:
    return before[0] if len(before) == 1 else "any" if len(before) > _FEW else " or ".join(before)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    before, after, by, why = (each.ljust(width) for each, width in zip(row, [*widths, 0], strict=True))
    return f"  {before} → {after}  {by}  {why}"


if __name__ == "__main__":
    print(draw())
