"""How answers look while they are written, once they are stored, and where there is none, in a real Chromium."""

import asyncio

import pytest
from looks import AT_REST, DESKTOP, PHONE, WATCH_SHIFTS

from botservice import ChatResponse, LLMError, TokenUsage, ToolCall, progress, tool
from botservice.core.policies import Scope, parse_limits
from botservice.people.budgets import Budgets

expect = pytest.importorskip("playwright.async_api").expect
pytestmark = pytest.mark.asyncio(loop_scope="session")
ANSWER = """## Plan

| city | height |
|---|--:|
| Oslo | 23 |
| Bern | 540 |

```python
def first_line(): return "a line of code that is so much longer than any phone is wide, is it not?"
```

$$
\\frac{a}{b} = c
$$

The *end*."""
ARABIC = "# خطة قصيرة\n\nتلك إجابة قصيرة.\n\n- أولًا\n\n```python\nprint('مرحبا')\n```"
# Where every element of an answer stands.
PLACES = """() => [...document.querySelectorAll(".assistant .block, .assistant .block *")].map(each => {
    const box = each.getBoundingClientRect();
    return [each.nodeName, box.x, box.y, box.width, box.height].join(" ");
})"""


async def test_nothing_jumps_when_the_answer_ends_and_after_a_reload_it_is_the_same(run_site, typist, open_page):
    async with run_site(llm=typist) as site:
        page = await open_page(site.url)
        await page.say("Show me")
        typist.write(*[ANSWER[begin : begin + 7] for begin in range(0, len(ANSWER), 7)])
        await expect(page.locator("#draft")).to_contain_text("The end.")
        await page.evaluate("document.querySelector('#draft pre').isTheSame = true")
        before = await page.evaluate(PLACES)
        typist.write(None)
        await expect(page.answers).to_have_count(1)
        await expect(page.locator("#draft")).to_be_hidden()
        assert await page.evaluate("document.querySelector('#log pre').isTheSame"), "it is not made again"
        assert await page.evaluate(PLACES) == before
        shown = await page.answers.locator(".body").inner_html()
        await page.reload()
        await expect(page.answers).to_contain_text("The end.")
        assert await page.answers.locator(".body").inner_html() == shown


@pytest.mark.parametrize("options", [PHONE, DESKTOP], ids=["phone", "desktop"])
async def test_nothing_moves_while_an_answer_is_written_that_is_longer_than_the_window(
    run_site, typist, open_page, options
):
    long = f"{ANSWER}\n\n" * 4
    async with run_site(llm=typist) as site:
        page = await open_page(site.url, **options)
        await page.say("What is the plan?")
        typist.write(ANSWER, None)
        await expect(page.answers).to_have_count(1)
        field = page.locator("#composer")
        place = await field.bounding_box()
        await page.evaluate(WATCH_SHIFTS)
        await page.say("Show me more")
        for begin in range(0, len(long), 90):
            typist.write(long[begin : begin + 90])
            await page.evaluate("new Promise(requestAnimationFrame)")
        await expect(page.get_by_role("button", name="Stop")).to_be_visible()
        assert await field.bounding_box() == place
        typist.write(None)
        await expect(page.answers).to_have_count(2)
        assert await page.evaluate(AT_REST) < 0.05  # of that, columns that a longer word widens
        assert await field.bounding_box() == place


async def test_tables_and_code_can_be_read_while_they_are_written_by_who_comes_then_too(run_site, typist, open_page):
    async with run_site(llm=typist) as site:
        page = await open_page(site.url)
        await page.say("Show me")
        typist.write("| a | b |\n|---|---|\n| 1 | 2 |\n")
        await expect(page.locator("#draft td")).to_have_text(["1", "2"])
        await page.evaluate("document.querySelector('#draft table').isTheSame = true")
        typist.write("| 3 | 4 |\n\n```python\ndef f():\n")
        await expect(page.locator("#draft td")).to_have_text(["1", "2", "3", "4"])
        await expect(page.locator("#draft pre .keyword")).to_have_text("def")
        assert await page.evaluate("document.querySelector('#draft table').isTheSame")
        await page.evaluate("getSelection().selectAllChildren(document.querySelector('#draft pre .keyword'))")
        typist.write("    return 1\n```\n\nafter")
        await expect(page.locator("#draft")).to_contain_text("after")
        assert await page.evaluate("getSelection().toString()") == "def"
        other = await page.open_tab(site.url)
        await expect(other.locator("#draft pre .keyword")).to_have_text(["def", "return"])
        typist.write("\n\n$$\n\\frac{a}{b} = c\n$$\n", None)
        for each in (page, other):
            await expect(each.answers.locator("math, pre, table")).to_have_count(3)


