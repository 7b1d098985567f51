"""Files of every kind: what a model reads of them, what the page shows, and what is refused."""

import base64
import json
from urllib.parse import unquote

from transports.web.files import BROWSER_FILES_BYTES


def file(data=b"the plan: go north", mime_type="text/plain", name="plan.txt"):
    return {"name": name, "mime_type": mime_type, "data": base64.b64encode(data).decode()}


async def send(site, visitor, text="what is this?", **fields):
    """Send a message with files; return its question as the page has it, and the model's last prompt."""
    async with visitor.events() as events:
        await events.until_idle()
        answer = await visitor.say(text, **fields)
        assert answer.status_code == 202, answer.text
        await events.until_answered()
        return [each for each in events.messages if each["role"] == "user"][-1], json.dumps(site.llm.prompts[-1])


async def test_what_stands_in_a_text_is_read_by_the_model_and_shown_as_a_file(site):
    visitor, other = await site.visitor(), await site.visitor()
    question, prompt = await send(site, visitor, files=[file(), file(b"a,b\n1,2", "application/vnd.ms-excel", "x.csv")])
    assert "the plan: go north" in prompt
    assert "a,b" in prompt
    assert question["text"] == "what is this?"
    assert [(each["name"], each["is_image"]) for each in question["files"]] == [("plan.txt", False), ("x.csv", False)]
    kept = await visitor.client.get(question["files"][0]["url"])
    assert (kept.content, kept.headers["content-type"]) == (b"the plan: go north", "application/octet-stream")
    assert "plan.txt" in kept.headers["content-disposition"]
    assert (await other.client.get(question["files"][0]["url"])).status_code == 404


async def test_a_file_alone_is_a_message_and_names_its_conversation(site):
    visitor = await site.visitor()
    question, prompt = await send(site, visitor, "", files=[file(b"\x00\x01\x02", "application/x-thing", "thing.bin")])
    assert question["text"] == ""
    assert "[file, thing.bin]" in prompt
    listed = (await visitor.client.get("/web/conversations")).json()["conversations"]
    assert [each["title"] for each in listed] == ["thing.bin"]


async def test_a_retry_shows_the_question_and_not_what_stands_in_its_file(site):
    visitor = await site.visitor()
    await send(site, visitor, files=[file()])
    question, prompt = await send(site, visitor, "/retry", is_pressed=True)
    assert question["text"] == "what is this?"
    assert "the plan: go north" in prompt


async def test_where_a_question_is_named_its_file_is_too_and_not_what_stands_in_it(run_site, storage_url):
    async with run_site(["A plan."], storage_url=storage_url) as site:
        visitor = await site.visitor()
        await send(site, visitor, "what is this?", files=[file()])
        async with visitor.events() as events:
            await visitor.say("/why")
            why = (await events.until("notice", lambda data: data["asked"] == "/why")).data["text"]
        pages = [
            (await visitor.client.get(path, headers={"Accept": "text/html"})).text
            for path in ("/inspect?view=turns", "/inspect/1")
        ]
    for each in (why, *pages):
        assert "what is this? [plan.txt]" in each
        assert "[file, plan.txt]" not in each


async def test_a_pdf_is_read_or_said_to_be_unreadable(site):
    visitor = await site.visitor()
    _, prompt = await send(site, visitor, files=[file(b"%PDF-1.7 nothing", "application/pdf", "x.pdf")])
    assert "x.pdf" in prompt


async def test_what_only_calls_itself_a_picture_is_a_file(site):
    visitor = await site.visitor()
    drawing = file(b"<svg onload=alert(1)>", "image/svg+xml", "drawing.svg")
    question, prompt = await send(site, visitor, files=[drawing, file(b"<html>", "image/png", "page.png")])
    assert [each["is_image"] for each in question["files"]] == [False, False]
    assert "image_url" not in prompt
    for each in question["files"]:
        answer = await visitor.client.get(each["url"])
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"].startswith("attachment")


NAMES = ['x"; filename=evil.exe', "a\r\nSet-Cookie: x=1", "../../etc/passwd", "\u202egpj.exe", "план 🎉.txt", "x" * 900]


async def test_no_name_of_a_file_does_harm(site):
    visitor = await site.visitor()
    question, _ = await send(site, visitor, files=[file(name=name) for name in NAMES])
    assert len(question["files"]) == len(NAMES)
    for each in question["files"]:
        shown = each["name"]
        assert "\u202e" not in shown
        assert "\n" not in shown
        answer = await visitor.client.get(each["url"])
        assert "set-cookie" not in answer.headers
        disposition = answer.headers["content-disposition"]
        parts = [part.partition("=")[0] for part in disposition.split("; ")]
        assert parts == ["attachment", "filename*", "filename"], shown
        assert unquote(disposition.partition("filename*=UTF-8''")[2].partition(";")[0]) == shown


async def test_what_is_too_much_is_refused_by_its_name(site):
    visitor = await site.visitor()
    for files, status, said in (
        ([file()] * 11, 413, "At most 10 files"),
        ([file(bytes(BROWSER_FILES_BYTES // 2 + 1))] * 2, 413, "10 MB together"),
        ([file(b"")], 400, "plan.txt is empty"),
        ("x", 400, "must be a list"),
        ([7], 400, "is empty"),
        ([{**file(), "data": "no!"}], 400, "base64"),
    ):
        refused = await visitor.say("hello", files=files)
        assert (refused.status_code, said in refused.json()["error"]) == (status, True), refused.text
    assert await site.count_events() == 0
