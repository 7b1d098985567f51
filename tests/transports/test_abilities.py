"""What each platform shows: in the documents, in what transports say of themselves, and in the tests that show it."""

import re
from dataclasses import fields
from pathlib import Path
from typing import Final

import pytest

from botservice import Author, Capabilities
from botservice.core.argument_checks import adopt
from botservice.turns.transport import NoTransport, Transport
from transports.slack.app import SlackTransport
from transports.telegram.app import TelegramTransport
from transports.terminal.app import TerminalTransport
from transports.web.app import WebTransport

ROOT: Final = Path(__file__).parents[2]
TRANSPORTS: Final = (TelegramTransport, SlackTransport, WebTransport, TerminalTransport)
ABILITIES: Final = [each.name for each in fields(Capabilities) if each.name not in ("label", "command_prefix")]
PROOFS: Final = {
    "telegram": """
        streaming: test_streaming.test_a_private_answer_grows_in_a_draft_and_ends_as_one_message
        thinking: test_streaming.test_a_first_sign_of_life_comes_within_a_second
        tools: test_refused_forms.test_what_a_tool_does_is_a_thought_in_a_draft_and_a_line_where_a_chat_takes_none
        approval: test_approval.test_a_press_decides_and_the_question_says_so
        buttons: test_buttons.test_pressing_says_what_stands_behind_and_leaves_the_choice
        files_in: test_documents.test_a_pdf_is_read_page_by_page
        files_out: test_delivery.test_files_of_tools_reach_the_person
        tables: test_rich.test_a_table_comes_as_a_table_in_one_call
        edits: test_edits.test_the_history_says_what_an_answered_message_says_now
        stops: test_streaming.test_a_stop_cuts_the_model_off_and_keeps_what_was_said
        errors: test_delivery.test_an_apology_reaches_the_person_and_names_an_id
        personal: test_refused_forms.test_usage_in_a_group_is_seen_by_whoever_asked_alone
        voice: test_speaking.test_a_spoken_question_is_answered_by_voice_with_the_words_below
        feedback: test_reactions.test_a_thumb_at_an_answer_is_kept_changed_and_taken_back
        conversations: test_topics.test_each_topic_of_a_private_chat_is_answered_in_it_and_knows_no_other
    """,
    "slack": """
        streaming: test_streaming.test_an_answer_grows_and_stays_one_message
        thinking: test_streaming.test_a_status_is_shown_and_taken_back
        tools: test_streaming.test_tools_show_themselves_while_they_run
        approval: test_approval.test_a_press_decides_and_the_question_says_so
        buttons: test_buttons.test_the_first_press_counts_and_shows_what_was_chosen
        files_in: test_files.test_a_picture_is_seen
        files_out: test_delivery.test_files_go_out_after_the_words
        tables: test_answer_blocks.test_a_table_comes_as_one_that_people_can_sort
        edits: test_intake.test_edits_and_deletions_change_the_history
        deletions: test_deleted_questions.test_a_question_that_was_deleted_is_not_answered
        stops: test_intake.test_the_stop_button_ends_an_answer_and_keeps_what_was_said
        errors: test_languages.test_an_apology_is_in_the_language_of_who_asked
        personal: test_interactions.test_in_a_channel_what_concerns_one_person_is_read_by_them_alone
        feedback: test_interactions.test_what_people_think_of_an_answer_is_stored_with_its_turn
        conversations: test_intake.test_a_mention_that_comes_twice_is_answered_once_in_a_thread
    """,
    "web": """
        streaming: browser/test_chat.test_a_message_is_answered_as_it_is_written_and_reloads_keep_it
        thinking: browser/test_answers.test_a_stop_before_the_first_word_leaves_a_mark_everywhere_and_retry_asks_again
        tools: browser/test_answers.test_a_tool_at_work_is_a_card_that_can_be_opened_and_stays_open
        approval: browser/test_approval.test_a_question_is_decided_with_the_keyboard_and_every_page_sees_it
        buttons: browser/test_chat.test_pressing_a_button_says_what_stands_behind_it_once
        files_in: browser/test_doing.test_files_are_dropped_anywhere_and_an_edited_question_keeps_them
        files_out: test_files.test_what_only_calls_itself_a_picture_is_a_file
        tables: browser/test_answers.test_tables_and_code_can_be_read_while_they_are_written_by_who_comes_then_too
        edits: browser/test_doing.test_the_last_question_is_edited_in_its_place_and_an_earlier_one_asked_once_more
        deletions: test_conversations.test_a_deleted_conversation_is_gone_with_what_is_known_from_it
        stops: browser/test_chat.test_a_stop_by_button_key_or_command_ends_the_answer_which_is_kept_and_marked
        errors: browser/test_answers.test_after_an_apology_the_turn_is_asked_again_by_a_button_that_the_keyboard_reaches
        feedback: browser/test_doing.test_thumbs_stay_pressed_and_why_leads_to_the_inspector
        conversations: browser/test_conversations.test_the_list_leads_back_to_chats_with_drafts_and_finds_as_one_types
    """,
    "terminal": """
        streaming: ../test_terminal.test_an_answer_grows_after_the_prompt_tools_are_named_and_ctrl_c_stops_it
        thinking: ../test_terminal.test_what_the_model_thinks_is_shown_where_a_setting_says_so
        tools: ../test_terminal.test_what_a_tool_says_of_its_work_takes_the_place_of_what_it_said_before
        approval: ../test_asking_on_terminal.test_a_word_in_a_pipe_is_seen_through_to_the_answer
        buttons: ../test_choices.test_a_number_says_what_its_button_says_once
        tables: ../test_terminal.test_markdown_is_shown_as_meant_and_an_edited_line_is_found_again_in_the_next_chat
        stops: ../test_terminal.test_an_answer_grows_after_the_prompt_tools_are_named_and_ctrl_c_stops_it
        errors: ../test_joining.test_the_end_of_the_service_is_told
        conversations: ../test_joining.test_a_conversation_is_open_in_one_terminal_at_a_time
    """,
}