async def test_a_tool_at_work_is_a_card_that_can_be_opened_and_stays_open(run_site, open_page):
    is_free, is_far = asyncio.Event(), asyncio.Event()

    @tool
    async def look_up(word: str, password: str) -> str:
        """Look a word up."""
        progress("<b>page 3</b> of 10, " + "and more of it " * 20)
        await is_far.wait()
        progress("page 9")
        await is_free.wait()
        return "a word"

    call = ToolCall("", "look_up", {"word": "<i>x</i>", "password": "correct horse"})
    async with run_site([call, "It is a word."], tools=[look_up]) as site:
        page = await open_page(site.url)
        await page.say("what is x?")
        card = page.locator("#draft .call")
        await expect(page.get_by_role("status")).to_have_text("Using look_up…")
        await expect(card.locator("summary")).to_contain_text("look_up")
        await expect(card.locator(".said")).to_contain_text("<b>page 3</b> of 10")
        for width in (390, 1200):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            await expect(page.get_by_role("button", name="Stop")).to_be_in_viewport(ratio=1)
        await expect(card.locator("pre")).to_be_hidden()
        await card.locator("summary").focus()
        await page.keyboard.press("Enter")
        await expect(card.locator("pre")).to_contain_text("word: <i>x</i>")
        await expect(card.locator("pre")).not_to_contain_text("correct horse")
        is_far.set()
        await expect(card.locator(".said")).to_have_text("page 9")
        await expect(card.locator("pre")).to_be_visible()
        is_free.set()
        await expect(page.answers).to_contain_text("It is a word.")
        await expect(page.locator("#draft .call")).to_have_count(0)
        stored = page.answers.locator(".call")
        await expect(stored.get_by_role("group", name="Result")).to_have_text("a word")  # it stays open
        await page.reload()
        await expect(stored.locator("summary")).to_contain_text("look_up")
        await expect(stored.locator(".said")).to_contain_text(" s")
        await expect(stored.locator("pre").first).to_be_hidden()
        await stored.locator("summary").click()
        await expect(stored.get_by_role("group", name="Arguments")).to_contain_text("word: <i>x</i>")
        await expect(stored).not_to_contain_text("correct horse")


async def test_many_calls_are_one_line_that_says_how_many_failed(run_site, open_page):
    @tool
    async def halve(number: int) -> int:
        """Halve an even number."""
        if number % 2:
            raise ValueError("odd")
        return number // 2

    calls = [[ToolCall(str(each), "halve", {"number": each}) for each in range(4)]]
    async with run_site([*calls, "done"], tools=[halve]) as site:
        page = await open_page(site.url)
        await page.say("halve")
        everything = page.answers.locator(".call.all > summary")
        await expect(everything).to_have_text("4 tool calls, 2 failed")
        await everything.click()
        cards = page.answers.locator(".call .call")
        await expect(cards.locator(".state")).to_have_text(["", "failed", "", "failed"])
        await cards.nth(1).locator("summary").click()
        await expect(cards.nth(1).get_by_role("group", name="Error")).to_contain_text("odd")


async def test_calls_of_a_turn_without_an_answer_stay_too(run_site, open_page):
    @tool
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    call = ToolCall("", "add", {"a": 2, "b": 3})
    async with run_site([call, LLMError("no such key", is_transient=False)], tools=[add]) as site:
        page = await open_page(site.url)
        await page.say("add")
        card = page.locator("#log .trouble .call")
        await expect(card).to_contain_text("add")
        await page.reload()
        await card.locator("summary").click()
        await expect(card.get_by_role("group", name="Result")).to_have_text("5")


