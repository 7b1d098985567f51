"""The fields that a class of items declares by annotating them."""

import sys
import typing
from collections.abc import Mapping
from typing import Any, Final

from botservice.memory.fields.values import freeze

NO_DEFAULT: Final = object()


def take_declared(cls: type) -> dict[str, Any]:
    """Return the fields that cls itself annotates, with default or NO_DEFAULT.

    Defaults leave the class, because a class attribute would hide the fields of its instances.
    """
    taken = {}
    for name, annotation in _annotations(cls).items():
        if name[0] == "_" or _is_class_variable(annotation):
            continue
        taken[name] = NO_DEFAULT
        if name in vars(cls):
            taken[name] = freeze(vars(cls)[name], name)
            delattr(cls, name)
    return taken


def _annotations(cls: type) -> Mapping[str, Any]:
    if sys.version_info >= (3, 14):
        import annotationlib

        return annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF)
    found: Mapping[str, Any] = vars(cls).get("__annotations__", {})
    return found


def _is_class_variable(annotation: object) -> bool:
    if isinstance(annotation, str):
        return annotation.removeprefix("typing.").startswith("ClassVar")
    return annotation is typing.ClassVar or typing.get_origin(annotation) is typing.ClassVar
