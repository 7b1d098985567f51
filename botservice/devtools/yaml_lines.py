"""Values of a YAML file with the lines that they stand in, so that an error names its line and the remedy."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Self

import yaml

from botservice.core.errors import BotServiceError

_MOST_VALUES: Final = 200_000  # of a file, each as often as an alias repeats it
_DEEPEST: Final = 100
_LARGEST: Final = 2**53  # the whole numbers up to here are exact
_TOO_DEEP: Final = "values are nested too deep"


@dataclass(frozen=True, slots=True)
class YamlLocation:
    """A value of a file."""

    file: str
    name: str
    node: yaml.Node

    @classmethod
    def of_text(cls, text: str, file: str) -> Self:
        """Return the value that a whole file is.

        Raises:
            BotServiceError: it is no YAML, or empty, or more than anybody writes.
        """
        try:
            node = yaml.compose(text, yaml.SafeLoader)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = f", line {mark.line + 1}" if mark is not None else ""
            what = getattr(error, "problem", None) or "this is no YAML"
            raise BotServiceError(f"{file}{line}: {what}") from None
        except RecursionError:
            raise BotServiceError(f"{file}: {_TOO_DEEP}") from None
        if node is None:
            raise BotServiceError(f"{file} is empty: it begins with cases:")
        place = cls(file, "the file", node)
        place._check_size()
        return place

    def _check_size(self) -> None:
        """Return if all that is below can be read one by one: aliases can make a short text endless."""
        left = [(self.node, 1)]
        for _ in range(_MOST_VALUES):
            if not left:
                return
            node, depth = left.pop()
            if depth > _DEEPEST:
                YamlLocation(self.file, self.name, node).refuse(_TOO_DEEP)
            match node:
                case yaml.MappingNode():
                    left += [(each, depth + 1) for pair in node.value for each in pair]
                case yaml.SequenceNode():
                    left += [(each, depth + 1) for each in node.value]
        self.refuse(f"there are more than {_MOST_VALUES:,} values, each as often as an alias repeats it")

    def refuse(self, reason: str) -> NoReturn:
        """Say what is wrong here."""
        raise BotServiceError(f"{self.file}, line {self.node.start_mark.line + 1}: {reason}")

    def fields(self, known: Collection[str]) -> Mapping[str, "YamlLocation"]:
        """Return the values of a mapping by their names."""
        if not isinstance(self.node, yaml.MappingNode):
            self.refuse(f"{self.name} must be a mapping with {', '.join(known)}")
        found: dict[str, YamlLocation] = {}
        for key, value in self.node.value:
            name = str(key.value)
            here = YamlLocation(self.file, name, key)
            if name not in known:
                here.refuse(f"{self.name} has no {name!r}; there are: {', '.join(known)}")
            if name in found:
                here.refuse(f"{name} is there twice")
            found[name] = YamlLocation(self.file, name, value)
        return found

    def items(self) -> Iterator["YamlLocation"]:
        """Yield the values of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            self.refuse(f"{self.name} must be a list, each line of which begins with a dash")
        for number, each in enumerate(self.node.value, 1):
            yield YamlLocation(self.file, f"{self.name} {number}", each)

    def value(self) -> Any:
        """Return it as JSON values; dates as their text."""
        match self.node:
            case yaml.MappingNode():
                return {
                    str(key.value): YamlLocation(self.file, str(key.value), each).value()
                    for key, each in self.node.value
                }
            case yaml.SequenceNode():
                return [each.value() for each in self.items()]
        return self._scalar()

    def text(self) -> str:
        """Return a text, which a number may be as well."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag.endswith(":null"):
            self.refuse(f"{self.name} must be a text")
        return str(self.node.value)

    def texts(self) -> tuple[str, ...]:
        """Return texts: a list of them, or one."""
        if isinstance(self.node, yaml.SequenceNode):
            return tuple(each.text() for each in self.items())
        return (self.text(),)

    def number(self, *, least: float = 0) -> float:
        """Return a number."""
        value = self._scalar() if isinstance(self.node, yaml.ScalarNode) else None
        if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= _LARGEST:
            self.refuse(f"{self.name} must be a number, {least:g} or more")
        return float(value)

    def whole(self) -> int:
        """Return a whole number above 0."""
        number = self.number(least=1)
        if number != int(number):
            self.refuse(f"{self.name} must be a whole number")
        return int(number)

    def _scalar(self) -> Any:
        tag = self.node.tag.rpartition(":")[2]
        if tag in ("int", "float", "bool", "null"):
            loader = yaml.SafeLoader("")
            try:
                value = loader.construct_object(self.node)
                return value if not isinstance(value, float) or math.isfinite(value) else self.node.value
            except (ValueError, LookupError):  # it is called what it is not, such as !!bool maybe
                return self.node.value
            finally:
                loader.dispose()
        return self.node.value