async def test_a_stop_before_the_first_word_leaves_a_mark_everywhere_and_retry_asks_again(
    run_site, sqlite_url, typist, open_page
):
    async with run_site(llm=typist) as site:
        page = await open_page(site.url)
        dots = page.locator("#draft .dots")
        await expect(dots).to_be_hidden()
        await page.say("Count")
        await typist.is_asked.wait()
        await expect(dots).to_be_visible()
        question = page.questions.last
        assert (await dots.bounding_box())["y"] > (await question.bounding_box())["y"], "they hold the answer's place"
        await page.get_by_role("button", name="Stop").click()
        await expect(page.questions.locator(".mark")).to_contain_text("Stopped before an answer")
        await expect(page.locator("#draft")).to_be_hidden()
        await expect(page.locator("#text")).to_be_focused()
        cookies = await page.context.storage_state()
    async with run_site(llm=typist, storage_url=sqlite_url) as site:  # after a restart, on another device
        for each in cookies["cookies"]:
            each["domain"] = "127.0.0.1"
        page = await open_page(site.url, storage_state=cookies)
        await expect(page.questions.locator(".mark")).to_contain_text("Stopped before an answer")
        typist.write("one", None)
        await page.get_by_role("button", name="Retry").click()
        await expect(page.answers).to_contain_text("one")
        await expect(page.questions).to_have_count(1)
        await expect(page.locator(".mark")).to_have_count(0)
        await expect(page.locator("#waiting li")).to_have_count(0)
        await expect(page.locator("#text")).to_be_focused()


async def test_after_an_apology_the_turn_is_asked_again_by_a_button_that_the_keyboard_reaches(run_site, open_page):
    async with run_site([LLMError("broken", is_transient=False), "better"]) as site:
        page = await open_page(site.url)
        await page.say("hello")
        notice = page.locator("#log .trouble")
        await expect(notice).to_contain_text("Sorry, I couldn’t answer this")
        await expect(notice).not_to_contain_text("whoever runs me")
        await expect(page.get_by_role("status")).to_have_text("")
        await page.reload()
        await expect(notice).to_contain_text("Sorry, I couldn’t answer this")
        await page.get_by_role("button", name="Retry").focus()
        await page.keyboard.press("Enter")
        await expect(page.answers).to_contain_text("better")
        await expect(page.locator("#text")).to_be_focused()
        await expect(page.get_by_role("button", name="Retry")).to_be_hidden()


async def test_below_a_failure_only_the_question_that_failed_is_asked_again_and_the_chat_goes_on(run_site, open_page):
    async with run_site(["one", LLMError("broken", is_transient=False), "two"]) as site:
        page = await open_page(site.url)
        await page.say("hello")
        await expect(page.get_by_role("button", name="Ask again", exact=True)).to_have_count(1)
        await page.say("and now?")
        await expect(page.get_by_role("button", name="Retry")).to_be_visible()
        await expect(page.get_by_role("button", name="Ask again", exact=True)).to_have_count(0)
        await page.say("/help")
        await expect(page.locator("#log .notice")).to_have_count(2)
        await expect(page.get_by_role("button", name="Retry")).to_be_visible()
        await page.say("never mind")
        await expect(page.answers).to_have_count(2)
        await expect(page.get_by_role("button", name="Retry")).to_be_hidden()


async def test_what_is_written_from_the_right_stands_at_the_right_with_its_full_width(run_site, open_page):
    async with run_site([ARABIC]) as site:
        page = await open_page(site.url)
        await page.say("Arabic, please")
        await expect(page.answers).to_have_count(1)
        column, body = [await page.locator(each).bounding_box() for each in ("#log", "#log .assistant .body")]
        assert (body["x"], body["width"]) == (column["x"], column["width"])
        right = "each => { const text = document.createRange(); text.selectNodeContents(each); "
        right += "return text.getBoundingClientRect().right; }"
        for name in ("h1", "p"):
            edge = await page.answers.locator(name).evaluate(right)
            assert abs(edge - column["x"] - column["width"]) < 2
        assert await page.answers.locator("li").evaluate("each => getComputedStyle(each).direction") == "rtl"
        assert await page.answers.locator("pre").evaluate("each => getComputedStyle(each).direction") == "ltr"