def test_the_table_in_the_documents_says_what_transports_say_of_themselves() -> None:
    rows = re.findall(r"^\|(.*)\|$", (ROOT / "docs" / "abilities.md").read_text(), re.MULTILINE)
    head, _, *lines = [[cell.strip() for cell in row.split("|")] for row in rows]
    assert head[1:] == [transport.capabilities.label for transport in TRANSPORTS]
    assert [line[0] for line in lines] == [name.replace("_", " ") for name in ABILITIES]
    for name, line in zip(ABILITIES, lines, strict=True):
        assert line[1:] == [getattr(transport.capabilities, name) or "–" for transport in TRANSPORTS], name  # noqa: RUF001


@pytest.mark.parametrize("transport", TRANSPORTS, ids=lambda transport: transport.name)
def test_every_ability_that_is_claimed_names_a_test_that_shows_it(transport: type) -> None:
    lines = [line.strip().split(": ") for line in PROOFS[transport.name].strip().splitlines()]
    claimed = [name for name in ABILITIES if getattr(transport.capabilities, name)]
    assert [name for name, _ in lines] == claimed
    for _, proof in lines:
        module, _, test = proof.rpartition(".")
        path = Path(__file__).parent / transport.name / f"{module}.py"
        assert re.search(rf"^(async )?def {test}\(", path.resolve().read_text(), re.MULTILINE), proof


def test_a_transport_that_says_nothing_of_itself_shows_texts() -> None:
    class Plain:
        read = plan = send = print

    plain = adopt(Transport, Plain()).capabilities
    assert (plain.command_prefix, plain.buttons, plain.files_out) == ("/", "", "")
    assert NoTransport().capabilities.label == "Program"


@pytest.mark.parametrize("platform", ["telegram", "matrix"])
def test_who_writes_in_the_name_of_a_chat_is_nobody_in_particular_on_any_platform(platform: str) -> None:
    assert Author(platform, "-1001").is_chat
    assert not Author(platform, "1001").is_chat
    assert not Author(platform, "-a1").is_chat
    assert not Author(platform).is_chat
