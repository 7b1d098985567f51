"""Images in the fields of steps."""

import pytest

from botservice import ActionStep, Attachment, InvalidField, MemoryItem, TaskStep
from botservice.agent.tool_outputs import read_output
from botservice.conversation.images import as_attachment

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


class Image:
    """What tells a picture of PIL, as far as it is looked at."""

    def __init__(self, mode="RGB"):
        self.mode = mode

    def convert(self, mode):
        return type(self)(mode)

    def save(self, file, format):  # noqa: A002 - PIL calls it so
        if self.mode == "CMYK":
            raise OSError("cannot write mode CMYK as PNG")
        assert format == "PNG"
        file.write(PNG)


Image.__module__ = "PIL.Image"


class PngImageFile(Image):
    """What PIL makes of a file."""


FILE = Attachment("image/png", data=PNG)


@pytest.mark.parametrize(
    "given",
    [
        [FILE],
        FILE,
        [Image()],
        PngImageFile(),
        [Image("CMYK")],
        PNG,
        [bytearray(PNG)],
        ("image/png", PNG),
        [("image/png", memoryview(PNG))],
    ],
    ids=lambda given: type(given).__name__,
)
def test_every_kind_of_image_is_kept_as_a_file(given):
    for step in (ActionStep(1, observations_images=given), TaskStep("what is it?", task_images=given)):
        (kept,) = step.get_value("observations_images") or step.get_value("task_images")
        assert kept == FILE
        assert MemoryItem.from_json(step.to_json()) == step


@pytest.mark.parametrize(
    ("data", "mime_type"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"BM\0\0", "image/bmp"),
    ],
)
def test_bytes_say_their_type_by_their_beginning(data, mime_type):
    assert ActionStep(1, observations_images=[data]).observations_images == [Attachment(mime_type, data=data)]


@pytest.mark.parametrize(
    "given",
    [
        "plot.png",
        ["plot.png"],
        [b"no image"],
        [b""],
        [None],
        [7],
        7,
        {"image": PNG},
        [Attachment("text/plain", data=b"x")],
        ("text/plain", b"x"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_anything_else_is_refused_with_what_to_do(given):
    step = ActionStep(1, observations_images=[FILE])
    with pytest.raises(InvalidField, match=r"is no image.*give an Attachment\(\"image/png\""):
        step.observations_images = given
    assert step.observations_images == [FILE]


@pytest.mark.parametrize("given", [FILE, Image(), PNG, ("image/png", PNG)], ids=lambda given: type(given).__name__)
def test_an_attachment_may_be_given_in_the_same_ways(given):
    assert as_attachment(given) == FILE


def test_an_attachment_of_any_type_says_which_and_anything_else_is_refused():
    assert as_attachment(("text/plain", b"x")) == Attachment("text/plain", data=b"x")
    with pytest.raises(InvalidField, match="cannot be attached; give an Attachment"):
        as_attachment("report.txt")


def test_a_field_of_images_may_be_empty():
    assert ActionStep(1, observations_images=None).observations_images is None
    assert ActionStep(1, observations_images=[]).observations_images == []


def test_a_tool_may_return_a_picture():
    output = read_output(["Here it is", Image()])
    assert output.files == (FILE,)
    assert output.text.startswith("Here it is")