@pytest.mark.parametrize("options", [PHONE, {}], ids=["phone", "desktop"])
async def test_an_answer_is_copied_as_written_and_the_button_for_code_covers_none_of_it(run_site, open_page, options):
    async with run_site([ANSWER]) as site:
        page = await open_page(site.url, permissions=["clipboard-read", "clipboard-write"], **options)
        await page.say("code")
        button = page.answers.get_by_role("button", name="Copy code")
        await expect(button).to_be_visible()
        box, code = await button.bounding_box(), await page.answers.locator("pre").bounding_box()
        assert box["y"] + box["height"] <= code["y"]
        assert await button.evaluate("each => getComputedStyle(each).opacity") == "1"
        await page.answers.get_by_role("button", name="Copy", exact=True).click()
        await expect(page.locator("#said")).to_have_text("Copied.")
        assert await page.evaluate("navigator.clipboard.readText()") == ANSWER
        await page.evaluate("document.getElementById('said').textContent = ''")
        await button.click()
        await expect(button).to_have_text("Copied")
        await expect(page.locator("#said")).to_have_text("Copied.")
        assert (await page.evaluate("navigator.clipboard.readText()")).startswith("def first_line(): return")


async def test_tables_code_and_formulas_scroll_by_themselves(run_site, open_page):
    wide = "| " + " | ".join(f"a long heading {each}" for each in range(9)) + " |\n" + "|---" * 9 + "|\n"
    formula = "$$\n" + " + ".join(f"x_{{{each}}}^2" for each in range(60)) + "\n$$"
    async with run_site([f"{wide}\n\n{ANSWER}\n\n{formula}"]) as site:
        page = await open_page(site.url, **PHONE)
        await page.say("wide")
        await expect(page.answers).to_have_count(1)
        for selector in (".table >> nth=0", "pre", "div.formula >> nth=-1"):
            block = page.answers.locator(selector)
            assert await block.evaluate("each => each.scrollWidth > each.clientWidth"), selector
            await block.focus()
        assert await page.evaluate("document.getElementById('scroll').scrollWidth <= innerWidth")


async def test_what_is_said_of_a_budget_stands_below_what_it_is_about_and_is_no_trouble(run_site, open_page):
    limits = Budgets({Scope.PERSON: parse_limits("1000 tokens/day")}, answer_tokens=100)
    async with run_site([ChatResponse("one", usage=TokenUsage(800, 50))], budgets=limits) as site:
        page = await open_page(site.url)
        await page.say("first")
        line = page.locator("#log > .assistant + .notice")
        await expect(line).to_contain_text("More than 80% of your budget is used.")
        await expect(page.get_by_role("button", name="Ask again", exact=True)).to_be_visible()
        await page.say("second")
        refusal = page.locator("#log > .user + .notice")
        for _ in range(2):
            await expect(line).to_contain_text("More than 80% of your budget is used.")
            await expect(refusal).to_contain_text("I can’t answer right now: your budget is used up.")
            await expect(page.locator("#draft")).to_be_hidden()
            await expect(page.locator(".trouble, .asked")).to_have_count(0)
            await page.reload()


async def test_a_list_of_tasks_has_boxes_and_what_is_too_wide_says_where_it_goes_on(run_site, open_page):
    wide = "| " + " | ".join(f"column {each}" for each in range(20)) + " |\n|" + "---|" * 20 + "\n| a |\n"
    script = [f"- [ ] to do\n- [x] done\n\n{wide}\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"]
    async with run_site(script) as site:
        page = await open_page(site.url, **PHONE)
        await page.say("plan")
        boxes = page.answers.get_by_role("checkbox")
        await expect(boxes).to_have_count(2)
        await expect(boxes.first).not_to_be_checked()
        await expect(boxes.last).to_be_checked()
        await expect(boxes.last).to_be_disabled()
        table, narrow = await page.answers.locator(".table").all()
        await expect(table).to_have_attribute("data-more", "right")
        assert await narrow.get_attribute("data-more") is None
        await table.evaluate("each => each.scrollLeft = 100")
        await expect(table).to_have_attribute("data-more", "left right")
        await table.evaluate("each => each.scrollLeft = each.scrollWidth")
        await expect(table).to_have_attribute("data-more", "left")
        await table.focus()
        await expect(table).to_be_focused()
        await page.keyboard.press("Home")
        await page.keyboard.press("ArrowLeft")
        await expect(table).to_have_attribute("data-more", "left right")
