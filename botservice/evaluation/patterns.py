"""Patterns that are looked for in linear time, whatever the text is."""

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from botservice.errors import BotServiceError


class Pattern:
    """A regular expression as the Rust library `regex` reads it: without look-around and back-references."""

    __slots__ = ("_validator", "text")

    def __init__(self, text: str) -> None:
        """Read a pattern.

        Raises:
            BotServiceError: it is none.
        """
        self.text = text
        try:
            self._validator = SchemaValidator(core_schema.str_schema(pattern=text, regex_engine="rust-regex"))
        except SchemaError as error:
            reason = " ".join(str(error).partition("regex parse error:")[2].split()) or "it cannot be read"
            raise BotServiceError(
                f"{text!r} is no pattern that is safe to look for: {reason[-160:]}. "
                "Leave out look-around and back-references"
            ) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def is_in(self, text: str) -> bool:
        """Return whether it is found anywhere in a text."""
        try:
            self._validator.validate_python(text)
        except ValidationError:
            return False
        return True
