"""Telling how a broken twin of the model breaks a promise, in plain words."""

from .twins import Twin


def tell(twin: Twin, harm: str = "") -> str:
    """Return the shortest way to a broken promise.

    Args:
        harm: Which promise, by a part of its words; by default whichever is broken first.
    """
    alarm = twin.search(harm).alarm
    assert alarm is not None, f"the model without {twin.rule} breaks no promise"
    broken, steps = alarm
    told = [f"{number:>3}. {step[0].upper()}{step[1:]}." for number, step in enumerate(steps, 1)]
    return "\n".join([f"Where {twin.says}, {broken}:", *told, ""])
